"""Agents that cannot work, whatever they are: found before the first trial, with what to do."""

import socket

import pytest

from tests.gates import WRITES_OK, gate_of
from tests.project import Project
from tests.unit.agents.agent_server import running_agent

pytestmark = pytest.mark.slow

NO_KEYS = {"OPENAI_API_KEY": "", "OPENAI_BASE_URL": "", "ANTHROPIC_API_KEY": "", "ANTHROPIC_BASE_URL": ""}


def with_one_task(project: Project) -> Project:
    gate_of(project)
    project.write("suites/golden/a.yaml", WRITES_OK.format(name="a"))
    return project


def closed_port() -> int:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return int(unused.getsockname()[1])


def test_a_missing_key_is_bad_configuration_and_nothing_is_run(bare_project: Project) -> None:
    result = with_one_task(bare_project).passgate("run", "ci_merge", "--agent", "openai:gpt-5-mini", **NO_KEYS)
    assert result.returncode == 2
    assert "OPENAI_API_KEY is not set" in result.stderr
    assert not list(bare_project.path.glob(".passgate/runs/*"))


def test_a_provider_that_is_down_is_inconclusive_and_nothing_is_run(bare_project: Project) -> None:
    address = f"http://127.0.0.1:{closed_port()}"
    with_one_task(bare_project).write(
        "agents.yaml",
        f"""
        agents:
          loop: {{agent: "openai:gpt-5-mini", upstreams: {{openai: {{base_url: "{address}/v1"}}}}}}
          service: {{agent: "http:{address}/ask"}}
        """,
    )
    for agent in ("loop", "service"):
        result = bare_project.passgate("run", "ci_merge", "--agent", agent, **NO_KEYS)
        assert result.returncode == 3, result.stdout + result.stderr
        assert f"{address}/" in result.stderr
        assert "cannot be reached" in result.stderr
        assert not list(bare_project.path.glob(".passgate/runs/*"))


def test_what_a_service_does_not_report_is_said_in_terms_of_its_settings(bare_project: Project) -> None:
    with_one_task(bare_project).write(
        "suites/golden/a.yaml",
        """
        task_id: a
        suite: golden
        description: Look the order up.
        inputs: {prompt: Which state has order 17?}
        graders: [{type: tool_calls, required: [get_order]}]
        tracked_metrics: [trajectory]
        """,
    )
    with running_agent() as server:
        result = bare_project.passgate("try", "suites/golden/a.yaml", "--agent", server.url)
    assert result.returncode == 3, result.stdout + result.stderr
    shown = " ".join(result.stdout.split())
    assert "`http.tool_calls`" in shown
    assert "PASSGATE_TRANSCRIPT" not in shown
