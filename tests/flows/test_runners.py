"""Batches of a gate on Prefect's task runners: the verdict and the rows of one process, also when a worker is lost."""

import json
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from tests.cli.test_killed import AGENTS, SAYS_YES
from tests.prefect_servers import PATIENT
from tests.processes import how_to_resume, parent_of, process_ids
from tests.project import Project, clean_environment
from tests.unit.agents.agent_server import AgentServer, Says, running_agent
from tests.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

TASKS, K, JOBS = 10, 30, 6
GATES = """
version: 1
suites:
  golden: {k: %d, metric: pass^k, max_steps: 20}
gates:
  ci_merge: {suites: [golden], blocks_on: [golden_regression, task_failed], regression: {mode: strict}}
concurrency: {trials: %d}
"""
Key = tuple[str, int]


def set_up(project: Project, agent: AgentServer, *, tasks: int = TASKS, k: int = K) -> Project:
    """A gate of 300 trials whose agent counts what it is asked for; one task fails."""
    project.write("gates.yaml", GATES % (k, JOBS))
    for number in range(tasks):
        task = SAYS_YES.format(name=f"t{number}")
        project.write(f"suites/golden/t{number}.yaml", task.replace('"yes"', '"no"') if number == 3 else task)
    project.write("agents.yaml", AGENTS.format(url=agent.url))
    project.environment = {**PATIENT, "PREFECT_HOME": str(project.path.parent / "prefect")}
    return project


@pytest.fixture(scope="module")
def of_one_process(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the gate comes to in one process."""
    folder = tmp_path_factory.mktemp("local") / "repository"
    folder.mkdir()
    with running_agent() as agent:
        project = set_up(Project(folder), agent)
        ended = project.passgate("run", "ci_merge", "--agent", "counting", "--engine", "none", timeout=300)
    assert ended.returncode == 1, ended.stderr
    return what_counts(project)


def what_counts(project: Project) -> Any:
    """What of a run does not depend on when and where it was run."""
    (folder,) = project.run_folders()
    verdict = json.loads((folder / "verdict.json").read_text())
    rows = [(one["task_id"], one["trial"], one["status"], one["reason"], one["score"]) for one in trials(project)]
    assert len(rows) == len(set(rows)), "a trial stands in the journal twice"
    return verdict["decision"], [reason["message"] for reason in verdict["reasons"]], sorted(rows)


def trials(project: Project) -> list[dict[str, Any]]:
    """The trials whose lines in the parts of the journal are whole."""
    parts = sorted(project.path.glob(".passgate/runs/*/journal*.jsonl"))
    return [json.loads(line)["trial"] for part in parts for line in part.read_bytes().split(b"\n")[:-1]]


def finished(project: Project) -> set[Key]:
    return {(one["task_id"], one["trial"]) for one in trials(project)}


def asked(agent: AgentServer, start: int = 0) -> Counter[Key]:
    """How often the agent was asked for each trial, from a call on."""
    return Counter((one.body["task_id"], int(one.body["trial"])) for one in list(agent.asked)[start:])


def descendants(process_id: int) -> list[int]:
    parents = {child: parent_of(child) for child in process_ids()}
    found = [process_id]
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return found[1:]


def children_with(mark: bytes) -> Callable[[subprocess.Popen[str]], list[int]]:
    """Finds the processes that come from a command and carry a mark in their command line."""

    def find(command: subprocess.Popen[str]) -> list[int]:
        found = []
        for one in descendants(command.pid):
            try:
                found += [one] if mark in Path(f"/proc/{one}/cmdline").read_bytes() else []
            except OSError:
                continue
        return sorted(found)

    return find


@contextmanager
def begun(project: Project, *options: str) -> Iterator[subprocess.Popen[str]]:
    """A run on a task runner, until its end."""
    command = project.command("run", "ci_merge", "--agent", "counting", *options)
    with (project.path / "stderr.txt").open("w") as messages:
        process = subprocess.Popen(
            command,
            cwd=project.path,
            env=project.full_environment(),
            stdout=subprocess.PIPE,
            stderr=messages,
            text=True,
        )
    with process:
        try:
            yield process
        finally:
            process.kill()


def wait_for_trials(project: Project, command: subprocess.Popen[str], count: int) -> None:
    """Wait until so many trials have ended, or the command has."""
    wait_until(lambda: command.poll() is not None or len(finished(project)) >= count, seconds=400)


def run_with_a_loss(
    project: Project, agent: AgentServer, options: list[str], workers: Callable[[subprocess.Popen[str]], list[int]]
) -> None:
    """Run the gate, kill a worker when a fifth of the trials have ended, and see what the agent was asked for."""
    with begun(project, *options) as command:
        wait_for_trials(project, command, 60)
        before = finished(project)
        os.kill(workers(command)[-1], signal.SIGKILL)
        output, _ = command.communicate(timeout=400)
    assert command.returncode == 1, output + (project.path / "stderr.txt").read_text()
    calls = asked(agent)
    assert all(calls[key] == 1 for key in before), "a finished trial was run again"
    assert calls.total() <= TASKS * K + JOBS, "more was run again than was in flight"
    assert "without Prefect" not in (project.path / "stderr.txt").read_text()


@dataclass(frozen=True)
class DaskCluster:
    """A scheduler and three workers, each a process that its nanny starts again when it is killed."""

    address: str
    nannies: list[subprocess.Popen[bytes]]

    def workers(self, _command: object = None) -> list[int]:
        return [child for nanny in self.nannies for child in descendants(nanny.pid) if is_spawned(child)]


@pytest.fixture(scope="module")
def dask_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskCluster]:
    folder = tmp_path_factory.mktemp("dask")
    environment = {**clean_environment(), "PREFECT_HOME": str(folder / "prefect"), "OMP_NUM_THREADS": "1"}

    def started(*arguments: str) -> subprocess.Popen[bytes]:
        with (folder / "messages.txt").open("a") as messages:
            command = [sys.executable, "-m", "distributed.cli." + arguments[0], *arguments[1:]]
            return subprocess.Popen(command, cwd=folder, env=environment, stdout=messages, stderr=messages)

    file = folder / "scheduler.json"
    at = ["--scheduler-file", str(file), "--no-dashboard"]
    scheduler = started("dask_scheduler", *at, "--host", "127.0.0.1", "--port", "0")
    nannies = []
    try:
        wait_until(lambda: file.exists() and "address" in file.read_text(), seconds=120)
        one = ["--nworkers", "1", "--nthreads", "1", "--memory-limit", "0"]
        nannies = [started("dask_worker", *at, *one) for _ in range(3)]
        cluster = DaskCluster(json.loads(file.read_text())["address"], nannies)
        wait_until(lambda: len(cluster.workers()) == 3, seconds=120)
        yield cluster
    finally:
        for process in (*nannies, scheduler):
            process.terminate()
        for process in (*nannies, scheduler):
            process.wait(timeout=60)


def is_spawned(process_id: int) -> bool:
    try:
        return b"spawn_main" in Path(f"/proc/{process_id}/cmdline").read_bytes()
    except OSError:
        return False


def test_a_lost_worker_of_dask_loses_what_is_in_flight(
    bare_project: Project, of_one_process: Any, dask_cluster: DaskCluster
) -> None:
    with running_agent() as agent:
        agent.replies = [Says(pause=0.1)]
        set_up(bare_project, agent)
        options = ["--runner", "dask", "--runner-address", dask_cluster.address]
        run_with_a_loss(bare_project, agent, options, dask_cluster.workers)
    assert what_counts(bare_project) == of_one_process


def test_twenty_lost_workers_of_dask_lose_no_trial_and_repeat_none(
    bare_project: Project, of_one_process: Any, dask_cluster: DaskCluster
) -> None:
    chosen, losses = random.Random(14), list[tuple[set[Key], int]]()
    with running_agent() as agent:
        agent.replies = [Says(pause=0.1)]
        set_up(bare_project, agent)
        with begun(bare_project, "--runner", "dask", "--runner-address", dask_cluster.address) as command:
            for kill in range(20):
                wait_for_trials(bare_project, command, 5 + 13 * kill + chosen.randrange(10))
                wait_until(lambda: dask_cluster.workers() != [], seconds=300)
                losses.append((finished(bare_project), len(agent.asked)))
                os.kill(chosen.choice(dask_cluster.workers()), signal.SIGKILL)
                assert command.poll() is None, (bare_project.path / "stderr.txt").read_text()
            command.communicate(timeout=600)
        for before, calls_before in losses:
            assert before.isdisjoint(asked(agent, calls_before)), "a finished trial was run again"
        calls = asked(agent)
    assert what_counts(bare_project) == of_one_process
    assert calls.total() <= TASKS * K + 20 * JOBS, "more was run again than was in flight"


def test_a_lost_process_loses_what_is_in_flight(bare_project: Project, of_one_process: Any) -> None:
    with running_agent() as agent:
        agent.replies = [Says(pause=0.1)]
        set_up(bare_project, agent)
        run_with_a_loss(bare_project, agent, ["--runner", "process", "--workers", "3"], children_with(b"spawn_main"))
    assert what_counts(bare_project) == of_one_process
    (why,) = failed_task_runs(bare_project)["golden/t3"]
    assert re.match(r"0/\d+ trials passed; output_check: ", why), why


def test_a_process_tells_the_embedded_engine_of_each_batch_and_agents_do_not_know_where_that_is(
    bare_project: Project,
) -> None:
    with running_agent() as agent:
        set_up(bare_project, agent, tasks=2)
    bare_project.write("agent.sh", 'echo "${PREFECT_API_URL-yes}"')
    command = ("run", "ci_merge", "--agent", f"cli:sh {bare_project.path}/agent.sh", "--runner", "process")
    ended = bare_project.passgate(*command, "--workers", "1", timeout=300)
    assert (ended.returncode, "without Prefect" in ended.stderr) == (0, False), ended.stdout + ended.stderr
    batches = [(name, state) for name, state in task_runs(bare_project) if name in {"t0", "t1"}]
    assert sorted(batches) == [("t0", "Completed"), ("t1", "Completed")]


def task_runs(project: Project) -> list[tuple[str, str]]:
    """The task runs in the embedded engine's database, by name, with their states."""
    with closing(sqlite3.connect(Path(project.environment["PREFECT_HOME"]) / "prefect.db")) as database:
        return database.execute("SELECT name, state_name FROM task_run").fetchall()


def failed_task_runs(project: Project) -> dict[str, list[str]]:
    """The messages of failed task runs in the embedded engine's database, by the names of the task runs."""
    query = "SELECT r.name, s.message FROM task_run r JOIN task_run_state s ON s.id = r.state_id WHERE s.name = ?"
    found = defaultdict[str, list[str]](list)
    with closing(sqlite3.connect(Path(project.environment["PREFECT_HOME"]) / "prefect.db")) as database:
        for name, message in database.execute(query, ("TaskFailed",)):
            found[name].append(message)
    return found


@pytest.mark.parametrize("runner", ["process", "dask", "ray"])
def test_a_signal_ends_a_run_on_every_task_runner_and_leaves_nothing_behind(bare_project: Project, runner: str) -> None:
    with running_agent() as agent, TemporaryDirectory(prefix="t") as temporary:  # a short path, for the sockets of Ray
        agent.replies = [Says(pause=0.5)]
        set_up(bare_project, agent)
        bare_project.environment["TMPDIR"] = temporary
        with begun(bare_project, "--runner", runner, "--workers", "2") as command:
            wait_for_trials(bare_project, command, 5)
            command.send_signal(signal.SIGTERM)
            command.communicate(timeout=10)
        said = (bare_project.path / "stderr.txt").read_text()
        assert command.returncode == 130, said
        assert said.splitlines()[-1].endswith(how_to_resume(bare_project.path))
        assert "Traceback" not in said
        assert "SIGTERM" not in said
        left = sorted(path.name for path in Path(temporary).glob("*/*"))
        assert left == {"dask": ["global.lock", "purge.lock"], "ray": ["session_latest"]}.get(runner, [])
        wait_until(lambda: with_environment(bare_project.environment["PREFECT_HOME"]) == [])
        assert len(finished(bare_project)) < TASKS * K


def with_environment(mark: str) -> list[int]:
    """The processes that carry a mark in their environment."""
    found = []
    for one in process_ids():
        try:
            found += [one] if mark.encode() in Path(f"/proc/{one}/environ").read_bytes() else []
        except OSError:
            continue
    return found


def test_a_lost_worker_of_ray_loses_what_is_in_flight(bare_project: Project, of_one_process: Any) -> None:
    with running_agent() as agent:
        agent.replies = [Says(pause=0.1)]
        set_up(bare_project, agent)
        run_with_a_loss(bare_project, agent, ["--runner", "ray", "--workers", "3"], children_with(b"ray::"))
    assert what_counts(bare_project) == of_one_process
