"""The environment of a command: what is ours, what the task wants and the way to the models."""

from pathlib import Path

import pytest
from tests.builders import a_task
from tests.unit.agents.cli.programs import cli_agent
from tests.unit.agents.conftest import Metered

from passgate.tasks.agents.interface import leading_to_models
from passgate.tasks.metering.access import Unmetered


@pytest.fixture
def environment(attempt):
    """The variables of a command in a trial."""

    async def _environment(**changes) -> dict[str, str]:
        printed = (await attempt(cli_agent("env -0"), **changes)).output
        return dict(line.split("=", 1) for line in printed.split("\0") if line)

    return _environment


async def test_a_command_runs_in_the_workspace_with_our_environment(environment, monkeypatch) -> None:
    monkeypatch.setenv("MY_AGENT_KEY", "k-1")
    monkeypatch.setenv("PASSGATE_JUDGE_API_KEY", "k-judge")
    seen = await environment()
    assert Path(seen["PWD"]).name == "workspace"
    assert Path(seen["HOME"]).parent == Path(seen["PWD"]).parent, "a home of the trial's own"
    assert seen["MY_AGENT_KEY"] == "k-1"
    assert not any("JUDGE" in name for name in seen), "the judge's key is not the agent's"


async def test_the_way_to_the_models_comes_last(environment, monkeypatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "the real one")
    monkeypatch.setenv("OPENAI_BASE_URL", "https://elsewhere")
    seen = await environment(access=Metered(TRIAL_URL="here"))
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
def test_no_proxy_is_asked_for_the_meter(given: dict[str, str], seen: tuple[str, str]) -> None:
    metered = leading_to_models(given, Metered())
    assert (metered["NO_PROXY"], metered["no_proxy"]) == seen
    assert leading_to_models(given, Unmetered()) == {}


async def test_a_proxy_of_the_agents_variables_is_not_asked_either(environment, monkeypatch) -> None:
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.setenv("no_proxy", "b.example")
    assert (await environment()).get("NO_PROXY") is None
    monkeypatch.delenv("no_proxy")
    seen = await environment(access=Metered(NO_PROXY="a.example"))
    assert seen["NO_PROXY"] == seen["no_proxy"] == "a.example,127.0.0.1,localhost"


async def test_the_variables_of_the_workspace_go_before_ours_and_after_the_meters(environment, monkeypatch) -> None:
    monkeypatch.setenv("MODE", "of the shell")
    monkeypatch.setenv("OTHER", "of the shell")
    wanted = {"MODE": "of the task", "OPENAI_BASE_URL": "http://elsewhere", "PASSGATE_TRIAL": "7"}
    seen = await environment(task=a_task(workspace={"environment": wanted}), access=Metered())
    assert (seen["MODE"], seen["OTHER"], seen["PASSGATE_TRIAL"]) == ("of the task", "of the shell", "0")
    assert seen["OPENAI_BASE_URL"] == Metered().variables["OPENAI_BASE_URL"]
