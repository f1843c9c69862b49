"""Runs that share a global concurrency limit of Prefect: all their trials together hold no more than its slots."""

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.cli.test_killed import AGENTS, SAYS_YES, kill_tree
from tests.flows.test_runners import GATES, finished
from tests.flows.test_work_pool import asked
from tests.prefect_servers import PATIENT, free_port, started_server
from tests.project import Project
from tests.unit.agents.agent_server import AgentServer, Says, running_agent
from tests.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

TASKS, K = 2, 12
LIMIT = "provider"


def set_up(folder: Path, agent: AgentServer, environment: dict[str, str], limit: str = LIMIT) -> Project:
    """A gate of 24 trials whose agent names a limit."""
    folder.mkdir()
    project = Project(folder, dict(environment))
    project.write("gates.yaml", GATES % (K, 4))
    for number in range(TASKS):
        project.write(f"suites/golden/t{number}.yaml", SAYS_YES.format(name=f"t{number}"))
    project.write("agents.yaml", AGENTS.format(url=agent.url) + f"    concurrency_limit: {limit}\n")
    return project


def make_limit(environment: dict[str, str], slots: int, name: str = LIMIT) -> None:
    asked(environment, "POST", "v2/concurrency_limits/", {"name": name, "limit": slots})


def taken(environment: dict[str, str], name: str = LIMIT) -> int:
    slots: int = asked(environment, "GET", f"v2/concurrency_limits/{name}")["active_slots"]
    return slots


@contextmanager
def begun(project: Project, *options: str) -> Iterator[subprocess.Popen[str]]:
    """A run, until its end; what it says is in a file."""
    command = project.command("run", "ci_merge", "--agent", "counting", *options)
    with (
        (project.path / "stderr.txt").open("w") as messages,
        project.started(command, stdout=messages, stderr=messages) as process,
    ):
        try:
            yield process
        finally:
            kill_tree(process.pid)


def said(project: Project) -> str:
    return (project.path / "stderr.txt").read_text()


def test_two_runs_at_once_never_hold_more_slots_than_the_limit_has(
    tmp_path: Path, prefect_server: dict[str, str]
) -> None:
    make_limit(prefect_server, 3, "of-two-runs")
    with running_agent() as agent, ExitStack() as stack:
        agent.replies = [Says(pause=0.3)]
        runs = []
        for name, options in (("one", ()), ("other", ("--runner", "process", "--workers", "2"))):
            project = set_up(tmp_path / name, agent, prefect_server, "of-two-runs")
            runs.append((project, stack.enter_context(begun(project, *options))))
        for project, process in runs:
            assert process.wait(timeout=400) == 0, said(project)
            assert len(finished(project)) == TASKS * K
        assert agent.most_at_once == 3
    assert taken(prefect_server, "of-two-runs") == 0


def test_slots_of_a_killed_run_come_back_and_another_run_waits_for_them(
    tmp_path: Path, prefect_server: dict[str, str]
) -> None:
    make_limit(prefect_server, 2, "of-a-killed-run")
    with running_agent() as agent:
        agent.replies = [Says(pause=0.3)]
        killed = set_up(tmp_path / "killed", agent, prefect_server, "of-a-killed-run")
        with begun(killed) as process:
            wait_until(lambda: process.poll() is not None or len(finished(killed)) > 2, seconds=200)
            kill_tree(process.pid)
        assert taken(prefect_server, "of-a-killed-run") == 2
        project = set_up(tmp_path / "other", agent, prefect_server, "of-a-killed-run")
        with begun(project) as process:
            assert process.wait(timeout=500) == 0, said(project)
    assert "the concurrency limit of-a-killed-run is full" in said(project)
    assert taken(prefect_server, "of-a-killed-run") == 0


def test_a_server_that_restarts_in_mid_run_keeps_no_slots_and_lets_no_more_trials_run(tmp_path: Path) -> None:
    port = free_port()
    with running_agent() as agent, ExitStack() as stack:
        agent.replies = [Says(pause=2.0)]
        home = tmp_path / "home"
        with started_server(home, port) as server:
            make_limit(server.environment, 2)
            project = set_up(tmp_path / "project", agent, server.environment)
            process = stack.enter_context(begun(project))
            wait_until(lambda: process.poll() is not None or len(finished(project)) > 2, seconds=200)
        with started_server(home, port) as server:
            assert process.wait(timeout=500) == 0, said(project)
            assert taken(server.environment) == 0
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
