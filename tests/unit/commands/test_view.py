"""The pages of all runs, as files."""

import json
import os
import re
from pathlib import Path

import pytest
from bench.generated_history import AGENT as GENERATED_AGENT
from bench.generated_history import write_generated

from passgate.tasks.commands.view import INDEX, write_pages
from passgate.tasks.errors import PassgateError
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.model.baseline import Baseline
from passgate.tasks.model.quotes import Masker
from passgate.tasks.model.run import RunRequest
from passgate.tasks.model.trial import TrialStatus
from tests.builders import a_finished, a_plan, a_policy, a_run_id, a_task, begun, verdict_on

TASK = a_task(task_id="folder/say yes")


def a_stored_run(run_id: str, statuses: str) -> RunStore:
    """A run of these trials, passed or failed, without a verdict."""
    policy = a_policy(suites=["golden"], curtailment=False)
    plan = a_plan(TASK, run_id=run_id, created_at=begun(run_id), request=RunRequest(history="history"), policy=policy)
    store = RunStore.of(run_id)
    store.write_plan(plan, Masker([]))
    store.journal.write_bytes(b"")
    for number, letter in enumerate(statuses):
        add(store, number, letter)
    return store


def add(store: RunStore, number: int, letter: str = "p") -> None:
    status = TrialStatus.PASSED if letter == "p" else TrialStatus.FAILED
    with store.journal.open("a", encoding="utf-8") as journal:
        journal.write(f"{a_finished(TASK, number, f'said {number}', status=status).model_dump_json()}\n")


def ended(store: RunStore) -> RunStore:
    plan, trials = store.read_plan(), store.read_trials()
    store.write_reports(verdict_on(plan, plan.policy, trials, Baseline(branch="main", young="block")), {})
    return store


def index() -> str:
    """The index as it is now."""
    assert write_pages()[0] == INDEX
    return INDEX.read_text(encoding="utf-8")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


ENDED, GOING = a_run_id("20260130"), a_run_id("20260131", "ffff")


def test_the_index_has_every_run_the_newest_first() -> None:
    assert "There are no runs yet" in index()
    ended(a_stored_run(ENDED, "pfp"))
    a_stored_run(GOING, "").verdict.write_text("{")
    html = index()
    assert html.index(f">{GOING}<") < html.index(f'href="../runs/{ENDED}/report.html"')
    assert f'href="../runs/{GOING}' not in html, "a run that cannot be read has no page"
    for shown in ("no verdict yet", "✗ FAIL", "2/3", "2026-01-30 00:00 UTC"):
        assert shown in html
    assert INDEX.stat().st_mode & 0o077 == 0


def test_a_run_that_cannot_be_read_is_named() -> None:
    a_stored_run(GOING, "").verdict.write_text("{")
    _, (failure,) = write_pages()
    assert failure.startswith(f"the run {GOING} has no up-to-date page: ")
    with pytest.raises(PassgateError):
        write_pages(GOING)


def test_a_page_is_written_where_it_is_missing_or_out_of_date_or_asked_for() -> None:
    page = ended(a_stored_run(ENDED, "ppf")).here / "report.html"
    index()
    assert "said 2" in page.read_text()
    assert "said 1" in (page.parent / "report/trials-1.html").read_text()
    page.write_text("kept")
    index()
    assert page.read_text() == "kept"
    assert write_pages(ENDED)[0] == page
    assert "said 2" in page.read_text()


def test_a_run_that_goes_on_is_shown_as_far_as_it_is() -> None:
    store = a_stored_run(GOING, "f")
    page = store.here / "report.html"
    for number, done in ((1, "1 of 3"), (2, "2 of 3")):
        index()
        assert f"{done} trials were done" in page.read_text()
        add(store, number)
        os.utime(page, (0, 0))  # The clock of a file system can be too coarse for two writes in a row
    ended(store)
    index()
    assert "trials were done" not in page.read_text()


def test_the_trend_of_each_gate_and_agent_has_a_page() -> None:
    ended(a_stored_run(ENDED, "p"))
    gate = ENDED.split("-")[1]
    _, (failure,) = write_pages()
    assert failure.startswith(f"{gate} of cli:my-agent has no trend page: ")
    assert "has no runs yet" in failure
    assert "trend-" not in INDEX.read_text()
    write_generated(".passgate/history", 12, 3, ())
    night = a_run_id("20260201", gate="nightly")
    head = json.loads(RunStore.of(ENDED).verdict.read_text()) | {"agent": GENERATED_AGENT, "run_id": night}
    (INDEX.parent.parent / "runs" / night).mkdir()
    (INDEX.parent.parent / "runs" / night / "verdict.json").write_text(json.dumps(head))
    found = re.search(r'href="(trend-nightly-\w+\.html)">nightly</a>', index())
    assert found
    html = (INDEX.parent / found[1]).read_text()
    assert "12 runs from" in html
    assert '<a href="index.html">All runs</a>' in html
