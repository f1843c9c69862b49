"""A run at a URL: the same store, whatever the place is."""

from pathlib import Path

import pytest

from passgate.tasks.errors import StorageError, UsageError
from passgate.tasks.history.masking import Masker
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.model.baseline import Baseline
from passgate.tasks.model.trial import TrialStatus
from tests.builders import SHIPPED, a_finished, a_plan, a_task, trials_of, verdict_on

NO_SECRETS = Masker([])
TASK = a_task()


@pytest.fixture(params=["folder", "file", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> RunStore:
    """An empty store in a folder, at a URL of this machine's files, and at one of an object store."""
    locations = {"folder": "{}", "file": "file://{}", "memory": "memory://{}"}
    return RunStore(locations[request.param].format(tmp_path / "runs" / "r1"))


def test_a_plan_and_a_verdict_are_read_back(store: RunStore) -> None:
    plan = a_plan(TASK)
    store.write_plan(plan, NO_SECRETS)
    assert store.read_plan() == plan
    assert (store.read_verdict(), store.has_verdict()) == (None, False)
    verdict = verdict_on(plan, SHIPPED, trials_of(TASK, "ppp"), Baseline(branch="main"))
    store.write_reports(verdict, {"summary.md": "# passed"})
    assert (store.read_verdict(), store.has_verdict()) == (verdict, True)
    store.begin()
    assert not store.has_verdict()


async def test_the_parts_of_the_journal_are_merged(store: RunStore) -> None:
    """A trial that ended in an error in one part and was measured in another is the measured one, in any order."""
    for part, status in (("", TrialStatus.ERROR), ("b", TrialStatus.PASSED), ("c", TrialStatus.ERROR)):
        with store.open_journal(NO_SECRETS, part) as journal:
            await journal.append(a_finished(TASK, 0, status=status))
            if part:
                await journal.append(a_finished(TASK, 1 if part == "b" else 2))
    assert {(one.trial.trial, one.trial.status) for one in store.read_journal()} == {
        (0, TrialStatus.PASSED),
        (1, TrialStatus.PASSED),
        (2, TrialStatus.PASSED),
    }


async def test_the_journal_is_followed_while_it_grows(store: RunStore) -> None:
    seen: dict[str, int] = {}
    assert list(store.new_lines(seen)) == []
    for part in ("", "b"):
        with store.open_journal(NO_SECRETS, part) as journal:
            for trial in range(2):
                await journal.append(a_finished(TASK, trial))
                assert len(list(store.new_lines(seen))) == 1
    assert list(store.new_lines(seen)) == []


def test_what_is_not_there_is_a_storage_error(store: RunStore) -> None:
    assert store.read_journal() == []
    with pytest.raises(StorageError, match="is not the plan of a run"):
        store.read_plan()
    store.remove()


def test_a_url_of_an_unknown_kind_is_named() -> None:
    with pytest.raises(UsageError, match="nowhere://bucket/run cannot be opened"):
        RunStore("nowhere://bucket/run")


def test_a_store_elsewhere_is_no_folder() -> None:
    with pytest.raises(UsageError, match="is no folder of this machine"):
        _ = RunStore("memory://runs/r1").journal
