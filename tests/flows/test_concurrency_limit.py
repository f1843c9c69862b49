"""Runs that share a global concurrency limit of Prefect: all their trials together hold no more than its slots."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.flows.counting import begun, finished, said, wait_for_trials, write_counting
from tests.flows.prefect_api import api, kill_tree
from tests.prefect_servers import PATIENT, free_port, started_server
from tests.project import Project
from tests.unit.agents.agent_server import AgentServer, Says, running_agent
from tests.waiting import wait_until
from tests.warm import CODE

pytestmark = pytest.mark.slow

TASKS, K = 2, 8
# Slots come back a minute after their holder was killed, the least that Prefect has, and who waits soon says so.
SHORT_LEASES = """
import sys
from passgate.flows import concurrency_limit
from passgate.flows.process.supervisor import main
concurrency_limit.LEASE_SECONDS = 60.0
concurrency_limit._RENEW_SECONDS = concurrency_limit._ASK_SECONDS = concurrency_limit._WARN_SECONDS = 0.5
sys.exit(main())
"""


def set_up(folder: Path, agent: AgentServer, environment: dict[str, str], limit: str, slots: int = 0) -> Project:
    """A gate of 16 trials whose agent names a limit, which is made with so many slots."""
    folder.mkdir()
    project = Project(folder, dict(environment))
    write_counting(project, agent, tasks=TASKS, k=K, jobs=4, limit=limit)
    if slots:
        api(project, "POST", "v2/concurrency_limits/", {"name": limit, "limit": slots})
    return project


def taken(project: Project, limit: str) -> int:
    slots: int = api(project, "GET", f"v2/concurrency_limits/{limit}")["active_slots"]
    return slots


def test_two_runs_at_once_never_hold_more_slots_than_the_limit_has(
    tmp_path: Path, prefect_server: dict[str, str]
) -> None:
    limit = "of-two-runs"
    with running_agent() as agent, ExitStack() as stack:
        agent.replies = [Says(pause=0.3)]
        one = set_up(tmp_path / "one", agent, prefect_server, limit, slots=3)
        other = set_up(tmp_path / "other", agent, prefect_server, limit)
        runs = {
            one.path: stack.enter_context(begun(one)),
            other.path: stack.enter_context(begun(other, "--runner", "process", "--workers", "2")),
        }
        for project in (one, other):
            assert runs[project.path].wait(timeout=400) == 0, said(project)
            assert len(finished(project)) == TASKS * K
        assert 1 < agent.most_at_once <= 3
    assert taken(one, limit) == 0


def test_slots_of_a_killed_run_come_back_and_another_run_waits_for_them(tmp_path: Path) -> None:
    limit, passgate = "of-a-killed-run", (*CODE, SHORT_LEASES)
    # A server that other tests keep busy may answer later than the short leases last.
    with running_agent() as agent, started_server(tmp_path / "home", free_port()) as server:
        # Until it is killed, the first run holds both slots.
        agent.replies = [Says(pause=300), Says(pause=300), Says()]
        killed = set_up(tmp_path / "killed", agent, server.environment, limit, slots=2)
        other = set_up(tmp_path / "other", agent, server.environment, limit)
        with begun(killed, command=passgate) as holder:
            wait_until(lambda: len(agent.asked) == 2)
            with begun(other, command=passgate) as waiting:
                wait_until(lambda: "the concurrency limit of-a-killed-run is full" in said(other))
                kill_tree(holder.pid)
                assert taken(killed, limit) == 2
                assert waiting.wait(timeout=300) == 0, said(other)
        assert taken(other, limit) == 0


def test_a_server_that_restarts_in_mid_run_keeps_no_slots_and_lets_no_more_trials_run(tmp_path: Path) -> None:
    port, home, limit = free_port(), tmp_path / "home", "provider"
    with running_agent() as agent, ExitStack() as stack:
        agent.replies = [Says(pause=3.0)]
        with started_server(home, port) as server:
            project = set_up(tmp_path / "project", agent, server.environment, limit, slots=2)
            run = stack.enter_context(begun(project))
            wait_for_trials(project, run, 1)
        with started_server(home, port):
            agent.replies = [Says(pause=0.1)]
            assert run.wait(timeout=500) == 0, said(project)
            assert taken(project, limit) == 0
        assert agent.most_at_once == 2


def test_a_limit_that_nobody_can_hold_is_refused_with_what_makes_it(
    tmp_path: Path, prefect_server: dict[str, str]
) -> None:
    run = ("run", "ci_merge", "--agent", "counting")
    with running_agent() as agent:
        project = set_up(tmp_path / "project", agent, prefect_server, "nowhere")
        for options in ((), ("--runner", "process")):
            ended = project.passgate(*run, *options)
            assert ended.returncode == 2, ended.stderr
            assert "has no concurrency limit 'nowhere'" in ended.stderr
            assert "prefect gcl create nowhere --limit SLOTS" in ended.stderr
        ended = project.passgate(*run, "--engine", "none")
        assert (ended.returncode, "leave out --engine none" in ended.stderr) == (2, True), ended.stderr
        project.environment = {**PATIENT, "PREFECT_HOME": str(tmp_path / "embedded")}
        ended = project.passgate(*run)
        assert (ended.returncode, "set PREFECT_API_URL" in ended.stderr) == (2, True), ended.stderr
        assert not agent.asked
