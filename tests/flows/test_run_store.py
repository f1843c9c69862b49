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
from passgate.tasks.execution.engine import NoEngine
from passgate.tasks.execution.remote_batch import run_batch
from passgate.tasks.grade import grade
from passgate.tasks.history.lease import newest_holder
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.history.storage import storage_at
from passgate.tasks.load import load
from passgate.tasks.model.run import BatchResult, Plan, RemoteBatch, RunRequest
from passgate.tasks.model.task import GateName
from passgate.tasks.model.verdict import Verdict
from passgate.tasks.planning.find_run import find_run
from passgate.tasks.report import RUN_FILES
from tests.builders import task_document
from tests.flows.test_seam import AGENT, GATES, calls, elsewhere, first_batch, judged
from tests.object_store import ObjectStore, object_store
from tests.project import Project

__all__ = ["object_store"]

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


def evaluated(request: RunRequest) -> Verdict:
    return asyncio.run(evaluate(GateName.CI_MERGE, request, NoEngine()))


@pytest.mark.slow
def test_a_run_is_kept_at_its_url_and_comes_to_the_same_verdict(
    repository: Project, object_store: ObjectStore, other_machine: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = object_store.new_url()
    here = evaluated(RunRequest(agent="python:agent:agent"))
    there = evaluated(RunRequest(agent="python:agent:agent", run_store=url))
    assert [reason.message for reason in there.reasons] == [reason.message for reason in here.reasons]
    names = {re.sub("[0-9a-f]{64}", "DIGEST", name) for name in object_store.keys(f"{url}/{there.run_id}")}
    kept = {name for name in names if not name.startswith(("journal/", "lease/"))}
    assert kept >= {"plan.json", "snapshot/DIGEST.tar.gz", "verdict.json", *RUN_FILES}
    assert kept == {name for name in kept if "/" not in name or name.startswith(("snapshot/", "report/"))}
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
    batch = first_batch(planned(object_store.new_url()), trials_at_once=2)
    monkeypatch.chdir(other_machine.path)
    result = run_batch(batch, grade)
    assert [(one.trial.task_id, one.trial.status) for one in result.trials] == [("a", "passed")] * 3
    assert not (other_machine.path / ".passgate").exists()


@pytest.mark.parametrize("what", ["plan.json", "snapshot"])
def test_a_plan_or_a_snapshot_that_was_changed_runs_nothing(
    repository: Project, object_store: ObjectStore, what: str
) -> None:
    plan = planned(object_store.new_url())
    batch, store = first_batch(plan), RunStore.of(plan.run_id)
    (name,) = [one for one in object_store.keys(store.location) if one.startswith(what)]
    changed = object_store.content(f"{store.location}/{name}").replace(b'"golden"', b'"golden" ')
    object_store.overwrite(f"{store.location}/{name}", changed if what == "plan.json" else b"something else")
    with pytest.raises(StorageError, match=r"is not the (plan|one) that the run began with: nothing was run"):
        run_batch(batch, grade)
    assert calls(repository) == []


@pytest.mark.slow
def test_a_coordinator_on_another_machine_waits_for_the_lease_and_repeats_nothing(
    repository: Project, object_store: ObjectStore, other_machine: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = planned(object_store.new_url())
    store = RunStore.of(plan.run_id)

    async def one_and_an_end(batch: RemoteBatch) -> BatchResult:
        if len(calls(repository)) < 3:
            return await asyncio.to_thread(run_batch, batch, grade)
        raise StorageError("the coordinator ends here")

    with pytest.raises((StorageError, ExceptionGroup)):
        judged(plan, elsewhere(one_and_an_end, workers=1))
    before = calls(repository)
    assert len(before) >= 3
    monkeypatch.chdir(other_machine.path)
    with store.lease():
        with pytest.raises(StorageError, match=r"is held by process \d+ on .* since .* UTC, until .* UTC"):
            evaluated(RunRequest(run=store.location))
        with pytest.raises(StorageError, match="is going on: it is held by"):
            RunStore(store.location).begin()
    verdict = evaluated(RunRequest(run=store.location))
    assert verdict.measurement.suites[0].trials_measured == 6
    assert sorted([*before, *calls(other_machine)]) == [f"{name} {number}" for name in "ab" for number in range(3)]
    _, holder = newest_holder(storage_at(store.location), "lease")
    assert holder is not None
    assert RunStore.of(plan.run_id).location == store.location, "the other folder knows the run by its id now"


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
def test_the_command_keeps_a_run_at_a_url_and_another_folder_carries_it_on(
    repository: Project, object_store: ObjectStore, other_machine: Project
) -> None:
    url = object_store.new_url()
    repository.environment = other_machine.environment = {**object_store.environment, "PASSGATE_ENGINE": "none"}
    run = ("run", "ci_merge", "--agent", "python:agent:agent", "--run-store", url)
    assert repository.passgate(*run).returncode == 1
    (run_id,) = {name.partition("/")[0] for name in object_store.keys(url)}
    location = f"{url}/{run_id}"
    storage_at(location).remove(["verdict.json"])
    result = other_machine.passgate("run", "ci_merge", "--resume", f"{url}/last")
    assert result.returncode == 1, result.stderr
    assert location in result.stdout
    assert calls(other_machine) == []
    assert other_machine.passgate("judge", location, "--gates", str(repository.path / "gates.yaml")).returncode == 1


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
