"""Graders that cannot fail, and tasks that ask too little, told from their options alone: nothing is run.

A task asks too little when an agent passes it without the work: it repeats the prompt or answers with an empty JSON
document, and leaves an empty file wherever one is looked for.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from passgate.tasks.errors import MeasurementError
from passgate.tasks.graders.answers.assertions import json_check, output_checks, schema_problems, text_checks
from passgate.tasks.graders.checks import ROUNDING, scored, settled
from passgate.tasks.graders.composites.composite import recombined
from passgate.tasks.graders.grader_checks.always_true import always_true
from passgate.tasks.model.assertions import AssertionOptions, IsJson, Rubrics, ScriptAssertion, TextAssertion
from passgate.tasks.model.grade import RawGrade
from passgate.tasks.model.graders import Composite, FileCheck, Grader, LlmRubric, OutputCheck, StateCheck, Turns
from passgate.tasks.model.task import EvalTask
from passgate.tasks.stats.estimators import weighted_mean

_REMEDY: Final = "say what must be so, or take it out"
_EMPTY: Final = ("{}", "[]", '""', "0", "null")
_EMPTY_DOCUMENTS: Final[tuple[Any, ...]] = ({}, [], "", 0, None, False)
_WORK_REMEDY: Final = (
    "let a grader ask for what only the work brings about: a text that the prompt lacks, a file's content"
)
_SCHEMA_REMEDY: Final = "say what must be in the document: `type`, `required`, `properties`"


class Vacuous(NamedTuple):
    """A grader of a task that cannot fail, or all of them together."""

    place: int | None  # Among the task's graders, from 0; `None`: they cannot fail together
    why: str
    remedy: str = _REMEDY


def graders_that_cannot_fail(task: EvalTask) -> list[Vacuous]:
    """The graders of a task by which no trial can fail.

    Where all must pass, each of them. Where scores are averaged, those that bind by themselves, and else the task as a
    whole: a grader there may inform only, with the weight 0 or with points for everybody, while others can fail it.
    """
    weighted = task.scoring.rule == "weighted_average"
    found = [
        Vacuous(place, why)
        for place, grader in enumerate(task.graders)
        if (not weighted or _only_binds(grader)) and (why := cannot_fail(grader, task)) is not None
    ]
    return found or (_together(task) if weighted else [])


def _only_binds(grader: Grader) -> bool:
    # A rubric's score counts in an average whatever its own threshold is.
    return not isinstance(grader, AssertionOptions | LlmRubric)


def gives_points_for_nothing(task: EvalTask) -> list[Vacuous]:
    """The graders of an average that have a weight and give every trial all of their points."""
    if task.scoring.rule != "weighted_average":
        return []
    remedy = f"{_REMEDY}, or give it the weight 0"
    return [
        Vacuous(place, why, remedy)
        for place, grader in enumerate(task.graders)
        if grader.weight and not _only_binds(grader) and (why := _full_score(grader, task)) is not None
    ]


def cannot_fail(grader: Grader, task: EvalTask) -> str | None:
    """Why a grader passes whatever the agent does; `None` when it can fail, or when that cannot be told."""
    least = _least(grader)
    if least is None or not least.passed:
        return None
    if isinstance(grader, Composite):
        inner = [why for member in grader.assertions if (why := cannot_fail(member, task)) is not None]
        return "; ".join(inner) or "it passes whatever its members come to"
    negated = isinstance(grader, AssertionOptions) and grader.negate
    return (None if negated else always_true(grader)) or "every score passes: its least score is 0"


def _full_score(grader: Grader, task: EvalTask) -> str | None:
    least = _least(grader)
    return cannot_fail(grader, task) if least is not None and least.score == 1 else None


def _together(task: EvalTask) -> list[Vacuous]:
    grades = [_least(grader) for grader in task.graders]
    known = [grade for grade in grades if grade is not None]
    if len(known) < len(grades):
        return []
    # A grader that is bound, or one of passgate's own that fails, fails the trial however high the mean is.
    pairs = zip(task.graders, known, strict=True)
    if any(grade.fatal or not (grade.passed or isinstance(grader, AssertionOptions)) for grader, grade in pairs):
        return []
    mean = weighted_mean([grade.score or 0.0 for grade in known], [grader.weight for grader in task.graders])
    if mean is None or mean < task.scoring.threshold - ROUNDING:
        return []
    reasons = [
        f"{grader.label}: {why}" for grader in task.graders if grader.weight and (why := _full_score(grader, task))
    ]
    why = f"no trial has less than {mean:.3g}, and {task.scoring.threshold:g} passes"
    return [Vacuous(None, "; ".join([why, *reasons]))]


def _least(grader: Grader) -> RawGrade | None:
    """The grade of a grader at its least; `None` when it cannot be told."""
    try:
        return recombined(grader, None, _leaf)
    except MeasurementError:
        return None


def _leaf(options: Grader, _grade: RawGrade | None) -> RawGrade:
    true = always_true(options) is not None
    fatal = "one of its members may bind" if isinstance(options, Composite | Turns) else ""
    if isinstance(options, Rubrics) and any(item.required for item in options.criteria):
        fatal = "a required item is not met"
    if not isinstance(options, AssertionOptions) or isinstance(options, Composite | Turns):
        points = true and not isinstance(options, LlmRubric)
        return RawGrade(name=options.label, type=options.type, score=float(points), passed=true, fatal=fatal)
    if isinstance(options, ScriptAssertion) and options.threshold is not None:
        options = options.model_copy(update={"min_score": options.threshold})
    # What is negated is at its least when what it negates is at its best.
    return settled(options, scored(options, float(true or options.negate), fatal=fatal))


def graders_that_ask_too_little(task: EvalTask) -> list[Vacuous]:
    """The graders of a task that an agent satisfies without the work, where no other grader asks for more; and those
    whose JSON Schema accepts every document.
    """
    weighted = task.scoring.rule == "weighted_average"
    counted = [grader for grader in task.graders if grader.weight or not weighted]
    open_schemas = [
        Vacuous(place, "every JSON document is as its json_schema wants it", _SCHEMA_REMEDY)
        for place, grader in enumerate(task.graders)
        if isinstance(grader, OutputCheck) and grader.json_schema is not None and _accepts_all(grader.json_schema)
    ]
    why = _without_work(task, counted)
    if why is None:
        return open_schemas
    place = 0 if len(task.graders) == 1 else None
    return [*open_schemas, Vacuous(place, why, _WORK_REMEDY)]


def _accepts_all(schema: dict[str, Any]) -> bool:
    try:
        return not any(schema_problems(schema, document) for document in _EMPTY_DOCUMENTS)
    except MeasurementError:
        return False


def _without_work(task: EvalTask, graders: Sequence[Grader]) -> str | None:
    """What an agent does that satisfies all of these graders without the work."""
    answers = {answer: f"answers `{answer}`" for answer in _EMPTY}
    if task.prompt:
        answers = {task.prompt: "repeats the prompt", **answers}
    checks = [check for grader in graders if isinstance(grader, StateCheck) for check in grader.expect]
    files = dict.fromkeys(check.file for check in checks if isinstance(check, FileCheck))
    leaves = [f"leaves an empty {', '.join(files)}"] if files else []
    speaks = any(not isinstance(grader, StateCheck) for grader in graders)
    for answer, says in answers.items():
        if graders and all(_is_satisfied(grader, answer) for grader in graders):
            return f"an agent passes that {' and '.join([*([says] if speaks else []), *leaves])}"
    return None


def _is_satisfied(part: Grader, answer: str) -> bool:
    """Whether an answer, beside empty files, is all that a grader asks for; false where that cannot be told."""
    try:
        match part:
            case OutputCheck():
                # An expression can take very long, and nobody limits it here.
                return part.matches is None and all(check.passed for check in output_checks(part, answer))
            case TextAssertion():
                return not part.negate and all(check.passed for check in text_checks(part, answer))
            case IsJson():
                return not part.negate and json_check(part.value, answer).passed
            case StateCheck():
                files = [check for check in part.expect if isinstance(check, FileCheck) and check.exists]
                asks_for_more = part.run or len(files) < len(part.expect)
                return not asks_for_more and not any(one.contains or one.matches or one.equals for one in files)
            case _:
                return False
    except MeasurementError:
        return False
