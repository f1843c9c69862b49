"""From checks to a grade."""

from collections.abc import Awaitable, Iterable, Sequence
from typing import Final

from passgate.tasks.errors import MeasurementError
from passgate.tasks.model.assertions import AssertionOptions
from passgate.tasks.model.grade import Check, Grade, Violation
from passgate.tasks.model.graders import Grader

PASS_FROM: Final = 0.8  # The least score that passes, where nothing else is said
BORDERLINE_FROM: Final = 0.6
"""Below what passes and from here on a score is called borderline (AgentEvals); it fails all the same."""
ROUNDING: Final = 1e-9  # 0.1 + 0.2 is not to fall short of 0.3
AS_EXPECTED: Final = ", as expected"
_BUT_MUST: Final = ", but must"


def graded(
    options: Grader, checks: Sequence[Check], violations: Sequence[Violation] = (), score: float | None = None
) -> Grade:
    """The grade of checks that must all pass; any violation fails it too.

    `score` is the share of passed checks when it is not given. Raises `MeasurementError` without checks: a grader that
    checks nothing must not pass.
    """
    if not checks:
        raise MeasurementError(f"{options.label} has nothing to check: set at least one option")
    share = sum(check.passed for check in checks) / len(checks)
    return Grade(
        name=options.label,
        type=options.type,
        score=share if score is None else score,
        passed=all(check.passed for check in checks) and not violations,
        checks=tuple(checks),
        violations=tuple(violations),
    )


def scored(options: AssertionOptions, score: float, checks: Sequence[Check] = (), *, fatal: str = "") -> Grade:
    """The grade for a score. It passes from the grader's `min_score` on, 0.8 by default, unless something is fatal."""
    passed = score >= passing_score(options) - ROUNDING and not fatal
    name, type_name = options.label, options.type_name
    return Grade(name=name, type=type_name, score=score, passed=passed, checks=tuple(checks), fatal=fatal)


def passing_score(options: AssertionOptions) -> float:
    """The least score that passes a grader."""
    return PASS_FROM if options.min_score is None else options.min_score


def settled(options: AssertionOptions, bare: Grade) -> Grade:
    """A bare grade with what all graders of eval files have: negated, and fatal where it is required and not passed."""
    if bare.score is None:
        return bare
    grade = bare
    if options.negate:
        score, checks = 1 - bare.score, bare.checks
        # The checks of some graders know of the negation already: then they do not all agree with the bare grade.
        if all(check.passed for check in checks) is bare.passed:
            checks = tuple(Check(passed=not check.passed, message=_opposite(check)) for check in checks)
        passed = score >= passing_score(options) - ROUNDING
        grade = bare.model_copy(update={"score": score, "passed": passed, "checks": checks, "fatal": ""})
    if options.required and not grade.passed and not grade.fatal:
        why = next((f": {check.message}" for check in grade.checks if not check.passed), "")
        grade = grade.model_copy(update={"fatal": f"required, but its score is {grade.score:.3g}{why}"})
    return grade


def expectation(*, passed: bool, must: str = "") -> str:
    """How a check's message ends that says what is: `, as expected` or `, but must`, and what it must."""
    return AS_EXPECTED if passed else f"{_BUT_MUST}{f' {must}' if must else ''}"


def _opposite(check: Check) -> str:
    """What a check says when the contrary is wanted."""
    if check.passed and check.message.endswith(AS_EXPECTED):
        return f"{check.message.removesuffix(AS_EXPECTED)}{_BUT_MUST} not"
    found, but_must, _ = check.message.rpartition(_BUT_MUST)
    return f"{found}{AS_EXPECTED}" if but_must and not check.passed else f"negated: {check.message}"


def unmeasured(options: Grader, reason: str, *, transient: bool = False) -> Grade:
    """The grade of a grader that could not measure: no score, not passed, the reason as its error."""
    return Grade(name=options.label, type=options.type, score=None, passed=False, error=reason, transient=transient)


async def settle(checks: Iterable[Awaitable[Check]]) -> list[Check]:
    """The checks, one after the other.

    Raises the first `MeasurementError` among them, unless a check failed: that fail is certain, and what could
    not be measured beside it becomes a failed check that says so.
    """
    results: list[Check] = []
    errors: list[MeasurementError] = []
    for check in checks:
        try:
            results.append(await check)
        except MeasurementError as error:
            errors.append(error)
            results.append(Check(passed=False, message=f"not measured: {error}"))
    # Only the checks of errors have failed.
    if errors and sum(not result.passed for result in results) == len(errors):
        raise errors[0]
    return results
