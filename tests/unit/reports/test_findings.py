"""What of a verdict is shown first."""

import subprocess

import pytest
from tests.unit.reports.measurements import a_failed_task, a_stopped_task, a_task
from tests.unit.reports.provenance import a_confirmation
from tests.unit.reports.verdicts import AWAITING, FAILING, REJECTED, a_reason, a_verdict

from passgate.tasks.model.measurement import TaskMeasurement, TaskState, TrialViolation
from passgate.tasks.model.policy import Rule
from passgate.tasks.model.task import Suite
from passgate.tasks.model.verdict import Decision, Exemption, Finding, RunView, Verdict
from passgate.tasks.reports import findings
from passgate.tasks.reports.markdown import markdown
from passgate.tasks.reports.terminal import terminal

VIOLATIONS = (TrialViolation(trial=1, rule="forbidden_tool", message="x"),)


def test_findings_are_ordered_by_severity() -> None:
    blocking, worse = a_failed_task(task_id="blocking"), a_failed_task(task_id="worse", passed=0, failed=3)
    missing, undecided = (a_task(task_id=name, state=TaskState.UNDECIDED) for name in ("missing", "undecided"))
    reported = a_failed_task(task_id="reported", passed=0, failed=3)
    tasks = (a_task(), undecided, reported, missing, blocking, worse, a_task(task_id="veto", violations=VIOLATIONS))
    reasons = (
        *(a_reason(task, Rule.TASK_FAILED, "x") for task in (blocking, worse)),
        a_reason(missing, Rule.MISSING_EVIDENCE, "x"),
    )
    found = findings.findings(a_verdict(Decision.FAIL, tasks, reasons=reasons))
    names = [finding.task.task_id for finding in found]
    assert names == ["veto", "worse", "blocking", "missing", "reported", "undecided"]


@pytest.mark.parametrize(
    ("state", "rule", "is_failure"),
    [
        (TaskState.PASSED, Rule.SAFETY_VIOLATION, True),
        (TaskState.PASSED, Rule.MISSING_EVIDENCE, False),
        (TaskState.UNDECIDED, Rule.MISSING_EVIDENCE, False),
    ],
)
def test_a_blocking_reason_makes_a_task_a_failure_and_missing_evidence_undecided(
    state: TaskState, rule: Rule, is_failure: bool
) -> None:
    task = a_task(state=state)
    (finding,) = findings.findings(a_verdict(Decision.FAIL, (task,), reasons=(a_reason(task, rule, "x"),)))
    assert (finding.is_failure, finding.is_undecided) == (is_failure, not is_failure)


def test_a_task_of_the_same_name_in_another_suite_keeps_its_own_reasons() -> None:
    golden, other = a_task(), a_task(suite=Suite.ADVERSARIAL)
    verdict = a_verdict(Decision.FAIL, (golden, other), reasons=(a_reason(other, Rule.COST, "x"),))
    assert [finding.task.suite for finding in findings.findings(verdict)] == [Suite.ADVERSARIAL]


def test_equal_violations_are_told_once_with_their_trials() -> None:
    violations = [
        TrialViolation(trial=trial, rule="forbidden_tool", message=message)
        for trial, message in [(5, "a"), (2, "a"), (3, "b")]
    ]
    groups = findings.violation_groups(a_task(violations=tuple(violations)))
    assert [(group.message, group.trials) for group in groups] == [("a", (2, 5)), ("b", (3,))]


def test_a_reason_of_several_tasks_is_told_once_with_its_trials() -> None:
    lacks = {"failure": "OPENAI_API_KEY is not set", "passed": 0, "failed": 3, "failed_trials": (0, 1, 2)}
    tasks = [a_failed_task(task_id=f"t{number}", equal_failures=3, **lacks) for number in range(11)]
    reasons = tuple(a_reason(task, Rule.TASK_FAILED, f"0 of 3 passed: {task.failure}") for task in tasks)
    verdict = a_verdict(Decision.FAIL, (*tasks, a_failed_task(task_id="other")), reasons=reasons)
    on_terminal, summary = terminal(verdict, width=100, color=False), markdown(RunView(verdict)).replace("\\", "")
    # The summary has it in its table and in its list of tasks.
    for text, times in ((on_terminal, 1), (summary, 2)):
        assert text.count("OPENAI_API_KEY is not set") == times
        assert "in 33 of 36 trials:" in text
    assert summary.count("the same as in golden/t") == 20


def test_the_end_of_the_agent_is_told_once_whatever_the_graders_of_each_task_miss() -> None:
    crash = "the agent crashed: exit code 1: GROQ_API_KEY is not set"
    fields = {"passed": 0, "failed": 3, "failed_trials": (0, 1, 2), "equal_failures": 3}
    tasks = [a_failed_task(task_id=f"t{n}", failure=f"{crash}; output_check: no {n}", **fields) for n in range(11)]
    verdict = a_verdict(
        Decision.FAIL, tuple(tasks), reasons=tuple(a_reason(task, Rule.TASK_FAILED, "red") for task in tasks)
    )
    text = terminal(verdict, width=100, color=False)
    assert (text.count("GROQ_API_KEY is not set"), text.count("output_check")) == (1, 0)
    assert "in 33 of 33 trials: the agent crashed" in text


def why(verdict: Verdict) -> str:
    (finding,) = findings.every_task(verdict)
    return finding.why_not_blocking


def test_why_a_failed_task_does_not_block() -> None:
    task = a_failed_task()
    new, broken = (Exemption(task=task.name, why=text) for text in ("not admitted yet", "quarantined until May"))
    fits = a_confirmation(task.name, Finding.FITS)
    reported = a_reason(task, Rule.GOLDEN_REGRESSION, "x", blocking=False)
    verdict = a_verdict(Decision.PASS, (task,))

    def changed(**changes: object) -> str:
        return why(verdict.model_copy(update=changes))

    assert changed() == ""
    assert changed(reasons=(reported, reported)) == "golden_regression: reported only"
    assert changed(reasons=(reported,), confirmations=(fits,)) == (
        "no large fall shown: 5/12 now, 58/60 at the baseline, 9 confirming trials"
    )
    assert changed(confirmations=(fits,), quarantined=(broken,)) == "quarantined until May"
    assert changed(not_admitted=(new,), quarantined=(broken,)) == "not admitted yet; quarantined until May"
    assert changed(not_admitted=(Exemption(task="adversarial/repair_invoice_totals", why="new"),)) == ""


def test_in_short_a_task_that_does_not_block_says_why_and_another_what_is_wrong() -> None:
    task = a_failed_task(failure="wrong")
    red = a_reason(task, Rule.TASK_FAILED, "failed at the baseline too; pass^3 requires ...", blocking=False)
    blocking = a_reason(task, Rule.TASK_FAILED, "pass^3 requires ...")

    def in_short(**changes: object) -> str:
        (finding,) = findings.every_task(a_verdict(Decision.FAIL, (task,)).model_copy(update=changes))
        return finding.why_in_short

    assert in_short(reasons=(red,)) == "does not block: failed at the baseline too; pass^3 requires ..."
    assert in_short(reasons=(red,), quarantined=(Exemption(task=task.name, why="until May"),)) == (
        "does not block: until May"
    )
    assert in_short(reasons=(blocking,)) == "wrong"


@pytest.mark.parametrize("finding", [Finding.UNDECIDED, Finding.UNFINISHED, Finding.FALLEN])
def test_what_has_fallen_is_no_excuse(finding: Finding) -> None:
    task = a_failed_task()
    reason = a_reason(task, Rule.GOLDEN_REGRESSION, "x", blocking=False)
    confirmation = a_confirmation(task.name, finding)
    shown = why(a_verdict(Decision.PASS, (task,), reasons=(reason,), confirmations=(confirmation,)))
    assert shown.startswith("golden_regression: " if finding is Finding.FALLEN else f"{finding}: ")


@pytest.mark.parametrize(
    ("task", "blocking"),
    [(a_failed_task(), True), (a_failed_task(violations=VIOLATIONS), False), (a_task(), False)],
    ids=["blocks", "violation", "pass"],
)
def test_nothing_excuses_what_blocks_a_violation_or_a_pass(task: TaskMeasurement, blocking: bool) -> None:
    withheld = Exemption(task=task.name, why="quarantined")
    reason = a_reason(task, Rule.TASK_FAILED, "x", blocking=blocking)
    assert why(a_verdict(Decision.FAIL, (task,), reasons=(reason,), quarantined=(withheld,))) == ""


@pytest.mark.parametrize(
    ("verdict", "rules"),
    [(AWAITING, {Rule.SIGN_OFF}), (REJECTED, set()), (FAILING, {Rule.MISSING_EVIDENCE})],
    ids=["awaiting", "rejected", "failing"],
)
def test_missing_evidence_and_an_awaited_sign_off_are_open(verdict: Verdict, rules: set[Rule]) -> None:
    assert {reason.rule for reason in verdict.reasons if findings.is_open(verdict, reason)} == rules


def stopped(*left_out: int) -> tuple[TaskMeasurement, ...]:
    return tuple(a_stopped_task(not_run=number) for number in left_out)


def reused(*runs: str) -> tuple[TaskMeasurement, ...]:
    return (a_task(), *(a_task(reused_from=run) for run in runs))


SAVED = "saved by stopping early: {} decided before the last planned trial"
SINCE = "not run again: nothing they depend on has changed since"


@pytest.mark.parametrize(
    ("tasks", "note"),
    [
        pytest.param(stopped(1), (f"1 trial {SAVED.format('1 task was')}",), id="a trial saved"),
        pytest.param(stopped(3, 8), (f"11 trials {SAVED.format('2 tasks were')}",), id="trials saved"),
        pytest.param((a_task(passed=1, not_run=2),), (), id="no money"),
        pytest.param(reused("r1"), (f"1 task {SINCE} r1",), id="a task reused"),
        pytest.param(reused("r1", "r2", "r2"), (f"3 tasks {SINCE} r2, r1",), id="of two runs"),
        pytest.param(
            reused("r1", "r1", "r2", "r3", "r4", "r5"), (f"6 tasks {SINCE} r1, r2, r3 and 2 more",), id="of many runs"
        ),
    ],
)
def test_trials_saved_and_tasks_reused_are_told_in_a_note(
    tasks: tuple[TaskMeasurement, ...], note: tuple[str, ...]
) -> None:
    assert findings.notes(a_verdict(Decision.FAIL, tasks, notes=("more",))) == (*note, "more")


def test_models_are_named_once_and_counted_beyond_three() -> None:
    def models(*names: tuple[str, ...]) -> str:
        return findings.models(a_verdict(Decision.PASS, tuple(a_task(models=one) for one in names)))

    assert models((), ()) == ""
    assert models(("b", "a"), ("b",)) == "a, b"
    assert models(("a", "b", "c"), ("d", "e")) == "a, b, c and 2 more"


@pytest.mark.parametrize("run", ["20260401T020000Z-release_candidate-5f3a", "a b'c; exit 3"])
def test_a_shell_takes_the_sign_off_commands_as_they_stand(run: str) -> None:
    lines = findings.sign_off_commands(a_verdict(Decision.INCONCLUSIVE, (), run_id=run))
    script = "\n".join(("passgate() { printf '%s|' \"$@\"; echo; }", *lines))
    said = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True, timeout=240).stdout
    assert said.splitlines() == [
        f"sign-off|{run}|--by|NAME|--decision|{decision}|--reason|TEXT|" for decision in ("approve", "reject")
    ]
