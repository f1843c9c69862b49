"""The final answer against texts, regular expressions and JSON Schemas; its length."""

import asyncio
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from typing import Any, Final

from jsonschema.exceptions import SchemaError
from referencing import Registry
from referencing.exceptions import Unresolvable

from passgate.tasks.errors import MeasurementError, Quote, Raw
from passgate.tasks.graders.evidence import Evidence, checks_grade, expectation, score_grade
from passgate.tasks.graders.searches import SPACES, found, found_in, javascript_found, look_alike, match_hint
from passgate.tasks.model.assertions import Equals, IsJson, Regex, TextAssertion
from passgate.tasks.model.grade import RawCheck, RawGrade
from passgate.tasks.model.graders import MaxLength, OutputCheck
from passgate.tasks.model.json_values import leaves, parse_json, schema_patterns, schema_validator, strictly_equal
from passgate.tasks.model.quotes import quote, quote_json, quote_repr, raw, raw_join

MOST_ERRORS: Final = 5
BLANKS: Final = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f"
    "\u3000\ufeff"
)  # What JavaScript takes for blank: `String.prototype.trim` (ECMA-262)
LONGEST_SHOWN: Final = 200
_RULES: Final[dict[str, tuple[str, str, Callable[[str, str], bool]]]] = {
    "contains": ("contains", "does not contain", str.__contains__),
    "starts_with": ("starts with", "does not start with", str.startswith),
    "ends_with": ("ends with", "does not end with", str.endswith),
}  # What an answer does that keeps a rule, what it does not do else, and whether it keeps it


async def grade_output(options: OutputCheck, evidence: Evidence) -> RawGrade:
    """Hold the final answer against what is expected of it. The score is the share of checks that passed.

    Texts compare as readers see them: composed or decomposed letters, and kinds of spaces, make no difference.
    `equals` disregards blanks around both texts: programs end their output with a line end. Raises
    `MeasurementError` when the JSON Schema of the options cannot be used, and as `found` does.
    """
    answer = evidence.final_answer
    await _refuse_slow_patterns(options.json_schema, answer)
    checks = list(output_checks(options, answer))
    if options.matches is not None:
        passed = await found(options.matches, answer, ignore_case=options.ignore_case)
        verb = "matches" if passed else "does not match"
        hint = "" if passed else await match_hint(options.matches, answer, ignore_case=options.ignore_case)
        message = f"the answer {verb} {options.matches!r}{expectation(passed=passed)}{hint}"
        # The JSON Schema, which says most, stays last.
        place = len(checks) - (options.json_schema is not None)
        checks.insert(place, RawCheck(passed=passed, message=message))
    return checks_grade(options, checks)


def output_checks(options: OutputCheck, answer: str) -> Iterator[RawCheck]:
    """Yield a check for everything that the options expect of an answer but `matches`, whose search takes a process."""

    def fold(text: str) -> str:
        plain = unicodedata.normalize("NFC", text).translate(SPACES)
        return plain.casefold() if options.ignore_case else plain

    text = fold(answer)
    if options.equals is not None:
        passed = text.strip() == fold(options.equals).strip()
        message = raw("the answer is ", quote_repr(answer, 500), ", expected ", quote_repr(options.equals, 500))
        if not passed:
            wanted = options.equals.strip()
            message = raw(message, look_alike(wanted, answer.strip(), whole=True, ignore_case=options.ignore_case))
        yield RawCheck(passed=passed, message=message)
    texts = [*((value, True) for value in options.contains), *((value, False) for value in options.not_contains)]
    for value, is_wanted in texts:
        is_there = fold(value) in text
        has = "contains" if is_there else "does not contain"
        expected = expectation(passed=is_there is is_wanted, must="" if is_wanted else "not")
        alike = "" if is_there else look_alike(value, answer, ignore_case=options.ignore_case)
        yield RawCheck(passed=is_there is is_wanted, message=raw(f"the answer {has} {value!r}{expected}", alike))
    if options.json_schema is not None:
        yield json_check(options.json_schema, answer)


def json_check(schema: dict[str, Any] | None, answer: str) -> RawCheck:
    """Check that an answer is JSON, and as a JSON Schema wants it. Raises `MeasurementError` for an unusable schema."""
    try:
        document = parse_json(answer)
    except ValueError as error:
        return RawCheck(passed=False, message=raw(f"the answer is not JSON: {error}: ", quote_repr(answer, 200)))
    problems = [] if schema is None else schema_problems(schema, document)
    kept = "the answer is JSON" if schema is None else "the answer matches the JSON Schema"
    return RawCheck(passed=not problems, message=raw_join("; ", problems) or kept)


def schema_problems(schema: dict[str, Any], document: Any) -> list[Raw]:
    """Return the first few places where a document is not as a JSON Schema wants it. Raises `MeasurementError` when the
    schema cannot be used.
    """
    try:
        validator = schema_validator(schema)
        validator.check_schema(schema)
        # With a registry of its own the validator fetches nothing from the network.
        errors = validator(schema, registry=Registry()).iter_errors(document)
        return [raw(f"{error.json_path}: ", quote(error.message, 300)) for error in islice(errors, MOST_ERRORS)]
    except (SchemaError, Unresolvable) as error:
        raise MeasurementError(raw("json_schema cannot be used: ", quote(str(error), 500))) from error
    except RecursionError:
        return ["the answer is nested too deeply"]


async def _refuse_slow_patterns(schema: dict[str, Any] | None, answer: str) -> None:
    """Raise `MeasurementError` if a regular expression of a JSON Schema takes too long on a text of the answer: the
    validator searches the same texts, and without a limit.
    """
    patterns = {} if schema is None else dict.fromkeys(schema_patterns(schema))
    if patterns:
        with suppress(ValueError):
            texts = [one for one in leaves(parse_json(answer)) if isinstance(one, str)]
            await asyncio.gather(*(found_in(pattern, texts) for pattern in patterns))


async def grade_is_json(options: IsJson, evidence: Evidence) -> RawGrade:
    """Return 1 when the final answer is a JSON document, and as the JSON Schema of the options wants it, else 0. Raises
    `MeasurementError` when that schema cannot be used.
    """
    await _refuse_slow_patterns(options.value, evidence.final_answer)
    check = json_check(options.value, evidence.final_answer)
    return score_grade(options, float(check.passed), [check])


async def grade_text(options: TextAssertion, evidence: Evidence) -> RawGrade:
    """Return 1 when the final answer fits the text or the texts, else 0."""
    checks = text_checks(options, evidence.final_answer)
    return score_grade(options, float(all(check.passed for check in checks)), checks)


def text_checks(options: TextAssertion, answer: str) -> list[RawCheck]:
    """Return a check for every wanted text; where any one of them is enough, one check for all."""
    rule = options.type.removesuffix("_any").removesuffix("_all")
    yes, no, holds = _RULES[rule.removeprefix("i")]
    case = " (ignoring case)" if rule == "icontains" else ""
    values = (options.value,) if isinstance(options.value, str) else options.value
    quoted = [quote_repr(value, LONGEST_SHOWN) for value in values]
    alike = [look_alike(value, answer, ignore_case=rule == "icontains") for value in values]
    if rule == "icontains":
        answer, values = answer.lower(), tuple(value.lower() for value in values)
    elif rule != "contains":
        # A line end behind the answer must not decide `ends_with`.
        answer, values = answer.strip(BLANKS), tuple(value.strip(BLANKS) for value in values)
    results = [(text, holds(answer, value)) for text, value in zip(quoted, values, strict=True)]
    if options.type.endswith("_any"):
        first = next((text for text, passed in results if passed), None)
        what = raw("none of ", Quote(raw_join(", ", quoted), 1000)) if first is None else first
        expected = expectation(passed=first is not None, must="contain one of them")
        return [RawCheck(passed=first is not None, message=raw("the answer contains ", what, case, expected))]
    checks = []
    for (text, passed), other in zip(results, alike, strict=True):
        expected = expectation(passed=passed)
        message = raw(f"the answer {yes if passed else no} ", text, case, expected, "" if passed else other)
        checks.append(RawCheck(passed=passed, message=message))
    return checks


async def grade_equals(options: Equals, evidence: Evidence) -> RawGrade:
    """Return 1 when the final answer is the value, else 0: texts without blanks around them, anything else as JSON."""
    answer = evidence.final_answer.strip(BLANKS)
    try:
        if isinstance(options.value, str):
            passed = answer == options.value.strip(BLANKS)
        else:
            passed = strictly_equal(parse_json(answer), options.value)
    except (ValueError, RecursionError):
        passed = False
    message = raw("the answer is ", quote_repr(answer, LONGEST_SHOWN), ", expected ", quote_json(options.value))
    if not passed and isinstance(options.value, str):
        message = raw(message, look_alike(options.value.strip(BLANKS), answer, whole=True))
    return score_grade(options, float(passed), [RawCheck(passed=passed, message=message)])


async def grade_regex(options: Regex, evidence: Evidence) -> RawGrade:
    """Return 1 when the regular expression is found in the final answer, else 0. Raises `MeasurementError` as
    `javascript_found` does.
    """
    is_found = await javascript_found(options.value, options.flags, evidence.final_answer)
    verb, pattern = "matches" if is_found else "does not match", quote(f"/{options.value}/{options.flags}", 500)
    message = raw(f"the answer {verb} ", pattern, expectation(passed=is_found))
    return score_grade(options, float(is_found), [RawCheck(passed=is_found, message=message)])


async def grade_max_length(options: MaxLength, evidence: Evidence) -> RawGrade:
    """Count the Unicode characters of the final answer, without the blanks around it."""
    length = len(evidence.final_answer.strip())
    message = f"the answer has {length} characters, at most {options.characters} are allowed"
    return checks_grade(options, [RawCheck(passed=length <= options.characters, message=message)])
