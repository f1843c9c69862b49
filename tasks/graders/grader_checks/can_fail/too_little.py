"""Graders that an agent satisfies without the work, told from their options: nothing is run.

Such an agent repeats the prompt or answers with an empty JSON document, and leaves an empty file wherever one is looked
for. A task that it passes asks too little.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from passgate.tasks.errors import MeasurementError
from passgate.tasks.graders.answers.assertions import json_check, output_checks, schema_problems, text_checks
from passgate.tasks.graders.grader_checks.can_fail.of_task import Vacuous
from passgate.tasks.model.assertions import IsJson, TextAssertion
from passgate.tasks.model.graders import FileCheck, Grader, OutputCheck, StateCheck
from passgate.tasks.model.task import EvalTask

_EMPTY: Final = ("{}", "[]", '""', "0", "null")
_EMPTY_DOCUMENTS: Final[tuple[Any, ...]] = ({}, [], "", 0, None, False)
_REMEDY: Final = "let a grader ask for what only the work brings about: a text that the prompt lacks, a file's content"
_SCHEMA_REMEDY: Final = "say what must be in the document: `type`, `required`, `properties`"


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
    return [*open_schemas, Vacuous(place, why, _REMEDY)]


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


def _output(options: OutputCheck, answer: str) -> bool:
    # An expression can take very long, and nobody limits it here.
    return options.matches is None and all(check.passed for check in output_checks(options, answer))


def _text(options: TextAssertion, answer: str) -> bool:
    return not options.negate and all(check.passed for check in text_checks(options, answer))


def _json(options: IsJson, answer: str) -> bool:
    return not options.negate and json_check(options, answer).passed


def _state(options: StateCheck, _answer: str) -> bool:
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
    OutputCheck: _output,
    TextAssertion: _text,
    IsJson: _json,
    StateCheck: _state,
}
