"""From checks to a grade."""

from collections.abc import Awaitable, Iterable, Sequence
from typing import Final

from passgate.tasks.errors import MeasurementError, Raw, RawText
from passgate.tasks.model.assertions import Unavailable
from passgate.tasks.model.grade import Check, Grade, RawCheck, RawGrade, RawViolation, Violation
from passgate.tasks.model.grader_options import AssertionOptions
from passgate.tasks.model.graders import Grader
from passgate.tasks.model.quotes import Masker, raw

BORDERLINE_FROM: Final = 0.6
"""Below what passes and from here on a score is called borderline (AgentEvals); it fails all the same."""
ROUNDING: Final = 1e-9  # 0.1 + 0.2 is not to fall short of 0.3
AS_EXPECTED: Final = ", as expected"
_BUT_MUST: Final = ", but must"


def checks_grade(
    options: Grader, checks: Sequence[RawCheck], violations: Sequence[RawViolation] = (), score: float | None = None
) -> RawGrade:
    """Return the grade of checks that must all pass; any violation fails it too.

    `score` is the share of passed checks when it is not given. Raises `MeasurementError` without checks: a grader that
    checks nothing must not pass.
    """
    if not checks:
        raise MeasurementError(f"{options.label} has nothing to check: set at least one option")
    share = sum(check.passed for check in checks) / len(checks)
    return RawGrade(
        name=options.label,
        type=options.type,
        score=share if score is None else score,
        passed=all(check.passed for check in checks) and not violations,
        checks=tuple(checks),
        violations=tuple(violations),
    )


def score_grade(
    options: AssertionOptions, score: float, checks: Sequence[RawCheck] = (), *, fatal: Raw = ""
) -> RawGrade:
    """Return the grade of a score. It passes from the grader's `min_score` on, unless something is fatal."""
    passed = score >= options.passing_score - ROUNDING and not fatal
    name, type_name = options.label, options.type_name
    return RawGrade(name=name, type=type_name, score=score, passed=passed, checks=tuple(checks), fatal=fatal)


def finish_grade(options: AssertionOptions, bare: RawGrade) -> RawGrade:
    """Return a bare grade as its options want it: negated, and fatal where it is required and not passed."""
    if bare.score is None:
        return bare
    grade = bare
    if options.negate:
        score, checks = 1 - bare.score, bare.checks
        # The checks of some graders know of the negation already: then they do not all agree with the bare grade.
        if all(check.passed for check in checks) is bare.passed:
            checks = tuple(RawCheck(passed=not check.passed, message=_opposite(check)) for check in checks)
        passed = score >= options.passing_score - ROUNDING
        grade = bare.model_copy(update={"score": score, "passed": passed, "checks": checks, "fatal": ""})
    if options.required and not grade.passed and not grade.fatal:
        why = next((raw(": ", check.message) for check in grade.checks if not check.passed), "")
        grade = grade.model_copy(update={"fatal": raw(f"required, but its score is {grade.score:.3g}", why)})
    return grade


def expectation(*, passed: bool, must: str = "") -> str:
    """Return how a check's message ends that says what is: `, as expected` or `, but must`, and what it must."""
    return AS_EXPECTED if passed else f"{_BUT_MUST}{f' {must}' if must else ''}"


def _opposite(check: RawCheck) -> Raw:
    """Return what a check says when the contrary is wanted."""
    *parts, end = check.message.parts if isinstance(check.message, RawText) else (check.message,)
    if isinstance(end, str):
        if check.passed and end.endswith(AS_EXPECTED):
            return raw(*parts, f"{end.removesuffix(AS_EXPECTED)}{_BUT_MUST} not")
        before, but_must, _ = end.rpartition(_BUT_MUST)
        if but_must and not check.passed:
            return raw(*parts, f"{before}{AS_EXPECTED}")
    return raw("negated: ", check.message)


async def grade_unavailable(options: Unavailable, evidence: object) -> RawGrade:
    """Raise `MeasurementError`: what nobody can measure is neither passed nor failed."""
    raise MeasurementError(f"passgate has no grader {options.kind!r}")


def error_grade(options: Grader, reason: Raw, *, transient: bool = False) -> RawGrade:
    """Return the grade of a grader that could not measure: no score, not passed, the reason as its error."""
    return RawGrade(name=options.label, type=options.type, score=None, passed=False, error=reason, transient=transient)


async def gather_checks(checks: Iterable[Awaitable[RawCheck]]) -> list[RawCheck]:
    """Return the checks, one after the other.

    Raises the first `MeasurementError` among them, unless a check failed: that fail is certain, and what could
    not be measured beside it becomes a failed check that states this.
    """
    results: list[RawCheck] = []
    errors: list[MeasurementError] = []
    for check in checks:
        try:
            results.append(await check)
        except MeasurementError as error:
            errors.append(error)
            results.append(RawCheck(passed=False, message=raw("not measured: ", error.message)))
    # Only the checks of errors have failed.
    if errors and sum(not result.passed for result in results) == len(errors):
        raise errors[0]
    return results


def render_grade(grade: RawGrade, masker: Masker) -> Grade:
    """Return a grade whose texts have no secrets."""
    violations = [Violation(rule=found.rule, message=masker.render(found.message)) for found in grade.violations]
    return Grade(
        **dict(grade)
        | {
            "name": masker.text(grade.name),
            "checks": tuple(Check(passed=check.passed, message=masker.render(check.message)) for check in grade.checks),
            "violations": tuple(violations),
            "fatal": masker.render(grade.fatal),
            "members": tuple(render_grade(member, masker) for member in grade.members),
            "error": None if grade.error is None else masker.render(grade.error),
        }
    )
