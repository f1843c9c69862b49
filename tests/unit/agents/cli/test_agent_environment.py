"""The environment of a command: what is ours, what the task wants and the way to the models."""

import json
from pathlib import Path

import pytest
from tests.builders import a_task
from tests.unit.agents.cli.programs import python
from tests.unit.agents.metered import Metered

SEES = "import json, os; print(json.dumps(dict(os.environ)))"


async def test_a_command_runs_in_the_workspace_with_our_environment(attempt, monkeypatch) -> None:
    monkeypatch.setenv("MY_AGENT_KEY", "k-1")
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "")
    program = "import os; print(os.getcwd(), os.environ['MY_AGENT_KEY'], os.environ['HOME'], sep='|')"
    where, key, home = (await attempt(python(program))).output.split("|")
    assert Path(where).name == "workspace"
    assert key == "k-1"
    assert Path(home).parent == Path(where).parent, "a home of the trial's own"


async def test_the_judges_key_is_not_the_agents(attempt, monkeypatch) -> None:
    monkeypatch.setenv("PASSGATE_JUDGE_API_KEY", "k-judge")
    transcript = await attempt(python("import os; print([key for key in os.environ if 'JUDGE' in key])"))
    assert transcript.output == "[]"


async def test_the_way_to_the_models_comes_last(attempt, monkeypatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "the real one")
    monkeypatch.setenv("OPENAI_BASE_URL", "https://elsewhere")
    seen = json.loads((await attempt(python(SEES), access=Metered(TRIAL_URL="here"))).output)
    assert seen["OPENAI_BASE_URL"] == "http://127.0.0.1:1/t"
    assert seen["TRIAL_URL"] == "here"
    assert "the real one" not in seen.values()


@pytest.mark.parametrize(
    ("given", "seen"),
    [
        ({}, ("127.0.0.1,localhost", "127.0.0.1,localhost")),
        ({"no_proxy": "a.example, b.example"}, ("a.example,b.example,127.0.0.1,localhost",) * 2),
        ({"NO_PROXY": "localhost,a.example"}, ("localhost,a.example,127.0.0.1",) * 2),
        ({"NO_PROXY": "a", "no_proxy": "b"}, ("a,127.0.0.1,localhost", "b,127.0.0.1,localhost")),
        ({"NO_PROXY": "*"}, ("*", "*")),
    ],
)
async def test_no_proxy_is_asked_for_the_meter(attempt, monkeypatch, given, seen: tuple[str, str]) -> None:
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    metered = json.loads((await attempt(python(SEES), access=Metered())).output)
    assert (metered["NO_PROXY"], metered["no_proxy"]) == seen
    unmetered = json.loads((await attempt(python(SEES))).output)
    assert {name: value for name, value in unmetered.items() if name.upper() == "NO_PROXY"} == given


async def test_a_proxy_of_the_agents_variables_is_not_asked_either(attempt, monkeypatch) -> None:
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    seen = json.loads((await attempt(python(SEES), access=Metered(NO_PROXY="a.example"))).output)
    assert seen["NO_PROXY"] == seen["no_proxy"] == "a.example,127.0.0.1,localhost"


async def test_the_variables_of_the_workspace_go_before_ours_and_after_the_meters(attempt, monkeypatch) -> None:
    monkeypatch.setenv("MODE", "of the shell")
    monkeypatch.setenv("OTHER", "of the shell")
    wanted = {"MODE": "of the task", "OPENAI_BASE_URL": "http://elsewhere", "PASSGATE_TRIAL": "7"}
    task = a_task(workspace={"environment": wanted})
    seen = json.loads((await attempt(python(SEES), task, access=Metered())).output)
    assert (seen["MODE"], seen["OTHER"], seen["PASSGATE_TRIAL"]) == ("of the task", "of the shell", "0")
    assert seen["OPENAI_BASE_URL"] == Metered().variables["OPENAI_BASE_URL"]
