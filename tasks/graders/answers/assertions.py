"""The final answer against texts, regular expressions and JSON Schemas."""

import asyncio
import json
import re
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final

import regress
from jsonschema.exceptions import SchemaError
from referencing import Registry
from referencing.exceptions import Unresolvable

from passgate.tasks.errors import MeasurementError
from passgate.tasks.graders.answers import regex_worker
from passgate.tasks.graders.checks import expectation, graded, scored
from passgate.tasks.graders.interface import Evidence
from passgate.tasks.graders.texts import as_json, found, shorten
from passgate.tasks.model.assertions import Equals, IsJson, Regex, TextAssertion
from passgate.tasks.model.grade import Check, Grade
from passgate.tasks.model.graders import OutputCheck
from passgate.tasks.model.javascript_regex import engine_flags, regex_problem
from passgate.tasks.model.json_values import parse_json, strictly_equal
from passgate.tasks.model.schema_draft import draft_of

MOST_ERRORS: Final = 5
BLANKS: Final = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f"
    "\u3000\ufeff"
)  # What JavaScript takes for blank: `String.prototype.trim` (ECMA-262)
LONGEST_SHOWN: Final = 200
CPU_SECONDS: Final = 2  # CPU time of one search: a busy machine does not make it fail
WALL_SECONDS: Final = 60
LONGEST_TEXT: Final = 10_000_000  # Characters of one text that is searched
_HALF_CHARACTERS: Final = re.compile("[\ud800-\udfff]")
_TOO_SLOW: Final = frozenset({-signal.SIGKILL, -signal.SIGXCPU})
_RULES: Final[dict[str, tuple[str, str, Callable[[str, str], bool]]]] = {
    "contains": ("contains", "does not contain", str.__contains__),
    "starts_with": ("starts with", "does not start with", str.startswith),
    "ends_with": ("ends with", "does not end with", str.endswith),
}  # What an answer does that keeps a rule, what it does not do else, and whether it keeps it


async def grade_output(options: OutputCheck, evidence: Evidence) -> Grade:
    """Hold the final answer against what is expected of it. The score is the share of checks that passed.

    `equals` disregards blanks around both texts: programs end their output with a line end. Raises
    `MeasurementError` when the JSON Schema of the options cannot be used.
    """
    return graded(options, list(output_checks(options, evidence.transcript.output)))


def output_checks(options: OutputCheck, answer: str) -> Iterator[Check]:
    """A check for everything that the options expect of an answer."""

    def fold(text: str) -> str:
        return text.casefold() if options.ignore_case else text

    text = fold(answer)
    if options.equals is not None:
        message = f"the answer is {shorten(answer, 500)!r}, expected {shorten(options.equals, 500)!r}"
        yield Check(passed=text.strip() == fold(options.equals).strip(), message=message)
    texts = [*((value, True) for value in options.contains), *((value, False) for value in options.not_contains)]
    for value, is_wanted in texts:
        is_there = fold(value) in text
        has = "contains" if is_there else "does not contain"
        expected = expectation(passed=is_there is is_wanted, must="" if is_wanted else "not")
        yield Check(passed=is_there is is_wanted, message=f"the answer {has} {value!r}{expected}")
    if options.matches is not None:
        passed = found(options.matches, answer, ignore_case=options.ignore_case)
        verb = "matches" if passed else "does not match"
        yield Check(passed=passed, message=f"the answer {verb} {options.matches!r}{expectation(passed=passed)}")
    if options.json_schema is not None:
        yield json_check(options.json_schema, answer)


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
        draft = draft_of(schema)
        draft.check_schema(schema)
        # With a registry of its own the validator fetches nothing from the network.
        errors = draft(schema, registry=Registry()).iter_errors(document)
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
    """1 when the final answer fits the text or the texts, else 0."""
    checks = text_checks(options, evidence.transcript.output)
    return scored(options, float(all(check.passed for check in checks)), checks)


def text_checks(options: TextAssertion, answer: str) -> list[Check]:
    """A check for every wanted text; where any one of them is enough, one check for all."""
    rule = options.type.removesuffix("_any").removesuffix("_all")
    yes, no, holds = _RULES[rule.removeprefix("i")]
    case = " (ignoring case)" if rule == "icontains" else ""
    values = (options.value,) if isinstance(options.value, str) else options.value
    shown = [repr(shorten(value, LONGEST_SHOWN)) for value in values]
    if rule == "icontains":
        answer, values = answer.lower(), tuple(value.lower() for value in values)
    elif rule != "contains":
        # A line end behind the answer must not decide `ends_with`.
        answer, values = answer.strip(BLANKS), tuple(value.strip(BLANKS) for value in values)
    results = [(text, holds(answer, value)) for text, value in zip(shown, values, strict=True)]
    if options.type.endswith("_any"):
        first = next((text for text, passed in results if passed), None)
        what = f"none of {shorten(', '.join(shown), 1000)}" if first is None else first
        expected = expectation(passed=first is not None, must="contain one of them")
        return [Check(passed=first is not None, message=f"the answer contains {what}{case}{expected}")]
    return [
        Check(passed=passed, message=f"the answer {yes if passed else no} {text}{case}{expectation(passed=passed)}")
        for text, passed in results
    ]


async def grade_equals(options: Equals, evidence: Evidence) -> Grade:
    """1 when the final answer is the value, else 0: texts but for the blanks around them, anything else as JSON."""
    answer = evidence.transcript.output.strip(BLANKS)
    try:
        if isinstance(options.value, str):
            passed = answer == options.value.strip(BLANKS)
        else:
            passed = strictly_equal(parse_json(answer), options.value)
    except (ValueError, RecursionError):
        passed = False
    message = f"the answer is {shorten(answer, LONGEST_SHOWN)!r}, expected {as_json(options.value)}"
    return scored(options, float(passed), [Check(passed=passed, message=message)])


async def grade_regex(options: Regex, evidence: Evidence) -> Grade:
    """1 when the regular expression is found in the final answer, else 0.

    Raises `MeasurementError` as `regex_found` does.
    """
    is_found = await regex_found(options.value, options.flags, evidence.transcript.output)
    shown = shorten(f"/{options.value}/{options.flags}", 500)
    message = f"the answer {'matches' if is_found else 'does not match'} {shown}{expectation(passed=is_found)}"
    return scored(options, float(is_found), [Check(passed=is_found, message=message)])


async def regex_found(pattern: str, flags: str, text: str) -> bool:
    """Whether a regular expression is found in a text, as by JavaScript's `new RegExp(pattern, flags).test(text)`.

    Raises `MeasurementError` when JavaScript does not take the expression, and when the search takes too long.
    """
    problem = regex_problem(pattern, flags)
    if problem is not None:
        raise MeasurementError(f"/{shorten(pattern, 500)}/: {problem}")
    if len(text) > LONGEST_TEXT:
        raise MeasurementError(f"a text of {len(text)} characters is too long for a regular expression")
    request = [pattern, engine_flags(flags), _HALF_CHARACTERS.sub("\ufffd", text), "y" in flags]
    folder = Path(regress.__file__).parent.parent
    command = [sys.executable, "-I", "-S", regex_worker.__file__, str(folder), str(CPU_SECONDS)]
    process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env={})
    answer = await _answer(process, json.dumps(request).encode())
    if process.returncode in _TOO_SLOW:
        raise MeasurementError(
            f"/{shorten(pattern, 500)}/ takes more than {CPU_SECONDS} s on this text: simplify it, "
            "and avoid a repetition inside another one"
        )
    if process.returncode != 0 or answer not in {b"true", b"false"}:
        raise MeasurementError(f"the search for /{shorten(pattern, 500)}/ ended with {process.returncode}")
    return answer == b"true"


async def _answer(process: Process, request: bytes) -> bytes:
    try:
        async with asyncio.timeout(WALL_SECONDS):
            return (await process.communicate(request))[0]
    except TimeoutError:
        return b""
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
