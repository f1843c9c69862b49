"""The environment of Python functions as agents, each trial's its own."""

import asyncio
import os

import pytest
from tests.builders import a_task
from tests.unit.agents.metered import Metered

from passgate.tasks.agents.interface import Attempt
from passgate.tasks.agents.python import PythonAgent
from passgate.tasks.budgets.access import Unmetered


def sees(attempt: Attempt) -> str:
    return os.environ["TRIAL_KEY"]


async def sees_later(attempt: Attempt) -> str:
    await asyncio.sleep(0.05)
    return os.environ["TRIAL_KEY"]


@pytest.mark.parametrize("function", [sees, sees_later])
async def test_every_trial_has_its_own_way_to_the_models(attempt, function) -> None:
    agent = PythonAgent(function)
    trials = (attempt(agent, trial=trial, access=Metered(TRIAL_KEY=f"k-{trial}")) for trial in range(6))
    assert [transcript.output for transcript in await asyncio.gather(*trials)] == [f"k-{n}" for n in range(6)]
    assert "TRIAL_KEY" not in os.environ


async def test_a_proxy_is_not_asked_for_the_meter(attempt, monkeypatch) -> None:
    monkeypatch.setenv("NO_PROXY", "a.example")
    monkeypatch.delenv("no_proxy", raising=False)

    def shows(given: Attempt) -> str:
        return os.environ["NO_PROXY"] + "|" + os.environ.get("no_proxy", "unset")

    both = "a.example,127.0.0.1,localhost"
    assert (await attempt(PythonAgent(shows), access=Metered(TRIAL_KEY="k"))).output == f"{both}|{both}"
    assert (await attempt(PythonAgent(shows))).output == "a.example|unset"


async def test_a_real_client_takes_the_trials_way(attempt, monkeypatch) -> None:
    openai = pytest.importorskip("openai")
    monkeypatch.setenv("OPENAI_API_KEY", "the real one")

    def makes_clients(given: Attempt) -> str:
        with openai.OpenAI() as client:
            return f"{client.base_url} {client.api_key}"

    async def makes_async_clients(given: Attempt) -> str:
        async with openai.AsyncOpenAI() as client:
            return f"{client.base_url} {client.api_key}"

    for function in (makes_clients, makes_async_clients):
        access = Metered(OPENAI_BASE_URL="http://127.0.0.1:1/t/v1", OPENAI_API_KEY="of-the-trial")
        transcript = await attempt(PythonAgent(function), access=access)
        assert transcript.output == "http://127.0.0.1:1/t/v1/ of-the-trial"


async def test_the_variables_of_the_workspace_are_set_for_the_agent(attempt, monkeypatch) -> None:
    def sees(attempt: Attempt) -> str:
        return f"{os.environ['MODE']} {os.environ['OPENAI_BASE_URL']}"

    monkeypatch.setenv("MODE", "of the shell")
    task = a_task(workspace={"environment": {"MODE": "of the task", "OPENAI_BASE_URL": "http://elsewhere"}})
    metered = Unmetered()
    metered.variables = {"OPENAI_BASE_URL": "http://meter"}
    assert (await attempt(PythonAgent(sees), task, access=metered)).output == "of the task http://meter"
    assert os.environ["MODE"] == "of the shell"
