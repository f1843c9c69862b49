"""AgentV's grades beside passgate's: which belong together, and whether their scores are the same."""

from collections.abc import Collection, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from passgate.tasks.formats.evals.graders import FORMS
from passgate.tasks.model.grade import Grade
from passgate.tasks.model.graders import Grader
from tests.conformance.rows import RecordedGrade, Row

TOLERANCE: Final = 1e-9
TRIAL: Final = "test score"
"""What the comparison of whole tests is counted under."""
_JUDGED: Final = frozenset({"llm_grader", "rubrics"})
_TYPES: Final = {
    "script": {"code_grader"},
    "code_judge": {"code_grader"},
    "llm_judge": _JUDGED,
    "llm_grader": _JUDGED,
    "llm_rubric": _JUDGED,
    "rubric": _JUDGED,
    "rubrics": _JUDGED,
    "assert_set": {"composite"},
    "skill_used": {"skill_trigger"},
    "trajectory:tool_used": {"tool_used"},
    "trajectory:tool_sequence": {"tool_sequence"},
    "trajectory:tool_args_match": {"tool_arguments"},
    "trajectory:step_count": {"step_count"},
}


_KNOWN: Final = frozenset(name for form in FORMS for name in form.names)


class Finding(StrEnum):
    AGREED = "agreed"
    DIFFERING = "differing"
    NOT_RUNNABLE = "not runnable"


class Compared(NamedTuple):
    """One score of AgentV against ours."""

    finding: Finding
    type: str
    """AgentV's name of the grader's type, or `test score`."""
    row: Row
    detail: str = ""
    dropped: tuple[str, ...] = ()
    """The types of the test's graders that AgentV has no grade of."""


def types_of(recorded: str) -> Collection[str]:
    """passgate's types that a type of AgentV can have become; a type of neither is a program of the repository."""
    name = recorded.removeprefix("not-").replace("-", "_")
    return _TYPES.get(name, {name if name in _KNOWN else "code_grader"})


def pairs(
    graders: Sequence[Grader], recorded: Sequence[RecordedGrade]
) -> tuple[list[tuple[int, RecordedGrade]], list[RecordedGrade]]:
    """Which of AgentV's grades belongs to which grader, by type, name and order; and those that belong to none."""
    free = list(range(len(graders)))
    matched, alone = [], []
    for grade in recorded:
        fitting = [index for index in free if graders[index].type in types_of(grade.type)]
        named = [index for index in fitting if graders[index].name == grade.name]
        chosen = next(iter([*named, *fitting]), None)
        if chosen is None:
            alone.append(grade)
        else:
            free.remove(chosen)
            matched.append((chosen, grade))
    return matched, alone


def compared(row: Row, theirs: RecordedGrade, ours: Grade) -> Compared:
    """One grader's two scores. Where AgentV could not measure, passgate must not have measured either."""
    if ours.score is None:
        finding = Finding.AGREED if theirs.skipped else Finding.DIFFERING
        return Compared(finding, theirs.type, row, f"{theirs.name}: AgentV {theirs.score:g}, passgate: {ours.error}")
    if not theirs.skipped and abs(ours.score - theirs.score) <= TOLERANCE:
        return Compared(Finding.AGREED, theirs.type, row)
    said = "skipped" if theirs.skipped else f"{theirs.score:g}"
    return Compared(Finding.DIFFERING, theirs.type, row, f"{theirs.name}: AgentV {said}, passgate {ours.score:g}")
