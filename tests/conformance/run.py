"""Grading the rows of a corpus."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

from passgate.tasks.errors import MeasurementError
from passgate.tasks.formats.evals.runtime import STRATEGIES
from passgate.tasks.formats.folder import find_suites_folder
from passgate.tasks.formats.loading import load_paths, policy_or_default
from passgate.tasks.graders import TrialResult, grade, trial_result
from passgate.tasks.graders.evidence import Evidence
from passgate.tasks.metering.usage import trial_metrics
from passgate.tasks.model.grade import Grade
from passgate.tasks.model.graders import Composite, Grader
from passgate.tasks.model.quotes import UNMASKED
from passgate.tasks.model.task import EvalTask, Metric
from passgate.tasks.model.transcript import Transcript
from passgate.tasks.model.trial import TrialStatus
from passgate.tasks.stats.estimators import mean_lower_bound
from tests.conformance.answers import transcripts
from tests.conformance.compare import TOLERANCE, TRIAL, Compared, Finding, compared, pairs
from tests.conformance.judges import judge_for
from tests.conformance.rows import RecordedGrade, Row, read_rows
from tests.unit.graders.conftest import LocalSandbox

_FOREIGN = ("code_grader", "javascript", "python", "unavailable")
"""Graders that may need what a corpus does not hold."""


@dataclass(frozen=True)
class Corpus:
    """A folder with eval files and what AgentV answered, on a scratch copy: graders may write beside themselves."""

    folder: Path
    scratch: Path


async def compare_all(corpus: Corpus) -> AsyncIterator[Compared]:
    """Every score of AgentV beside passgate's."""
    tasks: dict[str, dict[str, EvalTask]] = {}
    for row in read_rows(corpus.folder):
        if row.path not in tasks:
            tasks[row.path] = await asyncio.to_thread(_load, corpus.folder / row.path)
        async for found in _compare_row(row, tasks[row.path].get(row.test_id), corpus):
            yield found


def _load(file: Path) -> dict[str, EvalTask]:
    """The tasks of an eval file by their ids in it."""
    loaded = load_paths([file], policy_or_default(Path("gates.yaml")))
    return {task.task_id.rpartition("/")[2]: task for task in loaded.tasks}


async def _compare_row(row: Row, task: EvalTask | None, corpus: Corpus) -> AsyncIterator[Compared]:
    if task is None:
        for theirs in row.graders:
            yield Compared(Finding.NOT_RUNNABLE, theirs.type, row, "the eval file is refused, or has no such test")
        return
    said = transcripts(row, task, corpus.folder)
    if not said:
        for theirs in row.graders:
            yield Compared(Finding.NOT_RUNNABLE, theirs.type, row, "the corpus does not say what the agent answered")
        return
    trials = [await _grades(task, transcript, row, corpus) for transcript in said[: task.k]]
    recorded = [theirs for theirs in row.graders if not _is_turn(theirs)]
    matched, alone = pairs(task.graders, recorded)
    dropped = [grader.type for index, grader in enumerate(task.graders) if index not in dict(matched)]
    lost = tuple(kind for kind in dropped if kind != "turns")
    for index, theirs in matched:
        yield _one(row, task, index, theirs, [grades[index] for grades in trials])
    for theirs in alone:
        detail = f"{theirs.name}: passgate has no such grader"
        yield Compared(Finding.DIFFERING, theirs.type, row, detail, lost)
    of_turns = next((index for index, grader in enumerate(task.graders) if grader.type == "turns"), None)
    for theirs in filter(_is_turn, row.graders):
        yield _turn(row, theirs, None if of_turns is None else trials[0][of_turns])
    if row.status == "execution_error" and not row.graders and row.answer is not None:
        yield Compared(Finding.NOT_RUNNABLE, TRIAL, row, "AgentV could not set the test up")
    elif all(_can_run(task, index) for index in range(len(task.graders))):
        yield _whole(row, task, said[: task.k], trials)._replace(dropped=lost)


def _is_turn(theirs: RecordedGrade) -> bool:
    return re.fullmatch(r"turn-\d+|conversation", theirs.name) is not None


def _turn(row: Row, theirs: RecordedGrade, ours: Grade | None) -> Compared:
    """A turn's score: a member of our one grade for all turns."""
    members = ours.members if ours else ()
    member = next((member for member in members if member.name == theirs.name), None)
    if member is None:
        return Compared(Finding.DIFFERING, theirs.type, row, f"{theirs.name}: passgate has no such turn")
    if theirs.skipped and not member.score:
        return Compared(Finding.AGREED, theirs.type, row)  # a turn after one that failed: skipped there, 0 here
    return compared(row, theirs, member)


def _one(row: Row, task: EvalTask, index: int, theirs: RecordedGrade, ours: Sequence[Grade]) -> Compared:
    """A grader's score; of several trials AgentV keeps the grades of one that it does not name."""
    if not _can_run(task, index):
        return Compared(Finding.NOT_RUNNABLE, theirs.type, row, "the corpus does not hold what the grader runs")
    found = [compared(row, theirs, grade) for grade in ours]
    return next((one for one in found if one.finding is Finding.AGREED), found[0])


def _can_run(task: EvalTask, index: int) -> bool:
    return not (task.cannot_run and any(kind in _FOREIGN for kind in _kinds(task.graders[index])))


def _kinds(grader: Grader) -> Iterator[str]:
    """The types of a grader and of its members."""
    yield grader.type
    if isinstance(grader, Composite):
        yield from (kind for member in grader.assertions for kind in _kinds(member))
        yield grader.aggregator.type


def _whole(row: Row, task: EvalTask, said: Sequence[Transcript], trials: Sequence[Sequence[Grade]]) -> Compared:
    results = [_result(task, transcript, grades) for transcript, grades in zip(said, trials, strict=True)]
    if any(result.status is TrialStatus.ERROR for result in results):
        agreed = row.status == "execution_error" and not row.score
        return Compared(Finding.AGREED if agreed else Finding.DIFFERING, TRIAL, row, f"AgentV {row.score:g}, an error")
    metric = STRATEGIES.get(row.strategy, task.metric)
    score = _aggregated(metric, [result.score or 0.0 for result in results])
    if abs(score - row.score) <= TOLERANCE:
        return Compared(Finding.AGREED, TRIAL, row)
    return Compared(Finding.DIFFERING, TRIAL, row, f"AgentV {row.score:g} ({row.status}), passgate {score:g}")


def _result(task: EvalTask, transcript: Transcript, grades: Sequence[Grade]) -> TrialResult:
    if not transcript.complete and not transcript.messages:
        return TrialResult(TrialStatus.FAILED, "the agent crashed", 0.0)
    try:
        return trial_result(task, transcript, trial_metrics(transcript), grades)
    except MeasurementError as error:
        return TrialResult(TrialStatus.ERROR, str(error), None)


def _aggregated(metric: Metric, scores: Sequence[float]) -> float:
    """The one score that AgentV gives to several trials."""
    if len(scores) == 1:
        return scores[0]
    match metric:
        case Metric.PASS_AT_K:
            return max(scores)
        case Metric.PASS_HAT_K:
            return min(scores)
        case Metric.MEAN:
            return fmean(scores)
        case Metric.CONFIDENCE_INTERVAL:
            return mean_lower_bound(scores)


async def _grades(task: EvalTask, transcript: Transcript, row: Row, corpus: Corpus) -> list[Grade]:
    evidence = Evidence(
        task=task,
        transcript=transcript,
        metrics=trial_metrics(transcript),
        sandbox=LocalSandbox(corpus.scratch / "workspace", corpus.scratch / "scratch"),
        masker=UNMASKED,
        suites_folder=find_suites_folder(corpus.folder / row.path),
        judge=None,
    )
    judges = [judge_for(grader, corpus.folder / row.path, corpus.folder) for grader in task.graders]
    return [
        await grade(grader, replace(evidence, judge=judge)) for grader, judge in zip(task.graders, judges, strict=True)
    ]


def counted(every: Sequence[Compared]) -> Iterator[tuple[str, dict[str, int]]]:
    """How many of each finding there are per type, the most frequent type first."""
    by_type: dict[str, dict[str, int]] = {}
    for one in every:
        counts = by_type.setdefault(one.type, {})
        counts[one.finding] = counts.get(one.finding, 0) + 1
    yield from sorted(by_type.items(), key=lambda item: (item[0] == TRIAL, -sum(item[1].values()), item[0]))
