"""The files of a verdict."""

from pathlib import Path

import pytest

from passgate.tasks.history.run_store import RunStore
from passgate.tasks.model.baseline import Baseline, BaselineState, BaselineTask
from passgate.tasks.model.quotes import Masker
from passgate.tasks.model.verdict import RunView, Verdict
from passgate.tasks.report import RUN_FILES, report
from tests.builders import a_finished, a_plan, a_policy, a_task, trials_of, verdict_on

TASK = a_task()
NO_SECRETS = Masker([])


def a_verdict(reason: str = "it failed") -> Verdict:
    trials = [trial.model_copy(update={"reason": reason}) for trial in trials_of(TASK, "ppf")]
    return verdict_on(a_plan(TASK), a_policy(suites=["golden"]), trials, Baseline(branch="main"), "")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunStore:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    return RunStore.of("run-1")


def test_the_verdict_and_every_report_are_written(folder: RunStore) -> None:
    verdict = a_verdict()
    report(RunView(verdict), folder, NO_SECRETS)
    assert folder.read_verdict() == verdict
    assert {file.name for file in folder.here.iterdir()} == {"verdict.json", "report.html", *RUN_FILES}
    for name, make in RUN_FILES.items():
        assert (folder.here / name).read_text(encoding="utf-8") == make(RunView(verdict))


def test_a_report_can_show_the_trials_their_transcripts_and_the_history_of_their_tasks(folder: RunStore) -> None:
    finished = a_finished(TASK, transcript_digest="d1")
    folder.here.mkdir(parents=True)
    folder.journal.write_text(finished.model_dump_json() + "\n", encoding="utf-8")
    green = BaselineTask(state=BaselineState.GREEN)
    view = RunView(a_verdict(), (finished.trial,), folder.read_transcript, {TASK.name: green})
    assert [view.transcript(trial.transcript_digest) for trial in view.trials] == [finished.transcript]
    assert view.history[TASK.name] is green


def test_no_report_holds_a_secret(folder: RunStore) -> None:
    report(RunView(a_verdict("it said hunter22")), folder, Masker(["hunter22"]))
    for name in RUN_FILES:
        assert "hunter22" not in (folder.here / name).read_text(encoding="utf-8")
    assert "it said" in (folder.here / "summary.md").read_text(encoding="utf-8")


def test_ci_shows_the_summary(folder: RunStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    summary = tmp_path / "step-summary.md"
    summary.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    report(RunView(a_verdict()), folder, NO_SECRETS)
    written = (folder.here / "summary.md").read_text(encoding="utf-8")
    assert summary.read_text(encoding="utf-8") == f"before\n{written}\n"


def test_a_step_summary_that_cannot_be_written_costs_nothing_but_itself(
    folder: RunStore, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "gone/summary.md")
    report(RunView(a_verdict()), folder, NO_SECRETS)
    assert capsys.readouterr().err.startswith("passgate: cannot write the step summary gone/summary.md: ")
    assert folder.read_verdict() is not None
    assert {"summary.md", "junit.xml", "report.html"} <= {file.name for file in folder.here.iterdir()}
