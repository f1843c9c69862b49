"""What was tried with a task's graders in, the faults that it shows out.

A fault is what correct graders cannot do: pass by their options, fail what must pass, pass what must fail, let a mutant
live that must be killed, mark a refusal down for a name. Where a task ships counterexamples, each grader has to fail
for something bad once, and so has each check of what must not be: nothing else shows a misspelled name. What could not
be measured is neither a fault nor none: it is told apart.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final, Literal

from passgate.tasks.errors import MeasurementError
from passgate.tasks.graders.composites.composite import recombined
from passgate.tasks.graders.grader_checks.can_fail import (
    Vacuous,
    gives_points_for_nothing,
    graders_that_ask_too_little,
    graders_that_cannot_fail,
)
from passgate.tasks.graders.grader_checks.demands import prohibitions_of
from passgate.tasks.graders.grader_checks.mutants import Mutant, parts_of
from passgate.tasks.graders.grader_checks.proof import Mutated, PlaceInGrader, Proof, Tried
from passgate.tasks.graders.grading import trial_result
from passgate.tasks.metering.usage import trial_metrics
from passgate.tasks.model.checks import CheckCounts, Fault, GraderCheck, GraderFinding
from passgate.tasks.model.grade import Grade
from passgate.tasks.model.graders import Composite, Grader
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.trial import TrialStatus

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


def must_be_killed(task: EvalTask, mutant: Mutant, good: Tried) -> bool:
    """Whether the task fails when every part of its graders that a mutant hits says no, and the others what they said
    of the good transcript.
    """

    def leaf(part: Grader, known: Grade | None) -> Grade:
        return _no(part) if mutant.hits(part) or known is None else known

    def supposed(options: Grader, known: Grade) -> Grade:
        if isinstance(options, Composite) and task.scoring.compat == "agentv":
            return known
        return recombined(options, known, leaf)

    try:
        grades = [supposed(*pair) for pair in zip(task.graders, good.grades, strict=True)]
        result = trial_result(task, good.transcript, trial_metrics(good.transcript), grades)
    except MeasurementError:
        return False
    return result.status is TrialStatus.FAILED


def _no(part: Grader) -> Grade:
    fatal = "it is required" if getattr(part, "required", False) is True else ""
    return Grade(name=part.label, type=part.type, score=0.0, passed=False, fatal=fatal)


def check_of(proof: Proof) -> GraderCheck:
    """What the graders of a task are worth by a proof."""
    task, good = proof.task, proof.good
    idle = list(_by_options(proof))
    found = [
        *idle,
        *([] if idle else _by_prompt(proof)),
        *_of_the_good(proof),
        *_of_the_bad(proof),
        *_of_the_mutants(proof),
        *_of_the_refusals(proof),
    ]
    shown, graders = _shown(proof)
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
        graders=CheckCounts(right=len(shown), of=graders) if good else CheckCounts(),
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


def _by_options(proof: Proof) -> Iterator[GraderFinding]:
    task = proof.task
    for idle in (*graders_that_cannot_fail(task), *gives_points_for_nothing(task)):
        yield _vacuous(proof, Fault.CANNOT_FAIL, f"cannot fail: {idle.why}", idle)


def _by_prompt(proof: Proof) -> Iterator[GraderFinding]:
    for weak in graders_that_ask_too_little(proof.task):
        yield _vacuous(proof, Fault.ASKS_TOO_LITTLE, f"asks too little: {weak.why}", weak)


def _vacuous(proof: Proof, fault: Fault, message: str, found: Vacuous) -> GraderFinding:
    places = range(len(proof.task.graders)) if found.place is None else [found.place]
    return _finding(proof, fault, places, message, found.remedy)


def _of_the_good(proof: Proof) -> Iterator[GraderFinding]:
    task, good = proof.task, proof.good
    if good is None and not task.cannot_run:
        yield _finding(
            proof, Fault.NO_KNOWN_GOOD, (), "no known-good transcript: nothing shows that it can pass", _NO_GOOD
        )
    if good is None or good.status is not TrialStatus.FAILED:
        return
    remedy = "mend the grader, or the reference solution"
    low = [place for place, grade in enumerate(good.grades) if grade.error is None and not grade.passed]
    if task.scoring.rule == "weighted_average" or not low:
        yield _finding(proof, Fault.KNOWN_GOOD_FAILS, low, f"the known-good fails: {good.reason}", remedy)
        return
    for place in low:
        message = f"the known-good fails: {_first(good.grades[place])}"
        yield _finding(proof, Fault.KNOWN_GOOD_FAILS, [place], message, remedy)


def _of_the_bad(proof: Proof) -> Iterator[GraderFinding]:
    everybody = range(len(proof.task.graders))
    for tried in proof.bad:
        if tried.status is TrialStatus.PASSED:
            remedy = f"let a grader notice what is wrong with {tried.what}"
            yield _finding(proof, Fault.KNOWN_BAD_PASSES, everybody, f"{tried.what} passes", remedy)


def _of_the_mutants(proof: Proof) -> Iterator[GraderFinding]:
    alive = [one for one in proof.mutated if one.counts and one.tried.status is TrialStatus.PASSED]
    by_fault: dict[tuple[str, tuple[int, ...]], list[Mutated]] = {}
    for one in alive:
        by_fault.setdefault((one.mutant.kind, tuple(_hit(proof.task, one))), []).append(one)
    for (kind, places), those in by_fault.items():
        more = f" (and {len(those) - 1} more like it)" if len(those) > 1 else ""
        message = f"the mutant {kind!r} survives: {those[0].mutant.what}{more}, and the task passes"
        yield _finding(proof, Fault.MUTANT_SURVIVES, places, message, _KILLS[kind])


def _hit(task: EvalTask, one: Mutated) -> list[int]:
    """The graders that a mutant hits."""
    return [place for place, grader in enumerate(task.graders) if any(map(one.mutant.hits, parts_of(grader)))]


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
    """Whether a measured grade is a fail, or has less, where another one is or has not."""
    if grade.error is not None or than.error is not None:
        return False
    fails = (not grade.passed and than.passed) or len(grade.violations) > len(than.violations)
    return fails or (grade.score or 0.0) < (than.score or 0.0) - _LESS


def _shown(proof: Proof) -> tuple[set[int], int]:
    """The graders that something bad has failed, and how many there are that could have been."""
    good = proof.good
    if good is None or good.status is not TrialStatus.PASSED:
        return set(), 0
    counted = _counted(proof.task)
    bad = [tried.grades for tried in _bad_tries(proof) if tried.grades]
    failed = {place for place in counted if any(_is_worse(grades[place], good.grades[place]) for grades in bad)}
    return failed, len(counted)


def _counted(task: EvalTask) -> list[int]:
    """The graders that have a say in the task; those with the weight 0 in an average only inform."""
    weighted = task.scoring.rule == "weighted_average"
    return [place for place, grader in enumerate(task.graders) if grader.weight or not weighted]


def _bad_tries(proof: Proof) -> Sequence[Tried]:
    return [*proof.bad, *(one.tried for one in proof.mutated), *(proof.refused or ())]


def _never_failed(proof: Proof, shown: set[int]) -> Iterator[GraderFinding]:
    good = proof.good
    if good is None or good.status is not TrialStatus.PASSED:
        return
    for place in _counted(proof.task):
        unsure = any(tried.grades and tried.grades[place].error is not None for tried in _bad_tries(proof))
        if place not in shown and not unsure:
            message = "never failed: it passes everything bad that was tried"
            remedy = "add a counterexample that it catches to `reference.counterexamples`, or take it out"
            yield _finding(proof, Fault.NEVER_FAILED, [place], message, remedy)


def _never_broken(proof: Proof, shown: set[int]) -> Iterator[GraderFinding]:
    """What must not be, and never was in anything bad: graders that have failed may have failed by something else."""
    remedy = "add a counterexample that does it to `reference.counterexamples`, or take it out"
    for place in sorted(shown):
        grades = [tried.grades[place] for tried in _bad_tries(proof) if tried.grades]
        rules = [
            rule
            for rule in prohibitions_of(proof.task.graders[place])
            if not any(_breaks(grade, rule.check) for grade in grades)
        ]
        for option, those in groupby(rules, key=lambda rule: rule.option):
            first, *others = [rule.place for rule in those]
            also = f", nor {', '.join(f'{option}[{other}]' for other in others)}" if others else ""
            message = f"never broken: nothing bad that was tried does what {option}[{first}] forbids{also}"
            yield _finding(proof, Fault.NEVER_FAILED, [place], message, remedy, within=(option, first))


def _breaks(grade: Grade, check: int) -> bool:
    return grade.error is None and len(grade.checks) > check and not grade.checks[check].passed


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
