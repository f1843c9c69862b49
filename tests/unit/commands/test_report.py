"""The page of a run that is kept."""

import os
from pathlib import Path

import pytest

from passgate.tasks.commands.report import write_run_page
from passgate.tasks.errors import UsageError
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.model.baseline import Baseline
from passgate.tasks.model.quotes import Masker
from passgate.tasks.model.run import RunRequest
from passgate.tasks.model.trial import TrialStatus
from tests.builders import a_finished, a_plan, a_policy, a_task, verdict_on

TASK = a_task(expected_output="yes")
FINISHED = [
    a_finished(TASK, 0, "yes"),
    a_finished(TASK, 1, "perhaps", status=TrialStatus.FAILED),
    a_finished(TASK, 2, "yes"),
]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunStore:
    """A run of three trials that is kept, without a verdict."""
    monkeypatch.chdir(tmp_path)
    policy = a_policy(suites=["golden"])
    plan = a_plan(TASK, request=RunRequest(history="history"), policy=policy)
    store = RunStore.of(plan.run_id)
    store.write_plan(plan, Masker([]))
    store.journal.write_text("".join(f"{one.model_dump_json()}\n" for one in FINISHED), encoding="utf-8")
    return store


def judged(store: RunStore) -> None:
    plan, trials = store.read_plan(), store.read_trials()
    store.write_reports(verdict_on(plan, plan.policy, trials, Baseline(branch="main")), {})


def test_the_page_shows_the_trials_of_the_journal_once_they_are_judged(run: RunStore) -> None:
    said = f"has no verdict: resume it with `passgate run {run.read_plan().gate} --resume {run.name}`"
    with pytest.raises(UsageError, match=said):
        write_run_page(run.name, None)
    judged(run)
    written = write_run_page(run.name, None)
    assert (written.file, written.without_history) == (run.here / "report.html", "")
    assert "perhaps" in written.file.read_text(encoding="utf-8")
    for made in ("report", "report/trials-1.html"):
        assert (run.here / made).stat().st_mode & 0o077 == 0


def test_without_its_history_or_its_journal_a_run_keeps_a_page(run: RunStore) -> None:
    judged(run)
    written = write_run_page(run.name, "nowhere://history")
    assert "nowhere" in written.without_history
    run.journal.unlink()
    with pytest.raises(UsageError, match="has no journal any more"):
        write_run_page(run.name, None)
    assert "perhaps" in written.file.read_text(encoding="utf-8")


async def test_the_page_of_a_run_at_a_url_is_there_and_here(run: RunStore, tmp_path: Path) -> None:
    plan = run.read_plan().model_copy(update={"run_id": "20260201T120000Z-ci_merge-0b0c"})
    elsewhere = RunStore.new(plan.run_id, f"file://{tmp_path}/elsewhere")
    elsewhere.settle_here()
    elsewhere.write_plan(plan, Masker([]))
    with elsewhere.open_journal() as journal:
        for one in FINISHED:
            await journal.append(one)
    judged(elsewhere)
    for name in (plan.run_id, elsewhere.location):
        written = write_run_page(name, None)
        assert os.path.relpath(written.file) == f".passgate/runs/{plan.run_id}/report.html"
        html = written.file.read_text(encoding="utf-8")
        assert "perhaps" in html
        assert (tmp_path / "elsewhere" / plan.run_id / "report.html").read_text(encoding="utf-8") == html
        written.file.unlink()
