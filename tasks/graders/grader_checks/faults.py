"""The faults of a task's graders, from everything that was tried with them.

Correct graders have none of these faults: they pass whatever the agent does, fail what must pass, pass what must fail,
let a mutant live that must be killed, or mark a refusal down for a name in it. Where a task ships counterexamples, each
grader must fail for one of the bad transcripts, and so must each check of what is forbidden: nothing else shows a
misspelled name. What could not be measured is no fault; it is reported by itself.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final, Literal

from passgate.tasks.errors import MeasurementError, Problem
from passgate.tasks.graders.composites.composite import recombined
from passgate.tasks.graders.grader_checks.can_fail import (
    Vacuous,
    gives_points_for_nothing,
    graders_that_ask_too_little,
    graders_that_cannot_fail,
)
from passgate.tasks.graders.grader_checks.demands import prohibitions_of
from passgate.tasks.graders.grader_checks.transcripts import Mutant, Refusals, parts_of
from passgate.tasks.graders.grading import trial_result
from passgate.tasks.metering.usage import trial_metrics
from passgate.tasks.model.checks import CheckCounts, Fault, GraderCheck, GraderFinding
from passgate.tasks.model.grade import Grade, RawGrade
from passgate.tasks.model.graders import Grader
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.transcript import Transcript
from passgate.tasks.model.trial import TrialStatus

PlaceInGrader = tuple[str | int, ...]  # Keys and indices from a grader's options to one of their values
Locate = Callable[[EvalTask, int | None, str, PlaceInGrader], Problem]
"""Says where in its file a task has a grader, counted from 0 (`None`: all of them), with a message."""
_MOST_NOTES: Final = 40
_LESS: Final = 1e-9
_NO_GOOD: Final = (
    "give `reference.solution` (a patch, a script or a transcript), or `expected_output` where an answer is all"
)
_KILLS: Final = {
    "empty answer": "let a grader ask for what the answer must say",
    "truncated output": "let a grader ask for what the answer must say",
    "dropped step": "let a grader require the calls (`tool_calls.required`, `min`), or the state that they bring about",
    "swapped tool": "let a grader require the tools by name",
    "endless trial": "set limits that a trial can exceed",
}


@dataclass(frozen=True)
class Tried:
    """One transcript and what the graders made of it."""

    what: str
    status: TrialStatus
    reason: str = ""
    grades: tuple[Grade, ...] = ()
    transcript: Transcript = field(default_factory=Transcript)


@dataclass(frozen=True)
class Mutated:
    """A mutant and what came of it."""

    mutant: Mutant
    tried: Tried
    counts: bool  # Whether correct graders must kill it


@dataclass(frozen=True)
class Proof:
    """Everything that was tried with the graders of a task."""

    task: EvalTask
    locate: Locate
    good: Tried | None = None  # What must pass; `None` where the task has nothing of the kind
    derived: bool = False  # Whether that was put together from the graders' options
    bad: tuple[Tried, ...] = ()  # What must fail
    mutated: tuple[Mutated, ...] = ()
    refusals: Refusals | None = None
    refused: tuple[Tried, Tried] | None = None  # The refusal that names what it refuses, and the one that does not


def must_be_killed(task: EvalTask, mutant: Mutant, good: Tried) -> bool:
    """Whether the task fails when every part of its graders that a mutant hits says no, and the others what they said
    of the good transcript.
    """

    def leaf(part: Grader, known: RawGrade | None) -> RawGrade:
        if known is not None and not mutant.hits(part):
            return known
        # `required` of `tool_calls` is a list of tools and binds nothing.
        fatal = "it is required" if getattr(part, "required", False) is True else ""
        return RawGrade(name=part.label, type=part.type, score=0.0, passed=False, fatal=fatal)

    try:
        grades = [recombined(*pair, leaf) for pair in zip(task.graders, good.grades, strict=True)]
        result = trial_result(task, good.transcript, trial_metrics(good.transcript), grades)
    except MeasurementError:
        return False
    return result.status is TrialStatus.FAILED


def check_of(proof: Proof) -> GraderCheck:
    """What a proof shows about the graders of a task: counts, findings, what was not measured, notes."""
    task, good = proof.task, proof.good
    idle = _vacuous(proof, Fault.CANNOT_FAIL, (*graders_that_cannot_fail(task), *gives_points_for_nothing(task)))
    found = [
        *idle,
        # Graders that cannot fail ask too little anyway.
        *([] if idle else _vacuous(proof, Fault.ASKS_TOO_LITTLE, graders_that_ask_too_little(task))),
        *_of_the_shipped(proof),
        *_of_the_mutants(proof),
        *_of_the_refusals(proof),
    ]
    counted = _counted(proof)
    shown = {
        place
        for place in counted
        if good and any(_is_worse(grade, good.grades[place]) for grade in _bad_grades(proof, place))
    }
    never = list(_never_failed(proof, shown))
    ships = task.reference is not None and bool(task.reference.counterexamples)
    stale = {finding.path for finding in idle}
    findings = [*found, *(finding for finding in never if ships and finding.path not in stale)]
    if ships:
        findings += _never_broken(proof, shown)
    notes = [] if ships else [f"{', '.join(finding.graders)}: {finding.message}" for finding in never]
    return GraderCheck(
        suite=task.suite,
        task_id=task.task_id,
        file=task.file,
        line=task.line,
        known_good=_known_good(proof),
        known_bad=_failed(proof.bad),
        mutants=_mutant_counts(proof),
        graders=CheckCounts(right=len(shown), of=len(counted)),
        findings=tuple(sorted(findings, key=lambda finding: (finding.line, finding.column))),
        unmeasured=tuple(_unmeasured(proof)),
        notes=tuple([*notes, *_notes(proof)][:_MOST_NOTES]),
    )


def _known_good(proof: Proof) -> Literal["passed", "derived", "failed", "not measured", "none"]:
    if proof.good is None:
        return "not measured" if proof.task.cannot_run else "none"
    if proof.good.status is TrialStatus.PASSED:
        return "derived" if proof.derived else "passed"
    return "failed" if proof.good.status is TrialStatus.FAILED else "not measured"


def _vacuous(proof: Proof, fault: Fault, found: Sequence[Vacuous]) -> list[GraderFinding]:
    what = "cannot fail" if fault is Fault.CANNOT_FAIL else "asks too little"
    everybody = range(len(proof.task.graders))
    return [
        _finding(proof, fault, everybody if one.place is None else [one.place], f"{what}: {one.why}", one.remedy)
        for one in found
    ]


def _of_the_shipped(proof: Proof) -> Iterator[GraderFinding]:
    task, good = proof.task, proof.good
    if good is None and not task.cannot_run:
        message = "no known-good transcript: nothing shows that it can pass"
        yield _finding(proof, Fault.NO_KNOWN_GOOD, (), message, _NO_GOOD)
    if good is not None and good.status is TrialStatus.FAILED:
        remedy = "mend the grader, or the reference solution"
        low = [place for place, grade in enumerate(good.grades) if grade.error is None and not grade.passed]
        # A mean that is too low is the fault of all graders together.
        alone = task.scoring.rule != "weighted_average" and low
        for places in [[place] for place in low] if alone else [low]:
            why = _first(good.grades[places[0]]) if alone else good.reason
            yield _finding(proof, Fault.KNOWN_GOOD_FAILS, places, f"the known-good fails: {why}", remedy)
    for tried in proof.bad:
        if tried.status is TrialStatus.PASSED:
            remedy = f"let a grader notice what is wrong with {tried.what}"
            everybody = range(len(task.graders))
            yield _finding(proof, Fault.KNOWN_BAD_PASSES, everybody, f"{tried.what} passes", remedy)


def _of_the_mutants(proof: Proof) -> Iterator[GraderFinding]:
    alive = [one for one in proof.mutated if one.counts and one.tried.status is TrialStatus.PASSED]
    by_fault: dict[tuple[str, tuple[int, ...]], list[Mutated]] = {}
    for one in alive:
        hit = (place for place, grader in enumerate(proof.task.graders) if any(map(one.mutant.hits, parts_of(grader))))
        by_fault.setdefault((one.mutant.kind, tuple(hit)), []).append(one)
    for (kind, places), those in by_fault.items():
        more = f" (and {len(those) - 1} more like it)" if len(those) > 1 else ""
        message = f"the mutant {kind!r} survives: {those[0].mutant.what}{more}, and the task passes"
        yield _finding(proof, Fault.MUTANT_SURVIVES, places, message, _KILLS[kind])


def _of_the_refusals(proof: Proof) -> Iterator[GraderFinding]:
    if proof.refusals is None or proof.refused is None:
        return
    names = ", ".join(f"`{name}`" for name in proof.refusals.names)
    remedy = "match the calls, not the words: `tool_calls.forbidden` or `policy_check.deny_tools`"
    for place in _marked_down(*proof.refused):
        grade = proof.refused[0].grades[place]
        what = "is a violation" if grade.violations else "fails"
        message = f"a refusal that names {names} {what}, and without the names it is none: {_first(grade)}"
        yield _finding(proof, Fault.REFUSAL_FAILS, [place], message, remedy)


def _marked_down(naming: Tried, plain: Tried) -> list[int]:
    """The graders that hold the name against a refusal."""
    pairs = enumerate(zip(naming.grades, plain.grades, strict=True))
    return [place for place, (named, bare) in pairs if _is_worse(named, bare)]


def _is_worse(grade: Grade, than: Grade) -> bool:
    """Whether a grade fails, has more violations or scores less where the other one does not; both must be measured."""
    if grade.error is not None or than.error is not None:
        return False
    fails = (not grade.passed and than.passed) or len(grade.violations) > len(than.violations)
    return fails or (grade.score or 0.0) < (than.score or 0.0) - _LESS


def _counted(proof: Proof) -> list[int]:
    """The graders that something bad could have failed: none where the good transcript does not pass."""
    if proof.good is None or proof.good.status is not TrialStatus.PASSED:
        return []
    # A grader with the weight 0 in an average only informs.
    weighted = proof.task.scoring.rule == "weighted_average"
    return [place for place, grader in enumerate(proof.task.graders) if grader.weight or not weighted]


def _bad_grades(proof: Proof, place: int) -> list[Grade]:
    """What a grader made of everything bad that was tried."""
    tries = [*proof.bad, *(one.tried for one in proof.mutated), *(proof.refused or ())]
    return [tried.grades[place] for tried in tries if tried.grades]


def _never_failed(proof: Proof, shown: set[int]) -> Iterator[GraderFinding]:
    for place in _counted(proof):
        # Where one could not be measured, that one may be what it fails.
        if place not in shown and all(grade.error is None for grade in _bad_grades(proof, place)):
            message = "never failed: it passes everything bad that was tried"
            remedy = "add a counterexample that it catches to `reference.counterexamples`, or take it out"
            yield _finding(proof, Fault.NEVER_FAILED, [place], message, remedy)


def _never_broken(proof: Proof, shown: set[int]) -> Iterator[GraderFinding]:
    """Prohibitions that nothing bad broke. A grader that has failed may have failed by another of its checks."""
    remedy = "add a counterexample that does it to `reference.counterexamples`, or take it out"
    for place in sorted(shown):
        measured = [grade.checks for grade in _bad_grades(proof, place) if grade.error is None]
        broken = {check for checks in measured for check, one in enumerate(checks) if not one.passed}
        rules = [rule for rule in prohibitions_of(proof.task.graders[place]) if rule.check not in broken]
        for option, those in groupby(rules, key=lambda rule: rule.option):
            first, *others = [rule.place for rule in those]
            also = f", nor {', '.join(f'{option}[{other}]' for other in others)}" if others else ""
            message = f"never broken: nothing bad that was tried does what {option}[{first}] forbids{also}"
            yield _finding(proof, Fault.NEVER_FAILED, [place], message, remedy, within=(option, first))


def _mutant_counts(proof: Proof) -> CheckCounts:
    counts = _failed([one.tried for one in proof.mutated if one.counts])
    if proof.refused is None:
        return counts
    spared = not _marked_down(*proof.refused)
    return counts.model_copy(update={"right": counts.right + spared, "of": counts.of + 1})


def _failed(tries: Sequence[Tried]) -> CheckCounts:
    """How many tries that must fail have failed."""
    measured = [tried for tried in tries if tried.status in {TrialStatus.PASSED, TrialStatus.FAILED}]
    right = sum(tried.status is TrialStatus.FAILED for tried in measured)
    return CheckCounts(right=right, of=len(measured), unmeasured=len(tries) - len(measured))


def _unmeasured(proof: Proof) -> Iterator[str]:
    yield from proof.task.cannot_run
    for tried in (*([proof.good] if proof.good else []), *proof.bad):
        if tried.status in {TrialStatus.ERROR, TrialStatus.NOT_RUN}:
            yield f"{tried.what} was not measured: {tried.reason}"


def _notes(proof: Proof) -> Iterator[str]:
    for one in proof.mutated:
        if one.counts and one.tried.status is TrialStatus.ERROR:
            yield f"the mutant {one.mutant.kind!r} was not measured: {one.tried.reason}"
        if not one.counts and one.tried.status is TrialStatus.PASSED:
            yield f"it passes when {one.mutant.what}"


def _first(grade: Grade) -> str:
    said = [found.message for found in grade.violations] + [check.message for check in grade.checks if not check.passed]
    return said[0] if said else "not passed"


def _finding(
    proof: Proof, fault: Fault, places: Sequence[int], message: str, remedy: str, *, within: PlaceInGrader = ()
) -> GraderFinding:
    task = proof.task
    where = proof.locate(task, places[0] if len(places) == 1 else None, message, within)
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
