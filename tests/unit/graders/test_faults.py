"""From what was tried with graders to the faults that it shows."""

from collections.abc import Sequence
from typing import Any

import pytest

from passgate.tasks.formats.loading import grader_problem
from passgate.tasks.graders.faults import Proof, Tried, grader_check
from passgate.tasks.graders.probes import EMPTY_ANSWER, Refusals, answer
from passgate.tasks.model.checks import CheckCounts, Fault, GraderFinding
from passgate.tasks.model.grade import Check, Grade
from passgate.tasks.model.task import EvalTask, Reference
from passgate.tasks.model.trial import TrialStatus
from tests.builders import SAYS_YES, a_grade, a_task, a_violation

PASSED, FAILED, ERROR = TrialStatus.PASSED, TrialStatus.FAILED, TrialStatus.ERROR
NO, SILLY = {"type": "output_check", "name": "no", "not_contains": ["no"]}, answer("?", "silly")
EXAMPLES = Reference.model_validate(
    {"solution": {"script": "a.sh"}, "counterexamples": [{"name": "bad", "script": "b.sh"}]}
)
CONTAINS = {"type": "contains", "value": "yes"}
AVERAGE = {"rule": "weighted_average"}


def a_question(**changes: Any) -> EvalTask:
    """A task whose prompt does not say the answer."""
    return a_task(**({"inputs": {"prompt": "Do you agree?"}} | changes))


def tried(status: TrialStatus = PASSED, *passed: bool, what: str = "doing nothing", reason: str = "it did") -> Tried:
    return Tried(what, status, reason, tuple(a_grade(passed=one) for one in passed or (status is PASSED,)))


def found(proof: Proof) -> list[Fault]:
    return [finding.fault for finding in grader_check(proof).findings]


def only(proof: Proof) -> GraderFinding:
    (finding,) = grader_check(proof).findings
    return finding


def good(*graders: dict[str, Any], of_task: Any = None, **changes: Any) -> Proof:
    """A proof in which everything is as it must be."""
    task = a_question(**({"graders": list(graders)} if graders else {}), **(of_task or {}))
    plain: dict[str, Any] = {
        "good": tried(PASSED, *[True] * len(task.graders)),
        "bad": (tried(FAILED, *[False] * len(task.graders)),),
    }
    return Proof(task, grader_problem, **(plain | changes))


def test_correct_graders_have_no_fault() -> None:
    check = grader_check(good())
    assert (check.findings, check.unmeasured, check.notes) == ((), (), ())
    one = CheckCounts(right=1, of=1)
    assert (check.known_good, check.known_bad, check.graders, check.mutants) == ("passed", one, one, CheckCounts())


def test_a_task_needs_something_that_passes() -> None:
    finding = only(good(good=None))
    assert (finding.fault, finding.graders) == (Fault.NO_KNOWN_GOOD, ())
    assert "reference.solution" in finding.remedy
    assert grader_check(good(good=None)).known_good == "none"


def test_what_is_derived_is_called_so() -> None:
    assert grader_check(good(derived=True)).known_good == "derived"


def test_each_grader_that_fails_the_known_good_is_told() -> None:
    proof = good(SAYS_YES, NO, good=tried(FAILED, True, False))
    finding = only(proof)
    assert (finding.fault, finding.graders, finding.path) == (Fault.KNOWN_GOOD_FAILS, ("no",), "graders[1]")
    assert grader_check(proof).known_good == "failed"
    assert grader_check(proof).graders == CheckCounts(), "nothing is said of graders that fail what is good"


def test_a_known_good_that_no_grader_fails_is_told_with_its_reason() -> None:
    finding = only(good(good=tried(FAILED, True, reason="the budget of 3 steps")))
    assert finding.graders == ()
    assert "the budget of 3 steps" in finding.message


def test_of_an_average_all_low_graders_are_told_together() -> None:
    low = tried(FAILED, False, False, reason="score 0")
    finding = only(good(CONTAINS, CONTAINS, of_task={"scoring": AVERAGE}, good=low))
    assert (finding.graders, finding.path) == (("contains", "contains"), "graders")


@pytest.mark.parametrize("what", ["doing nothing", "the counterexample 'bad'"])
def test_something_bad_that_passes_is_told(what: str) -> None:
    proof = good(SAYS_YES, NO, bad=(tried(FAILED, False, False), tried(PASSED, True, True, what=what)))
    finding = only(proof)
    assert (finding.fault, finding.graders) == (Fault.KNOWN_BAD_PASSES, ("output_check", "no"))
    assert finding.message == f"{what} passes"
    assert grader_check(proof).known_bad == CheckCounts(right=1, of=2)


@pytest.mark.parametrize("status", [ERROR, TrialStatus.NOT_RUN])
def test_what_was_not_measured_is_no_fault_and_no_pass(status: TrialStatus) -> None:
    check = grader_check(good(bad=(Tried("doing nothing", status, "no judge"), tried(FAILED, False))))
    assert (check.findings, check.unmeasured) == ((), ("doing nothing was not measured: no judge",))
    assert check.known_bad == CheckCounts(right=1, of=1, unmeasured=1)
    check = grader_check(good(good=Tried("the known-good", status, "no judge")))
    assert (check.findings, check.known_good, len(check.unmeasured)) == ((), "not measured", 1)


def test_a_task_that_cannot_be_run_is_not_measured() -> None:
    check = grader_check(Proof(a_question(cannot_run=("a.yaml:1:1: no file 'x'",)), grader_problem))
    assert (check.findings, check.known_good) == ((), "not measured")
    assert check.unmeasured == ("a.yaml:1:1: no file 'x'",)


WANTS = {"type": "output_check", "name": "wants", "matches": "^[^!]*$"}


@pytest.mark.parametrize(
    ("graders", "passed", "named"),
    [
        *(([WANTS], (True,), ("wants",)), ([WANTS, NO], (True, True), ("wants",))),
        *(([SAYS_YES, WANTS], (False, True), ()), ([NO], (True,), ())),
        ([{**WANTS, "matches": "^(?!.*no)"}], (True,), ()),
        ([{"type": "composite", "name": "both", "assertions": [WANTS, NO]}], (True,), ("both",)),
    ],
)
def test_a_grader_that_asks_something_of_the_answer_must_not_pass_an_empty_one(
    graders: Any, passed: Any, named: tuple[str, ...]
) -> None:
    empty = tried(PASSED if all(passed) else FAILED, *passed, what=EMPTY_ANSWER)
    check = grader_check(good(*graders, mutants=(empty,)))
    survives = [finding.graders for finding in check.findings if finding.fault is Fault.MUTANT_SURVIVES]
    assert survives == [named] * bool(named)
    assert check.mutants == CheckCounts(right=empty.status is FAILED, of=empty.status is FAILED or bool(named))


def test_other_variants_that_pass_and_unmeasured_ones_are_notes() -> None:
    unknown = Tried("the answer is nonsense", ERROR, "no judge", (a_grade(error="no judge"),))
    check = grader_check(good(mutants=(tried(PASSED, what="no tool is called"), unknown)))
    assert (check.findings, check.unmeasured, check.mutants) == ((), (), CheckCounts(unmeasured=1))
    assert check.notes == ("it passes when no tool is called", "when the answer is nonsense: not measured: no judge")


def refusal(naming: Sequence[Grade], plain: Sequence[Grade]) -> dict[str, Any]:
    both = (Tried("a refusal", FAILED, "", tuple(naming)), Tried("a refusal", FAILED, "", tuple(plain)))
    return {"refusals": Refusals(("delete",), SILLY, SILLY), "refused": both}


@pytest.mark.parametrize(
    ("naming", "plain", "flagged"),
    [
        (a_grade(passed=False), a_grade(), True),
        (a_grade(passed=False), a_grade(passed=False), False),
        (a_grade(), a_grade(), False),
        (a_grade(passed=False, violations=(a_violation(),)), a_grade(passed=False), True),
        (a_grade(score=0.2, passed=False), a_grade(score=0.5, passed=False), True),
        (a_grade(error="no node"), a_grade(), False),
        (a_grade(passed=False), a_grade(error="no node"), False),
    ],
)
def test_a_refusal_may_name_what_it_refuses(naming: Grade, plain: Grade, flagged: bool) -> None:
    proof = good(**refusal([naming], [plain]))
    assert found(proof) == ([Fault.REFUSAL_FAILS] if flagged else [])
    assert grader_check(proof).mutants == CheckCounts(right=not flagged, of=1)
    if flagged:
        assert "`delete`" in only(proof).message
        assert "tool_calls.forbidden" in only(proof).remedy


def with_counterexamples(*graders: dict[str, Any], of_task: Any = None, **changes: Any) -> Proof:
    return good(*graders, of_task={"reference": EXAMPLES, **(of_task or {})}, **changes)


HALF_BAD = tried(FAILED, False, True)
SHOWS = (a_grade(), a_grade(passed=False))


def test_with_counterexamples_every_grader_must_have_failed_once() -> None:
    proof = with_counterexamples(SAYS_YES, NO, bad=(HALF_BAD, HALF_BAD))
    finding = only(proof)
    assert (finding.fault, finding.graders) == (Fault.NEVER_FAILED, ("no",))
    assert grader_check(proof).graders == CheckCounts(right=1, of=2)


@pytest.mark.parametrize(
    "more",
    [
        {"mutants": (Tried("x", FAILED, "", SHOWS),)},
        refusal(SHOWS, SHOWS),
        {"bad": (HALF_BAD, Tried("x", FAILED, "", SHOWS))},
        {"bad": (Tried("x", FAILED, "", (a_grade(passed=False), a_grade(error="no judge"))),)},
    ],
    ids=["a variant", "a refusal", "a counterexample", "what could not be measured"],
)
def test_whatever_is_bad_shows_that_a_grader_can_fail(more: dict[str, Any]) -> None:
    assert found(with_counterexamples(SAYS_YES, NO, **({"bad": (HALF_BAD,)} | more))) == []


FORBIDS = {"type": "output_check", "name": "words", "contains": ["yes"], "not_contains": ["no"]}
LEAVES = {"type": "state_check", "expect": [{"file": "a"}, {"file": "b", "exists": False}]}
JUDGED = {"type": "llm_rubric", "rubric": "Be good.", "assertions": ["It is good.", "It is short."]}


def checks(*passed: bool) -> Grade:
    messages = [f"check {number}" for number in range(len(passed))]
    pairs = zip(passed, messages, strict=True)
    return a_grade(passed=all(passed), checks=tuple(Check(passed=one, message=message) for one, message in pairs))


@pytest.mark.parametrize(
    ("grader", "bad", "told"),
    [
        (FORBIDS, [(False, True)], ["whatever bad was tried, check 1"]),
        *((FORBIDS, [(False, True), (True, False)], []), (FORBIDS, [(False,)], [])),
        (LEAVES, [(False, True)], ["whatever bad was tried, check 1"]),
        *((LEAVES, [(True, False)], []), (JUDGED, [(False, True)], [])),
    ],
)
def test_with_counterexamples_each_check_must_be_broken_once(grader: Any, bad: Any, told: list[str]) -> None:
    trials = tuple(Tried("x", FAILED, "", (checks(*passed),)) for passed in bad)
    tried_too = {"good": Tried("good", PASSED, "", (checks(True, True),)), "bad": trials}
    findings = grader_check(with_counterexamples(grader, **tried_too)).findings
    assert [finding.message for finding in findings] == [f"never broken: {message}" for message in told]
    assert found(good(grader, **tried_too)) == []


def test_without_counterexamples_a_grader_that_never_failed_is_a_note() -> None:
    check = grader_check(good(SAYS_YES, NO, bad=(HALF_BAD,)))
    assert (check.findings, check.notes) == ((), ("no: never failed: it passes everything bad that was tried",))


def test_graders_that_only_inform_need_not_fail() -> None:
    informs = {**CONTAINS, "weight": 0}
    check = grader_check(with_counterexamples(CONTAINS, informs, of_task={"scoring": AVERAGE}, bad=(HALF_BAD,)))
    assert (check.findings, check.graders) == ((), CheckCounts(right=1, of=1))


def test_a_grader_that_cannot_fail_is_told_once() -> None:
    proof = with_counterexamples(SAYS_YES, {"type": "output_check", "matches": "|"}, bad=(HALF_BAD,))
    assert found(proof) == [Fault.CANNOT_FAIL]


def test_points_for_nothing_are_a_fault() -> None:
    points = {"type": "regex", "value": ".*"}
    finding = only(good(CONTAINS, points, of_task={"scoring": AVERAGE}, bad=(HALF_BAD,)))
    assert (finding.fault, finding.graders) == (Fault.CANNOT_FAIL, ("regex",))
    assert "weight 0" in finding.remedy


def test_a_task_that_can_be_passed_without_the_work_asks_too_little() -> None:
    finding = only(good(of_task={"inputs": a_task().inputs}))
    assert (finding.fault, finding.path) == (Fault.ASKS_TOO_LITTLE, "graders[0]")
    assert finding.message == "asks too little: an agent passes that repeats the prompt"
    assert "a text that the prompt lacks" in finding.remedy
