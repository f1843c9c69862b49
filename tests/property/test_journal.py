"""A run may be killed at any moment: whatever was on disk counts, and nothing that comes later is lost."""

import asyncio
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from tests.builders import a_finished, a_task

from passgate.tasks.history.journal import FileJournal, read_journal
from passgate.tasks.model.transcript import Transcript
from passgate.tasks.model.trial import FinishedTrial, TrialStatus

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@st.composite
def finished_trials(draw: st.DrawFn) -> FinishedTrial:
    task = a_task(task_id=draw(st.sampled_from(["a", "b", "ü\n\u2028"])))
    status = draw(st.sampled_from([TrialStatus.PASSED, TrialStatus.FAILED, TrialStatus.ERROR]))
    finished = a_finished(task, draw(st.integers(0, 2)), status=status, reason=draw(texts))
    said = Transcript(output=draw(texts), detail=draw(texts))
    return finished.model_copy(update={"transcript": said})


def latest(trials: list[FinishedTrial]) -> dict[tuple[str, int], FinishedTrial]:
    return {(one.trial.task_id, one.trial.trial): one for one in trials}


def append(file: Path, trials: list[FinishedTrial]) -> None:
    async def run() -> None:
        with FileJournal(file) as journal:
            journal.drop_torn_line()
            for finished in trials:
                await journal.append(finished)

    asyncio.run(run())


def read(file: Path) -> dict[tuple[str, int], FinishedTrial]:
    return latest(read_journal(file)[0])


@given(
    before=st.lists(finished_trials(), max_size=5),
    after=st.lists(finished_trials(), max_size=3),
    cut=st.floats(0, 1),
    noise=st.binary(max_size=8).filter(lambda noise: b"\n" not in noise),
)
def test_a_cut_loses_the_torn_line_alone(
    tmp_path: Path, before: list[FinishedTrial], after: list[FinishedTrial], cut: float, noise: bytes
) -> None:
    file = tmp_path / "journal.jsonl"
    file.unlink(missing_ok=True)
    append(file, before)
    content = file.read_bytes()
    kept = content[: round(len(content) * cut)]
    file.write_bytes(kept + noise)
    whole = kept.count(b"\n")
    assert read(file) == latest(before[:whole])
    append(file, after)
    assert read(file) == latest([*before[:whole], *after])


@given(content=st.binary(max_size=200))
def test_what_is_no_journal_holds_no_trial(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "journal.jsonl"
    file.write_bytes(content.replace(b"\n", b" "))
    assert read_journal(file) == ([], 0)
