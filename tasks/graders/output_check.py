"""The agent's final answer."""

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from referencing import Registry
from referencing.exceptions import Unresolvable

from passgate.tasks.errors import MeasurementError
from passgate.tasks.graders.checks import expectation, graded
from passgate.tasks.graders.interface import Evidence
from passgate.tasks.graders.texts import found, shorten
from passgate.tasks.model.grade import Check, Grade
from passgate.tasks.model.graders import OutputCheck
from passgate.tasks.model.json_values import parse_json

MOST_ERRORS: Final = 5


async def grade_output(options: OutputCheck, evidence: Evidence) -> Grade:
    """Hold the final answer against what is expected of it. The score is the share of checks that passed.

    `equals` disregards blanks around both texts: programs end their output with a line end. Raises
    `MeasurementError` when the JSON Schema of the options cannot be used.
    """
    return graded(options, list(output_checks(options, evidence.transcript.output)))


def output_checks(options: OutputCheck, answer: str) -> Iterator[Check]:
    """A check for everything that the options expect of an answer."""
    text = _folded(options, answer)
    if options.equals is not None:
        message = f"the answer is {shorten(answer, 500)!r}, expected {shorten(options.equals, 500)!r}"
        yield Check(passed=text.strip() == _folded(options, options.equals).strip(), message=message)
    for wanted in options.contains:
        is_there = _folded(options, wanted) in text
        yield Check(passed=is_there, message=f"the answer {_has(is_there)} {wanted!r}{expectation(passed=is_there)}")
    for unwanted in options.not_contains:
        is_there = _folded(options, unwanted) in text
        expected = expectation(passed=not is_there, must="not")
        yield Check(passed=not is_there, message=f"the answer {_has(is_there)} {unwanted!r}{expected}")
    if options.matches is not None:
        passed = found(options.matches, answer, ignore_case=options.ignore_case)
        verb = "matches" if passed else "does not match"
        yield Check(passed=passed, message=f"the answer {verb} {options.matches!r}{expectation(passed=passed)}")
    if options.json_schema is not None:
        yield _schema_check(options.json_schema, answer)


def _folded(options: OutputCheck, text: str) -> str:
    return text.casefold() if options.ignore_case else text


def _has(is_there: bool) -> str:
    return "contains" if is_there else "does not contain"


def _schema_check(schema: dict[str, Any], answer: str) -> Check:
    try:
        document = parse_json(answer)
    except ValueError as error:
        return Check(passed=False, message=f"the answer is not JSON: {error}: {shorten(answer, 200)!r}")
    problems = schema_problems(schema, document)
    message = "; ".join(problems) if problems else "the answer matches the JSON Schema"
    return Check(passed=not problems, message=message)


def schema_problems(schema: dict[str, Any], document: Any) -> list[str]:
    """Where a document is not as a JSON Schema wants it: the first few places. Nothing is fetched from the network.

    Raises `MeasurementError` when the schema cannot be used.
    """
    try:
        Draft202012Validator.check_schema(schema)
        # With a registry of its own the validator fetches nothing from the network.
        errors = Draft202012Validator(schema, registry=Registry()).iter_errors(document)
        return [f"{error.json_path}: {shorten(error.message, 300)}" for error in islice(errors, MOST_ERRORS)]
    except (SchemaError, Unresolvable) as error:
        raise MeasurementError(f"json_schema cannot be used: {shorten(str(error), 500)}") from error
    except RecursionError:
        return ["the answer is nested too deeply"]
