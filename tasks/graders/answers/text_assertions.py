"""The final answer against a text."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from passgate.tasks.graders.checks import expectation, scored
from passgate.tasks.graders.interface import Evidence
from passgate.tasks.graders.texts import as_json, shorten
from passgate.tasks.model.assertions import Equals, TextAssertion
from passgate.tasks.model.grade import Check, Grade
from passgate.tasks.model.json_values import parse_json, strictly_equal

BLANKS: Final = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f"
    "\u3000\ufeff"
)
"""What JavaScript takes for blank: `String.prototype.trim` (ECMA-262)."""
LONGEST_SHOWN: Final = 200

_VERBS: Final = {"contains": "contain", "icontains": "contain", "starts_with": "start with", "ends_with": "end with"}
_THIRD_PERSON: Final = {
    "contains": "contains",
    "icontains": "contains",
    "starts_with": "starts with",
    "ends_with": "ends with",
}
_HOLDS: Final[dict[str, Callable[[str, str], bool]]] = {
    "contains": lambda answer, value: value in answer,
    "icontains": lambda answer, value: value.lower() in answer.lower(),
    "starts_with": lambda answer, value: answer.strip(BLANKS).startswith(value.strip(BLANKS)),
    "ends_with": lambda answer, value: answer.strip(BLANKS).endswith(value.strip(BLANKS)),
}


async def grade_text(options: TextAssertion, evidence: Evidence) -> Grade:
    """1 when the final answer is as the text or the texts want it, else 0."""
    checks = text_checks(options, evidence.transcript.output)
    return scored(options, float(all(check.passed for check in checks)), checks)


def text_checks(options: TextAssertion, answer: str) -> list[Check]:
    """A check for every text that an answer is held against, one for all where any of them is enough."""
    rule = options.type.removesuffix("_any").removesuffix("_all")
    values = (options.value,) if isinstance(options.value, str) else options.value
    holds = [_HOLDS[rule](answer, value) for value in values]
    if options.type.endswith("_any"):
        return [_any_check(rule, values, holds)]
    return [_check(rule, value, passed=passed) for value, passed in zip(values, holds, strict=True)]


def _check(rule: str, value: str, *, passed: bool) -> Check:
    verb = _THIRD_PERSON[rule] if passed else f"does not {_VERBS[rule]}"
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
