"""Say what is wrong with a task's graders, from everything that was tried with them; `Fault` lists what can be.

Where a task ships counterexamples, each grader and each of its checks must fail for one of the bad transcripts: nothing
else shows a misspelled name. What could not be measured is no fault; it is reported by itself.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from passgate.tasks.errors import Problem
from passgate.tasks.graders.probes import EMPTY_ANSWER, Refusals, checks_to_break, leaf_graders, wants_an_answer
from passgate.tasks.graders.vacuous import graders_that_ask_too_little, graders_that_cannot_fail, points_for_nothing
from passgate.tasks.model.checks import CheckCounts, Fault, GraderCheck, GraderFinding
from passgate.tasks.model.grade import Grade
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.transcript import Transcript
from passgate.tasks.model.trial import TrialStatus

Locate = Callable[[EvalTask, int | None, str], Problem]
"""Returns the place of a task's grader, counted from 0 (`None`: all of them), with a message."""
_MOST_NOTES: Final = 40
_LESS: Final = 1e-9
_NO_GOOD: Final = (
    "give `reference.solution` (a patch, a script or a transcript), or `expected_output` where an answer is all"
)


@dataclass(frozen=True)
class Tried:
    """One transcript and what the graders made of it."""

    what: str
    status: TrialStatus
    reason: str = ""
    grades: tuple[Grade, ...] = ()
    transcript: Transcript = field(default_factory=Transcript)

    @property
    def is_measured(self) -> bool:
        return self.status in {TrialStatus.PASSED, TrialStatus.FAILED}


@dataclass(frozen=True)
class Proof:
    """Everything that was tried with the graders of a task."""

    task: EvalTask
    locate: Locate
    good: Tried | None = None  # What must pass; `None` where the task has nothing of the kind
    derived: bool = False  # Whether that was put together from the graders' options
    bad: tuple[Tried, ...] = ()  # What must fail
    mutants: tuple[Tried, ...] = ()  # The good one with one defect each; correct graders may pass some of them
    refusals: Refusals | None = None
    refused: tuple[Tried, Tried] | None = None  # The refusal that names what it refuses, and the one that does not


def grader_check(proof: Proof) -> GraderCheck:
    """Return what a proof shows about the graders of a task: counts, findings, what was not measured, notes."""
    task, good = proof.task, proof.good
    survivors, lowered = _survivors(proof), list(_lowered_refusals(proof))
    findings = [*_vacuous_graders(proof), *_bad_ends(proof), *lowered]
    if survivors:
        message = f"asks something of the answer, and passes when {EMPTY_ANSWER}, as the task does"
        remedy = "let it ask for what the answer must say"
        findings.append(_finding(proof, Fault.MUTANT_SURVIVES, survivors, message, remedy))
    graders, never = _failed_graders(proof)
    ships = task.reference is not None and bool(task.reference.counterexamples)
    if ships:
        told = {finding.path for finding in findings if finding.fault is Fault.CANNOT_FAIL}
        findings += [finding for finding in never if finding.path not in told]
    notes = [] if ships else [f"{', '.join(finding.graders)}: {finding.message}" for finding in never]
    passing = [tried for tried in proof.mutants if tried.status is TrialStatus.PASSED]
    errors = [tried for tried in proof.mutants if tried.status is TrialStatus.ERROR]
    notes += [f"it passes when {tried.what}" for tried in passing if not (survivors and tried.what == EMPTY_ANSWER)]
    notes += [f"when {tried.what}: not measured: {tried.reason}" for tried in errors]
    unmeasured = [
        f"{tried.what} was not measured: {tried.reason}"
        for tried in (*([good] if good else []), *proof.bad)
        if not tried.is_measured
    ]
    failed, spared = sum(tried.status is TrialStatus.FAILED for tried in proof.mutants), proof.refused is not None
    return GraderCheck(
        suite=task.suite,
        task_id=task.task_id,
        file=task.file,
        line=task.line,
        known_good=_known_good(proof),
        known_bad=CheckCounts(
            right=sum(tried.status is TrialStatus.FAILED for tried in proof.bad),
            of=sum(tried.is_measured for tried in proof.bad),
            unmeasured=sum(not tried.is_measured for tried in proof.bad),
        ),
        # Of the mutants those count that correct graders tell apart, and the refusal that must be spared.
        mutants=CheckCounts(
            right=failed + (spared and not lowered), of=failed + bool(survivors) + spared, unmeasured=len(errors)
        ),
        graders=graders,
        findings=tuple(sorted(findings, key=lambda finding: (finding.line, finding.column))),
        unmeasured=(*task.cannot_run, *unmeasured),
        notes=tuple(notes[:_MOST_NOTES]),
    )


def _known_good(proof: Proof) -> Literal["passed", "derived", "failed", "not measured", "none"]:
    if proof.good is None:
        return "not measured" if proof.task.cannot_run else "none"
    if proof.good.status is TrialStatus.PASSED:
        return "derived" if proof.derived else "passed"
    return "failed" if proof.good.status is TrialStatus.FAILED else "not measured"


def _vacuous_graders(proof: Proof) -> Iterator[GraderFinding]:
    """Yield the graders that cannot fail; where there is none, those that ask too little."""
    task = proof.task
    fault, what, found = Fault.CANNOT_FAIL, "cannot fail", [*graders_that_cannot_fail(task), *points_for_nothing(task)]
    if not found:
        fault, what, found = Fault.ASKS_TOO_LITTLE, "asks too little", graders_that_ask_too_little(task)
    for one in found:
        places = range(len(task.graders)) if one.place is None else [one.place]
        yield _finding(proof, fault, places, f"{what}: {one.why}", one.remedy)


def _bad_ends(proof: Proof) -> Iterator[GraderFinding]:
    """Yield what is missing or failed of the good transcript, and what passed of the bad ones."""
    task, good = proof.task, proof.good
    if good is None and not task.cannot_run:
        message = "no known-good transcript: nothing shows that it can pass"
        yield _finding(proof, Fault.NO_KNOWN_GOOD, (), message, _NO_GOOD)
    if good is not None and good.status is TrialStatus.FAILED:
        low = [place for place, grade in enumerate(good.grades) if grade.error is None and not grade.passed]
        # A mean that is too low is the fault of all graders together.
        alone = task.scoring.rule != "weighted_average" and low
        for places in [[place] for place in low] if alone else [low]:
            message = f"the known-good fails: {_first_problem(good.grades[places[0]]) if alone else good.reason}"
            yield _finding(proof, Fault.KNOWN_GOOD_FAILS, places, message, "mend the grader, or the reference solution")
    for tried in proof.bad:
        if tried.status is TrialStatus.PASSED:
            remedy = f"let a grader notice what is wrong with {tried.what}"
            everybody = range(len(task.graders))
            yield _finding(proof, Fault.KNOWN_BAD_PASSES, everybody, f"{tried.what} passes", remedy)


def _survivors(proof: Proof) -> list[int]:
    """Return the graders that ask something of the answer and pass an empty one, where the task passes it too."""
    empty = next((tried for tried in proof.mutants if tried.what == EMPTY_ANSWER), None)
    if empty is None or empty.status is not TrialStatus.PASSED:
        return []
    pairs = enumerate(zip(proof.task.graders, empty.grades, strict=True))
    return [
        place for place, (grader, grade) in pairs if grade.passed and any(map(wants_an_answer, leaf_graders(grader)))
    ]


def _lowered_refusals(proof: Proof) -> Iterator[GraderFinding]:
    if proof.refusals is None or proof.refused is None:
        return
    names = ", ".join(f"`{name}`" for name in proof.refusals.names)
    remedy = "match the calls, not the words: `tool_calls.forbidden` or `policy_check.deny_tools`"
    for place, (named, plain) in enumerate(zip(*(tried.grades for tried in proof.refused), strict=True)):
        if _is_worse(named, plain):
            what = "is a violation" if named.violations else "fails"
            message = f"a refusal that names {names} {what}, and without the names it is none: {_first_problem(named)}"
            yield _finding(proof, Fault.REFUSAL_FAILS, [place], message, remedy)


def _is_worse(grade: Grade, than: Grade) -> bool:
    """Return whether a grade fails, has more violations or scores less where the other does not; both are measured."""
    if grade.error is not None or than.error is not None:
        return False
    fails = (not grade.passed and than.passed) or len(grade.violations) > len(than.violations)
    return fails or (grade.score or 0.0) < (than.score or 0.0) - _LESS


def _failed_graders(proof: Proof) -> tuple[CheckCounts, list[GraderFinding]]:
    """Return how many graders something bad has failed, and a finding for each grader and each check that nothing has.

    Nothing is said where the good transcript does not pass, of graders with the weight 0 in an average, and of graders
    that one of the bad transcripts was not measured with: that one may be what they fail.
    """
    task, good = proof.task, proof.good
    if good is None or good.status is not TrialStatus.PASSED:
        return CheckCounts(), []
    tries = [tried for tried in (*proof.bad, *proof.mutants, *(proof.refused or ())) if tried.grades]
    remedy = "add a counterexample that {} to `reference.counterexamples`, or take it out"
    right = of = 0
    findings: list[GraderFinding] = []
    for place, grader in enumerate(task.graders):
        if not grader.weight and task.scoring.rule == "weighted_average":
            continue
        of += 1
        known, grades = good.grades[place], [tried.grades[place] for tried in tries]
        if any(_is_worse(grade, known) for grade in grades):
            right += 1
            checks = [grade.checks for grade in grades if grade.error is None]
            for number in checks_to_break(grader, len(known.checks)):
                if all(len(one) == len(known.checks) and one[number].passed for one in checks):
                    message = f"never broken: whatever bad was tried, {known.checks[number].message}"
                    more = remedy.format("breaks it")
                    findings.append(_finding(proof, Fault.NEVER_FAILED, [place], message, more))
        elif all(grade.error is None for grade in grades):
            message = "never failed: it passes everything bad that was tried"
            findings.append(_finding(proof, Fault.NEVER_FAILED, [place], message, remedy.format("it catches")))
    return CheckCounts(right=right, of=of), findings


def _first_problem(grade: Grade) -> str:
    problems = [found.message for found in grade.violations]
    problems += [check.message for check in grade.checks if not check.passed]
    return problems[0] if problems else "not passed"


def _finding(proof: Proof, fault: Fault, places: Sequence[int], message: str, remedy: str) -> GraderFinding:
    task = proof.task
    where = proof.locate(task, places[0] if len(places) == 1 else None, message)
    return GraderFinding(
        fault=fault,
        file=where.file,
        line=where.line,
        column=where.column,
        path=where.path,
        graders=tuple(task.graders[place].label for place in places),
        message=message,
        remedy=remedy,
    )
