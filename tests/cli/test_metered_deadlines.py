"""Whose fault it is when the time of a trial ends during a model call."""

import signal

import pytest

from tests.cli.metered import GATES, run, server_complaints, write_task
from tests.gates import finished_trials
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


def limited(project: Project, seconds: float) -> None:
    """Give the trial so long, and the Python agent its file."""
    project.write("calling.py", PYTHON_AGENT)
    project.write("gates.yaml", f"{GATES}error_retries: 0\n")
    write_task(project, "max_steps: 4", f"max_seconds: {seconds}")


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_interrupted_in_a_streamed_call_complains_of_nothing(
    metered: Project, upstream: ScriptedUpstream, kind: signal.Signals
) -> None:
    limited(metered, 600)
    metered.write("calling.py", PYTHON_AGENT.replace('"model": "m"', '"model": "m", "stream": True'))
    upstream.says(Slow(0.2, Says("word " * 3000)))
    command = metered.command("run", "ci_merge", "--agent", "python:calling:answer", "--k", "1")
    ended = interrupted(metered, command, kind, lambda: upstream.count > 0)
    assert ended.returncode == 130, ended.stderr
    assert server_complaints(ended.stderr) == []


@pytest.mark.parametrize("agent", ["bot", "openai:m", "python:calling:answer"])
def test_a_healthy_call_at_the_deadline_is_the_agents_time_out(
    metered: Project, upstream: ScriptedUpstream, agent: str
) -> None:
    limited(metered, 1.5)
    upstream.says(Silent(60, Says("yes")))
    assert server_complaints(run(metered, 1, "--k", "1", agent=agent).stderr) == []
    [finished] = finished_trials(metered)
    assert (finished["trial"]["status"], finished["transcript"]["end"]) == ("failed", "timed_out")
    assert "max_seconds is 1.5 and the agent was still running" in finished["trial"]["reason"]


def test_a_call_that_the_provider_keeps_declining_until_the_deadline_is_no_fault_of_the_agent(
    metered: Project, upstream: ScriptedUpstream
) -> None:
    limited(metered, 15)  # Long enough for the agent to begin on a busy machine
    upstream.says(Status(429, {"retry-after": "50"}))
    run(metered, 3, "--k", "1")
    [finished] = finished_trials(metered)
    assert finished["trial"]["status"] == "error"
    assert "429" in finished["trial"]["reason"]
