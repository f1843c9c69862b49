"""Whose fault it is when the time of a trial ends during a model call."""

import signal

import pytest

from tests.cli.metered import GATES, finished_trials, server_complaints, set_up, write_task
from tests.processes import interrupted
from tests.project import Project
from tests.upstream import ScriptedUpstream
from tests.upstream_replies import Silent, Slow, Status
from tests.upstream_shapes import Says

pytestmark = pytest.mark.slow

PYTHON_AGENT = """
import json, urllib.request

def answer(attempt):
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": attempt.prompt}]}).encode()
    address = attempt.variables["OPENAI_BASE_URL"] + "/chat/completions"
    request = urllib.request.Request(address, body, {"content-type": "application/json"})
    return json.load(urllib.request.urlopen(request))["choices"][0]["message"]["content"]
"""
AGENTS = ["bot", "openai:m", "python:calling:answer"]


@pytest.fixture
def metered(project: Project, upstream: ScriptedUpstream) -> Project:
    project.write("calling.py", PYTHON_AGENT)
    set_up(project, upstream)
    project.write("gates.yaml", f"{GATES}error_retries: 0\n")
    write_task(project, "max_seconds: 1.5")
    return project


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_interrupted_in_a_streamed_call_complains_of_nothing(
    metered: Project, upstream: ScriptedUpstream, kind: signal.Signals
) -> None:
    metered.write("calling.py", PYTHON_AGENT.replace('"model": "m"', '"model": "m", "stream": True'))
    write_task(metered, "max_seconds: 600")
    upstream.says(Slow(0.2, Says("word " * 3000)))
    command = metered.command("run", "ci_merge", "--agent", "python:calling:answer", "--k", "1")
    ended = interrupted(metered, command, kind, lambda: upstream.count > 0)
    assert ended.returncode == 130, ended.stderr
    assert server_complaints(ended.stderr) == []


@pytest.mark.parametrize("agent", AGENTS)
def test_a_healthy_call_at_the_deadline_is_the_agents_time_out(
    metered: Project, upstream: ScriptedUpstream, agent: str
) -> None:
    upstream.says(Silent(60, Says("yes")))
    result = metered.passgate("run", "ci_merge", "--agent", agent, "--k", "1")
    assert result.returncode == 1, result.stdout + result.stderr
    assert server_complaints(result.stderr) == []
    [finished] = finished_trials(metered)
    assert (finished["trial"]["status"], finished["transcript"]["end"]) == ("failed", "timed_out")
    assert "max_seconds is 1.5 and the agent was still running" in finished["trial"]["reason"]


def test_a_call_that_the_provider_keeps_declining_until_the_deadline_is_no_fault_of_the_agent(
    metered: Project, upstream: ScriptedUpstream
) -> None:
    # Long enough for the agent to begin on a busy machine.
    write_task(metered, "max_seconds: 15")
    upstream.says(Status(429, {"retry-after": "50"}))
    result = metered.passgate("run", "ci_merge", "--agent", "bot", "--k", "1")
    assert result.returncode == 3, result.stdout + result.stderr
    [finished] = finished_trials(metered)
    assert finished["trial"]["status"] == "error"
    assert "429" in finished["trial"]["reason"]
