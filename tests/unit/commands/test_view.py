"""The pages of all runs, as the viewer answers them."""

import json
from pathlib import Path
from urllib.parse import quote

import pytest
from bench.generated_history import AGENT as GENERATED_AGENT
from bench.generated_history import write_generated

from passgate.tasks.commands.view import Viewer
from passgate.tasks.errors import UsageError
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.model.baseline import Baseline
from passgate.tasks.model.masker import Masker
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


def text(viewer: Viewer, path: str) -> str:
    return viewer.answer(path).text


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


ENDED, GOING = a_run_id("20260130"), a_run_id("20260131", "ffff")


def test_the_list_has_every_run_the_newest_first() -> None:
    assert "There are no runs yet" in text(Viewer(), "")
    ended(a_stored_run(ENDED, "pfp"))
    a_stored_run(GOING, "").verdict.write_text("{")
    html = text(Viewer(), "")
    assert html.index(f'href="runs/{GOING}/report.html"') < html.index(f'href="runs/{ENDED}/report.html"')
    for shown in ("no verdict yet", "✗ FAIL", "2/3", "2026-01-30 00:00 UTC"):
        assert shown in html


def test_a_run_has_its_page_and_every_trial_of_it() -> None:
    ended(a_stored_run(ENDED, "ppf"))
    viewer = Viewer()
    html = text(viewer, f"runs/{ENDED}/report.html")
    link = "trials/golden/folder/say yes/1"
    for shown in ("ci_merge FAIL", "said 2", 'href="../../"', f'href="{link}#golden/folder/say~20yes/1"'):
        assert shown in html
    assert "in no file yet" not in html
    trial = text(viewer, f"runs/{ENDED}/{link}")
    assert "said 1" in trial
    assert 'href="../../../../report.html"' in trial


def test_a_run_that_goes_on_is_shown_as_far_as_it_is() -> None:
    store = a_stored_run(GOING, "f")
    viewer = Viewer()
    state = text(viewer, f"runs/{GOING}/state")
    assert "1 of 3 trials are done" in text(viewer, f"runs/{GOING}/report.html")
    assert text(viewer, f"runs/{GOING}/state") == state
    add(store, 1)
    assert text(viewer, f"runs/{GOING}/state") != state
    assert "2 of 3 trials are done" in text(viewer, f"runs/{GOING}/report.html")
    add(store, 2)
    ended(store)
    assert json.loads(text(viewer, f"runs/{GOING}/state"))[0] > 0
    assert "trials are done" not in text(viewer, f"runs/{GOING}/report.html")


@pytest.mark.parametrize(
    "path",
    [
        *(
            f"runs/{ENDED}{rest}"
            for rest in ("", "/plan.json", "/../../../secret.txt", "/trials/x", "/trials/golden/none/0")
        ),
        f"runs/{ENDED}/trials/golden/folder/say yes/9",
        "runs/20250101T000000Z-ci_merge-0a0b/report.html",
        *("runs", "runs/../report.html", "../secret.txt", "trend", "trend/nightly", "trend/weekly/x"),
    ],
)
def test_other_paths_have_no_page(path: str) -> None:
    ended(a_stored_run(ENDED, "p"))
    Path("secret.txt").write_text("secret")
    assert Viewer().answer(path) is None


def test_the_trend_of_each_gate_and_agent_is_read_when_it_is_asked_for() -> None:
    ended(a_stored_run(ENDED, "p"))
    a_stored_run(GOING, "")
    viewer = Viewer()
    gate = GOING.split("-")[1]
    assert f'<a href="trend/{gate}/{quote("cli:my-agent", safe="")}">{gate}</a>' in text(viewer, "")
    with pytest.raises(UsageError, match="has no runs yet"):
        viewer.answer("trend/nightly/agent")
    write_generated(".passgate/history", 12, 3, ())
    html = text(viewer, f"trend/nightly/{GENERATED_AGENT}")
    assert "12 runs from" in html
    assert '<a href="../../">All runs</a>' in html
    with pytest.raises(UsageError):
        viewer.answer("trend/nightly/another")
