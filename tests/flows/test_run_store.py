"""Runs that are kept at a URL: nothing of them is needed on a machine but passgate, the agent and the URL."""

import asyncio
import json
import re
import shutil
import textwrap
from pathlib import Path

import pytest

from passgate.flows.evaluate import evaluate
from passgate.tasks.errors import StorageError, UsageError
from passgate.tasks.execution.engine import Engine
from passgate.tasks.execution.remote_batch import run_batch
from passgate.tasks.history.mirror import Mirror
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.load import load
from passgate.tasks.model.run import Plan, RunRequest
from passgate.tasks.model.task import GateName
from passgate.tasks.model.verdict import Verdict
from passgate.tasks.planning.find_run import find_run
from passgate.tasks.report import RUN_FILES
from tests.builders import task_document
from tests.flows.counting import begun
from tests.flows.prefect_api import kill_tree
from tests.flows.test_seam import AGENT, GATES, calls, first_batch
from tests.object_store import ObjectStore, object_store
from tests.project import Project
from tests.waiting import wait_until
from tests.warm import CODE

__all__ = ["object_store"]

MIRRORED_OFTEN = """
import sys
from passgate.tasks.execution import holding
from passgate.flows.cli import main
holding.MIRROR_SECONDS = 0.5
sys.exit(main())
"""
HIDDEN_TEST = """
from pathlib import Path


def test_it():
    assert Path("answer.txt").read_text() == "yes"
"""


@pytest.fixture
def repository(bare_project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Two golden tasks, of which the agent fails one; one has a sandbox and a hidden test."""
    bare_project.write("gates.yaml", GATES)
    bare_project.write("suites/_shared/sandboxes/box/files/answer.txt", "yes")
    bare_project.write("suites/_shared/tests/a/test_it.py", HIDDEN_TEST)
    tests = {"type": "deterministic_tests", "tests": ["_shared/tests/a/test_it.py"]}
    document = task_document(task_id="a", environment={"sandbox": "box"})
    document["graders"] = [*document["graders"], tests]
    bare_project.write("suites/golden/a.yaml", json.dumps(document))
    bare_project.write("suites/golden/b.yaml", json.dumps(task_document(task_id="b")))
    bare_project.write("agent.py", textwrap.dedent(AGENT))
    monkeypatch.chdir(bare_project.path)
    return bare_project


@pytest.fixture
def other_machine(repository: Project, tmp_path: Path) -> Project:
    """A folder with the agent and nothing else."""
    other = Project(tmp_path / "other")
    other.path.mkdir()
    shutil.copy(repository.path / "agent.py", other.path)
    return other


def planned(url: str) -> Plan:
    return load(GateName.CI_MERGE, RunRequest(agent="python:agent:agent", run_store=url))


def push(plan: Plan) -> None:
    """Copy the folder of a run to its URL, as the process that coordinates it does first."""
    store = RunStore.of(plan.run_id)
    assert store.url is not None
    Mirror(store.here, store.url).push()


def evaluated(request: RunRequest) -> Verdict:
    return asyncio.run(evaluate(GateName.CI_MERGE, request, Engine()))


@pytest.mark.slow
def test_a_run_is_kept_at_its_url_and_comes_to_the_same_verdict(
    repository: Project, object_store: ObjectStore, other_machine: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = object_store.new_url()
    here = evaluated(RunRequest(agent="python:agent:agent"))
    there = evaluated(RunRequest(agent="python:agent:agent", run_store=url))
    assert [reason.message for reason in there.reasons] == [reason.message for reason in here.reasons]
    names = {re.sub("[0-9a-f]{64}", "DIGEST", name) for name in object_store.keys(f"{url}/{there.run_id}")}
    assert names >= {"plan.json", "snapshot/DIGEST.tar.gz", "holder.json", "verdict.json", *RUN_FILES}
    assert names == {name for name in names if "/" not in name or name.startswith(("snapshot/", "report/", "journal/"))}
    folder = repository.path / ".passgate/runs" / there.run_id
    assert (folder / "verdict.json").read_bytes() == object_store.content(f"{url}/{there.run_id}/verdict.json")
    assert RunStore.of(there.run_id).location == f"{url}/{there.run_id}"
    monkeypatch.chdir(other_machine.path)
    found = find_run(f"{url}/last")
    assert RunStore.of(found).read_verdict() == there
    assert len(RunStore.of(found).read_trials()) == 6


def test_another_machine_runs_a_batch_with_the_url_alone(
    repository: Project, object_store: ObjectStore, other_machine: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = planned(object_store.new_url())
    batch = first_batch(plan, trials_at_once=2)
    push(plan)
    monkeypatch.chdir(other_machine.path)
    result = run_batch(batch)
    assert [(one.trial.task_id, one.trial.status) for one in result.trials] == [("a", "passed")] * 3
    assert not (other_machine.path / ".passgate").exists()


@pytest.mark.parametrize("what", ["plan.json", "snapshot"])
def test_a_plan_or_a_snapshot_that_was_changed_runs_nothing(
    repository: Project, object_store: ObjectStore, what: str
) -> None:
    plan = planned(object_store.new_url())
    batch, store = first_batch(plan), RunStore.of(plan.run_id)
    push(plan)
    (name,) = [one for one in object_store.keys(store.location) if one.startswith(what)]
    changed = object_store.content(f"{store.location}/{name}").replace(b'"golden"', b'"golden" ')
    object_store.overwrite(f"{store.location}/{name}", changed if what == "plan.json" else b"something else")
    with pytest.raises(StorageError, match=r"is not the (plan|one) that the run began with: nothing was run"):
        run_batch(batch)
    assert calls(repository) == []


@pytest.mark.slow
def test_a_run_whose_machine_has_died_goes_on_in_another_folder_and_repeats_only_what_was_in_flight(
    repository: Project, object_store: ObjectStore, other_machine: Project
) -> None:
    url = object_store.new_url()
    (repository.path / "slow").touch()
    long = GATES.replace("k: 3", "k: 100").replace("{mode: strict}", "{mode: strict}, curtailment: false")
    repository.write("gates.yaml", long)
    repository.environment = other_machine.environment = {**object_store.environment, "PASSGATE_ENGINE": "none"}
    store = ("--run-store", url)
    with begun(repository, *store, agent="python:agent:agent", command=[*CODE, MIRRORED_OFTEN]) as process:
        wait_until(lambda: process.poll() is not None or any("/journal/" in name for name in object_store.keys(url)))
        kill_tree(process.pid)
    (run_id,) = {name.partition("/")[0] for name in object_store.keys(url)}
    here, asked = RunStore.of(run_id).read_trials(), calls(repository)
    resumed = other_machine.passgate("run", "ci_merge", "--resume", f"{url}/last", timeout=900)
    assert (resumed.returncode, f"{url}/{run_id}" in resumed.stdout) == (1, True), resumed.stderr
    judge = ("judge", f"{url}/{run_id}", "--gates", str(repository.path / "gates.yaml"))
    assert other_machine.passgate(*judge).returncode == 1
    there = calls(other_machine)
    assert len({*asked, *there}) == 200
    mirrored = 200 - len(there)
    assert 0 < mirrored <= len(here)
    verdict = json.loads(object_store.content(f"{url}/{run_id}/verdict.json"))
    assert verdict["measurement"]["suites"][0]["trials_measured"] == 200
    back = repository.passgate("run", "ci_merge", "--resume", run_id)
    assert (back.returncode, "name it by its URL" in back.stderr) == (3, True), back.stderr
    assert repository.passgate("run", "ci_merge", "--resume", f"{url}/{run_id}").returncode == 1
    assert len(calls(repository)) == len(asked), "what the other machine has run is here now"


def test_what_is_no_url_and_a_run_that_is_not_there_are_refused(repository: Project, object_store: ObjectStore) -> None:
    with pytest.raises(UsageError, match="the run store 'runs' is no URL: for a folder write file:///"):
        planned("runs")
    with pytest.raises(UsageError, match=r"no run 'last' in s3://"):
        find_run(f"{object_store.new_url()}/last")


def test_a_file_with_a_secret_is_not_sent(
    repository: Project, object_store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.write("gates.yaml", GATES + "secrets: [TOKEN]\n")
    repository.write("suites/_shared/sandboxes/box/files/settings", "token: hunter22\n")
    monkeypatch.setenv("TOKEN", "hunter22")
    url = object_store.new_url()
    with pytest.raises(UsageError, match="settings contains the value of a secret"):
        planned(url)
    assert object_store.keys(url) == []


@pytest.mark.slow
def test_a_store_that_cannot_be_written_and_a_driver_that_is_not_there(
    repository: Project, object_store: ObjectStore
) -> None:
    repository.environment = {**object_store.environment, "PASSGATE_ENGINE": "none"}
    run = ("run", "ci_merge", "--agent", "python:agent:agent", "--run-store")
    result = repository.passgate(*run, "s3://no-such-bucket/runs")
    assert (result.returncode, "cannot write s3://no-such-bucket/runs/" in result.stderr) == (3, True), result.stderr
    repository.write("hidden/s3fs.py", "raise ImportError('no s3fs')")
    result = repository.passgate(*run, object_store.new_url(), PYTHONPATH=str(repository.path / "hidden"))
    assert (result.returncode, "pip install 'passgate[s3]'" in result.stderr) == (2, True), result.stderr
    assert calls(repository) == []
