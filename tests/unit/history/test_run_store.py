"""The folders of runs and how they are named."""

import errno
import fcntl
import os
import shutil
from pathlib import Path

import pytest

from passgate.tasks.errors import StorageError, UsageError
from passgate.tasks.history.run_store import RunStore, parse_plan
from passgate.tasks.model.baseline import Baseline
from passgate.tasks.model.quotes import Masker
from passgate.tasks.model.trial import TrialStatus
from passgate.tasks.model.verdict import Verdict
from passgate.tasks.planning.find_run import find_run
from tests.builders import SHIPPED, a_finished, a_plan, a_task, trials_of, verdict_on

NO_SECRETS = Masker([])
EVERY_GRADER = [
    {"type": "state_check", "expect": [{"json_file": "a.json", "equals": None}, {"file": "b"}]},
    {"type": "tool_calls", "required": ["search", {"tool": "pay", "params": {"amount": "<=3"}}]},
]
TASK = a_task(graders=EVERY_GRADER, inputs={"prompt": "Zoë\n\u2028", "numbers": [1, 2.5, None]})


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def begin(*run_ids: str) -> None:
    for run_id in run_ids:
        RunStore.of(run_id).write_plan(a_plan(TASK, run_id=run_id), NO_SECRETS)


def a_verdict() -> Verdict:
    plan = a_plan(TASK)
    return verdict_on(plan, SHIPPED, trials_of(TASK, "ppp"), Baseline(branch="main"), "")


def test_a_plan_and_a_verdict_read_back_and_nothing_unfinished_is_left(folder: Path) -> None:
    plan, verdict = a_plan(TASK, run_id="run-1"), a_verdict()
    run = RunStore.of("run-1")
    run.write_plan(plan, NO_SECRETS)
    assert run.read_verdict() is None
    run.write_reports(verdict, {"summary.md": "# Größe\n"})
    assert (run.read_plan(), run.read_verdict()) == (plan, verdict)
    # A wanted null and no wish at all are not the same.
    assert run.read_plan().tasks[0].graders[0].expect[0].model_fields_set == {"json_file", "equals"}
    assert sorted(file.name for file in run.here.iterdir()) == ["plan.json", "summary.md", "verdict.json"]
    assert (folder / ".passgate/runs/run-1/summary.md").read_text(encoding="utf-8") == "# Größe\n"
    run.verdict.write_text("{}")
    with pytest.raises(StorageError, match="is not a verdict"):
        run.read_verdict()


def test_a_plan_holds_no_secret(folder: Path) -> None:
    plan = a_plan(a_task(inputs={"prompt": "use hunter22\n"}))
    RunStore.of("run-1").write_plan(plan, Masker(["hunter22"]))
    assert "hunter22" not in (folder / ".passgate/runs/run-1/plan.json").read_text()
    assert RunStore.of("run-1").read_plan().tasks[0].prompt == "use ***\n"


def test_a_process_that_has_read_the_plan_of_a_batch_refuses_one_that_was_changed_since() -> None:
    store = RunStore.of("run-1")
    store.write_plan(a_plan(a_task()), NO_SECRETS)
    begun_with = store.plan_digest()
    assert parse_plan(store.read_file("plan.json"), "here", begun_with) == store.read_plan() == a_plan(a_task())
    store.write_plan(a_plan(a_task(inputs={"prompt": "another prompt"})), NO_SECRETS)
    with pytest.raises(StorageError, match="is not the plan that the run began with: nothing was run"):
        parse_plan(store.read_file("plan.json"), "here", begun_with)


@pytest.mark.parametrize("content", [None, b"", b"{}", b"\xff", b"[" * 10_000])
def test_a_plan_that_cannot_be_read_is_a_storage_error(folder: Path, content: bytes | None) -> None:
    file = folder / ".passgate/runs/run-1/plan.json"
    file.parent.mkdir(parents=True)
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(StorageError, match="is not the plan of a run"):
        RunStore.of("run-1").read_plan()


def test_a_folder_that_cannot_be_written_is_a_storage_error() -> None:
    Path(".passgate").write_text("")
    with pytest.raises(StorageError, match="cannot write"):
        begin("run-1")


def test_the_folder_stays_when_the_working_folder_changes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = RunStore.of("run-1")
    assert run.shown == ".passgate/runs/run-1"
    (folder / "deep").mkdir()
    monkeypatch.chdir(folder / "deep")
    assert run.here == folder / ".passgate/runs/run-1"
    assert run.shown == "../.passgate/runs/run-1"


def test_a_run_by_its_name_its_beginning_or_as_the_last() -> None:
    begin("20260101-ab", "20260102-cd", "20260103-ef", "20260103")
    found = [find_run(name) for name in ("20260102-cd", "20260102", "last", "20260103")]
    assert found == ["20260102-cd", "20260102-cd", "20260103-ef", "20260103"]


@pytest.mark.parametrize("copy", ["backup", "20260102-cd.bak"])
def test_the_last_run_is_no_copy_of_a_run(folder: Path, copy: str) -> None:
    begin("20260101-ab", "20260102-cd")
    runs = folder / ".passgate/runs"
    shutil.copytree(runs / "20260101-ab", runs / copy)
    assert find_run("last") == "20260102-cd"
    assert find_run(f"file://{runs}/last") == f"file://{runs}/20260102-cd"
    assert find_run(copy) == copy


@pytest.mark.parametrize(
    "place", [".passgate/runs", "./.passgate/../.passgate/runs", "{folder}/.passgate/runs", "link"]
)
@pytest.mark.parametrize("end", ["", "/"])
def test_a_run_by_the_path_of_its_folder(folder: Path, place: str, end: str) -> None:
    begin("20260103", "20260103-ef")
    (folder / "link").symlink_to(folder / ".passgate/runs")
    assert find_run(f"{place.format(folder=folder)}/20260103{end}") == "20260103"
    assert find_run(f"{place.format(folder=folder)}/20260103-ef{end}") == "20260103-ef"


@pytest.mark.parametrize(
    "path",
    ["20260102-cd/", "./20260102-cd", "other/20260102-cd", ".passgate/runs", ".passgate/runs/", ".passgate/runs/2026",
     ".passgate/runs/last", ".passgate/runs/20260102-cd/plan.json", "/", "nowhere/\0"],
)  # fmt: skip
def test_a_path_that_is_no_folder_of_a_run_here_is_refused_with_the_remedy(folder: Path, path: str) -> None:
    begin("20260101-ab", "20260102-cd")
    (folder / "other/20260102-cd").mkdir(parents=True)
    with pytest.raises(UsageError) as caught:
        find_run(path)
    assert str(caught.value) == (
        f"{path!r} is not the folder of a run in .passgate/runs: "
        "use the run's id, the start of its id, or `last`; the newest is 20260102-cd"
    )


def test_a_run_that_somebody_has_fetched_must_be_moved_here(folder: Path) -> None:
    begin("20260101-ab")
    (folder / "fetched").mkdir()
    (folder / ".passgate/runs/20260101-ab").rename(folder / "fetched/20260101-ab")
    with pytest.raises(UsageError, match=r"not the folder of a run in .passgate/runs: move it there$"):
        find_run("fetched/20260101-ab")


@pytest.mark.parametrize(
    ("runs", "name", "problem"),
    [
        (["r"], "", "the name of the run is empty: use its id, the start of its id, or `last`"),
        (["20260101-ab", "20260101-cd"], "20260101", "'20260101' matches 2 runs: 20260101-cd, 20260101-ab"),
        (["20260101-ab", "20260102-cd"], "2025", "no run '2025' in .*; the newest is 20260102-cd"),
        ([], "last", "no run 'last'"),
        ([], "2026", "no run '2026'"),
    ],
)
def test_a_name_that_is_not_that_of_one_run_is_refused(runs: list[str], name: str, problem: str) -> None:
    begin(*runs)
    with pytest.raises(UsageError, match=problem):
        find_run(name)


async def test_a_trial_that_was_measured_counts_whatever_comes_later() -> None:
    store = RunStore.of("r")
    for status in (TrialStatus.ERROR, TrialStatus.PASSED, TrialStatus.ERROR):
        with store.open_journal() as journal:
            await journal.append(a_finished(TASK, 0, status=status))
    assert [one.trial.status for one in store.read_journal()] == [TrialStatus.PASSED]


async def test_the_journal_is_followed_while_it_grows() -> None:
    store, seen = RunStore.of("r"), dict[str, int]()
    assert list(store.new_lines(seen)) == store.read_journal() == []
    with store.open_journal() as journal:
        for trial in range(2):
            await journal.append(a_finished(TASK, trial))
            assert len(list(store.new_lines(seen))) == 1
    assert list(store.new_lines(seen)) == []


def test_a_run_that_another_process_carries_on_keeps_its_verdict(folder: Path) -> None:
    run = RunStore.of("r")
    run.verdict.parent.mkdir(parents=True)
    run.plan.write_text("{}")
    run.verdict.write_text("{}")
    with run.lock():
        with pytest.raises(StorageError, match="already running in another process"):
            run.begin()
        assert run.verdict.exists()
    run.begin()
    assert not run.verdict.exists()


@pytest.mark.parametrize(("function", "code"), [("open", errno.EROFS), ("flock", errno.ENOLCK)])
def test_a_folder_that_cannot_be_locked_is_a_storage_error(
    function: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin("r")
    run = RunStore.of("r")
    run.journal.touch()
    where = Path if function == "open" else fcntl

    def fails(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(where, function, fails)
    for hold in (run.lock, run.hold):
        with pytest.raises(StorageError, match=f"cannot lock .*/r/plan.json: {os.strerror(code)}"), hold():
            pytest.fail("it is held")


FIRST, SECOND, REUSED = (
    a_finished(a_task(), number, said=said, transcript_digest=said, **changes)
    for number, (said, changes) in enumerate((("grün\n", {}), ("two", {}), ("three", {"reused_from": "run-0"})))
)


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    file = tmp_path / "journal.jsonl"
    file.write_text("".join(f"{one.model_dump_json()}\n" for one in (FIRST, SECOND, REUSED)), encoding="utf-8")
    return file


def test_a_transcript_is_found_by_its_digest(journal: Path) -> None:
    with journal.open("a", encoding="utf-8") as file:
        file.write('{"trial": {')  # as a killed run leaves it
    read = RunStore(journal.parent).read_transcript
    assert [read("two"), read("grün\n"), read("another")] == [SECOND.transcript, FIRST.transcript, None]
    assert read("three") is None, "a reused trial has its transcript with its own run"


def test_nothing_is_read_before_it_is_asked_for(tmp_path: Path) -> None:
    read = RunStore(tmp_path / "no-run").read_transcript
    with pytest.raises(StorageError, match="cannot read the transcripts of"):
        read("two")


def test_a_damaged_journal_is_a_storage_error(journal: Path) -> None:
    journal.write_text("damaged\ndamaged\n", encoding="utf-8")
    with pytest.raises(StorageError, match="the journal is damaged in this line"):
        RunStore(journal.parent).read_transcript("two")
