"""The final answer against texts and JSON Schemas."""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, Final

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from referencing import Registry
from referencing.exceptions import Unresolvable

from passgate.tasks.errors import MeasurementError
from passgate.tasks.graders.checks import expectation, graded, scored
from passgate.tasks.graders.interface import Evidence
from passgate.tasks.graders.texts import as_json, found, shorten
from passgate.tasks.model.assertions import Equals, IsJson, TextAssertion
from passgate.tasks.model.grade import Check, Grade
from passgate.tasks.model.graders import OutputCheck
from passgate.tasks.model.json_values import parse_json, strictly_equal

MOST_ERRORS: Final = 5
BLANKS: Final = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f"
    "\u3000\ufeff"
)
"""What JavaScript takes for blank: `String.prototype.trim` (ECMA-262)."""
LONGEST_SHOWN: Final = 200
_RULES: Final[dict[str, tuple[str, str, Callable[[str, str], bool]]]] = {
    "contains": ("contains", "does not contain", lambda answer, value: value in answer),
    "icontains": ("contains", "does not contain", lambda answer, value: value.lower() in answer.lower()),
    "starts_with": (
        "starts with",
        "does not start with",
        lambda answer, value: answer.strip(BLANKS).startswith(value.strip(BLANKS)),
    ),
    "ends_with": (
        "ends with",
        "does not end with",
        lambda answer, value: answer.strip(BLANKS).endswith(value.strip(BLANKS)),
    ),
}
"""What an answer does that keeps a rule, what it does not do else, and whether it keeps it."""


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
        yield json_check(options.json_schema, answer)


def _folded(options: OutputCheck, text: str) -> str:
    return text.casefold() if options.ignore_case else text


def _has(is_there: bool) -> str:
    return "contains" if is_there else "does not contain"


def json_check(schema: dict[str, Any] | None, answer: str, parse: Callable[[str], Any] = parse_json) -> Check:
    """Whether an answer is JSON, and as a JSON Schema wants it. Raises `MeasurementError` when that cannot be used."""
    try:
        document = parse(answer)
    except ValueError as error:
        return Check(passed=False, message=f"the answer is not JSON: {error}: {shorten(answer, 200)!r}")
    problems = [] if schema is None else schema_problems(schema, document)
    kept = "the answer is JSON" if schema is None else "the answer matches the JSON Schema"
    return Check(passed=not problems, message="; ".join(problems) or kept)


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


async def grade_is_json(options: IsJson, evidence: Evidence) -> Grade:
    """1 when the final answer is a JSON document, and as the JSON Schema of the options wants it, else 0.

    Raises `MeasurementError` when that schema cannot be used.
    """
    check = json_check(options.value, evidence.transcript.output)
    return scored(options, float(check.passed), [check])


async def grade_text(options: TextAssertion, evidence: Evidence) -> Grade:
    """1 when the final answer is as the text or the texts want it, else 0."""
    checks = text_checks(options, evidence.transcript.output)
    return scored(options, float(all(check.passed for check in checks)), checks)


def text_checks(options: TextAssertion, answer: str) -> list[Check]:
    """A check for every text that an answer is held against, one for all where any of them is enough."""
    rule = options.type.removesuffix("_any").removesuffix("_all")
    values = (options.value,) if isinstance(options.value, str) else options.value
    holds = [_RULES[rule][2](answer, value) for value in values]
    if options.type.endswith("_any"):
        return [_any_check(rule, values, holds)]
    return [_check(rule, value, passed=passed) for value, passed in zip(values, holds, strict=True)]


def _check(rule: str, value: str, *, passed: bool) -> Check:
    verb = _RULES[rule][0 if passed else 1]
    return Check(passed=passed, message=f"the answer {verb} {_shown(value)}{_case(rule)}{expectation(passed=passed)}")


def _any_check(rule: str, values: Sequence[str], holds: Sequence[bool]) -> Check:
    found = next((value for value, passed in zip(values, holds, strict=True) if passed), None)
    what = shorten(", ".join(map(_shown, values)), 1000) if found is None else _shown(found)
    none_of = " none of" if found is None else ""
    expected = expectation(passed=found is not None, must="contain one of them")
    return Check(passed=found is not None, message=f"the answer contains{none_of} {what}{_case(rule)}{expected}")


def _case(rule: str) -> str:
    return " (ignoring case)" if rule.startswith("i") else ""


def _shown(value: str) -> str:
    return repr(shorten(value, LONGEST_SHOWN))


async def grade_equals(options: Equals, evidence: Evidence) -> Grade:
    """1 when the final answer is the value, else 0: texts but for the blanks around them, anything else as JSON."""
    answer = evidence.transcript.output.strip(BLANKS)
    if isinstance(options.value, str):
        passed = answer == options.value.strip(BLANKS)
    else:
        passed = _is_document(answer, options.value)
    message = f"the answer is {_shown(answer)}, expected {as_json(options.value)}"
    return scored(options, float(passed), [Check(passed=passed, message=message)])


def _is_document(answer: str, value: Any) -> bool:
    try:
        return strictly_equal(parse_json(answer), value)
    except (ValueError, RecursionError):
        return False
