"""Graders that cannot fail, and tasks that ask too little, told from their options alone: nothing is run.

A task asks too little when an agent passes it without the work: it repeats the prompt or answers with an empty JSON
document, and leaves an empty file wherever one is looked for.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from passgate.tasks.errors import MeasurementError
from passgate.tasks.graders.answers.assertions import json_check, output_checks, schema_problems, text_checks
from passgate.tasks.graders.checks import ROUNDING, scored, settled
from passgate.tasks.graders.composites.composite import recombined
from passgate.tasks.graders.grader_checks.always_true import always_true
from passgate.tasks.model.assertions import AssertionOptions, IsJson, Rubrics, ScriptAssertion, TextAssertion
from passgate.tasks.model.grade import Grade
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

    place: int | None
    """Among the task's graders, from 0; `None`: they cannot fail together."""
    why: str
    remedy: str = _REMEDY


def graders_that_cannot_fail(task: EvalTask) -> list[Vacuous]:
    """The graders of a task by which no trial can fail.

    Where all must pass, each of them. Where scores are averaged, those that bind by themselves, and else the task as a
    whole: a grader there may inform only, with the weight 0 or with points for everybody, while others can fail it.
    """
    weighted = task.scoring.rule == "weighted_average"
    binding = [(place, grader) for place, grader in enumerate(task.graders) if not weighted or _only_binds(grader)]
    reasons = [(place, cannot_fail(grader, task)) for place, grader in binding]
    found = [Vacuous(place, why) for place, why in reasons if why is not None]
    return found or (_together(task) if weighted else [])


def _only_binds(grader: Grader) -> bool:
    """Whether it is there to pass or fail; a rubric's score counts in an average whatever its own threshold is."""
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
    least = _least(grader, task)
    if least is None or not least.passed:
        return None
    return _reason(grader, task)


def _reason(grader: Grader, task: EvalTask) -> str:
    if isinstance(grader, Composite):
        inner = [why for member in grader.assertions if (why := cannot_fail(member, task)) is not None]
        return "; ".join(inner) or "it passes whatever its members come to"
    return (
        None if isinstance(grader, AssertionOptions) and grader.negate else always_true(grader)
    ) or "every score passes: its least score is 0"


def _full_score(grader: Grader, task: EvalTask) -> str | None:
    least = _least(grader, task)
    return _reason(grader, task) if least is not None and least.passed and least.score == 1 else None


def _together(task: EvalTask) -> list[Vacuous]:
    grades = [_least(grader, task) for grader in task.graders]
    known = [grade for grade in grades if grade is not None]
    if len(known) < len(grades) or any(map(_binds, task.graders, known)):
        return []
    scores = [grade.score or 0.0 for grade in known]
    mean = weighted_mean(scores, [grader.weight for grader in task.graders])
    if mean is None or mean < task.scoring.threshold - ROUNDING:
        return []
    reasons = [
        f"{grader.label}: {why}" for grader in task.graders if grader.weight and (why := _full_score(grader, task))
    ]
    why = f"no trial has less than {mean:.3g}, and {task.scoring.threshold:g} passes"
    return [Vacuous(None, "; ".join([why, *reasons]))]


def _binds(grader: Grader, least: Grade) -> bool:
    """Whether a grader by itself can fail a trial whose score is high enough."""
    return bool(least.fatal) or (not isinstance(grader, AssertionOptions) and not least.passed)


def _least(grader: Grader, task: EvalTask) -> Grade | None:
    """The grade of a grader at its least; `None` when it cannot be told."""
    if isinstance(grader, Composite) and task.scoring.compat == "agentv":
        return _leaf(grader, None)
    try:
        return recombined(grader, None, _leaf)
    except MeasurementError:
        return None


def _leaf(options: Grader, _grade: Grade | None) -> Grade:
    true = always_true(options) is not None
    if not isinstance(options, AssertionOptions) or isinstance(options, Composite | Turns):
        points = true and not isinstance(options, LlmRubric)
        return Grade(name=options.label, type=options.type, score=float(points), passed=true, fatal=_bound(options))
    if isinstance(options, ScriptAssertion) and options.threshold is not None:
        options = options.model_copy(update={"min_score": options.threshold})
    # What is negated is at its least when what it negates is at its best.
    bare = scored(options, float(true or options.negate), fatal=_bound(options))
    return settled(options, bare)


def _bound(options: Grader) -> str:
    """What may fail the whole trial beside the score of a grader."""
    if isinstance(options, Rubrics) and any(item.required for item in options.criteria):
        return "a required item is not met"
    return "one of its members may bind" if isinstance(options, Composite | Turns) else ""


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
    why = next(_without_work(task, counted), None)
    if why is None:
        return open_schemas
    place = 0 if len(task.graders) == 1 else None
    return [*open_schemas, Vacuous(place, why, _WORK_REMEDY)]


def _without_work(task: EvalTask, graders: Sequence[Grader]) -> Iterator[str]:
    """What an agent does that satisfies all of these graders without the work."""
    answers = {answer: f"answers `{answer}`" for answer in _EMPTY}
    if task.prompt:
        answers = {task.prompt: "repeats the prompt", **answers}
    files = _files(graders)
    speaks = any(not isinstance(grader, StateCheck) for grader in graders)
    leaves = [f"leaves an empty {', '.join(files)}"] if files else []
    for answer, says in answers.items():
        if graders and all(_is_satisfied(grader, answer) for grader in graders):
            yield f"an agent passes that {' and '.join([*([says] if speaks else []), *leaves])}"


def _is_satisfied(grader: Grader, answer: str) -> bool:
    """Whether an answer, beside empty files, is all that a grader asks for; false where that cannot be told."""
    satisfied: Callable[[Any, str], bool] | None = _SATISFIED.get(type(grader))
    try:
        return satisfied is not None and satisfied(grader, answer)
    except MeasurementError:
        return False


def _is_presence_alone(options: StateCheck) -> bool:
    return not options.run and all(isinstance(check, FileCheck) and _is_presence(check) for check in options.expect)


def _is_presence(check: FileCheck) -> bool:
    """Whether a check asks for a file and nothing of its content."""
    return check.exists and not (check.contains or check.matches) and check.equals in {None, ""}


def _files(graders: Sequence[Grader]) -> list[str]:
    checks = [check for grader in graders if isinstance(grader, StateCheck) for check in grader.expect]
    return list(dict.fromkeys(check.file for check in checks if isinstance(check, FileCheck)))


def _accepts_all(schema: dict[str, Any]) -> bool:
    try:
        return not any(schema_problems(schema, document) for document in _EMPTY_DOCUMENTS)
    except MeasurementError:
        return False


_SATISFIED: Final[dict[type, Callable[[Any, str], bool]]] = {
    # An expression can take very long, and nobody limits it here.
    OutputCheck: lambda part, answer: part.matches is None and all(c.passed for c in output_checks(part, answer)),
    TextAssertion: lambda part, answer: not part.negate and all(c.passed for c in text_checks(part, answer)),
    IsJson: lambda part, answer: not part.negate and json_check(part.value, answer).passed,
    StateCheck: lambda part, _: _is_presence_alone(part),
}
