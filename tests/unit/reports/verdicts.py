"""Verdicts made by hand."""

from datetime import UTC, datetime, timedelta
from typing import Any

from tests.unit.reports.hostile import HOSTILE
from tests.unit.reports.measurements import (
    a_confirmed_task,
    a_failed_task,
    a_hostile_task,
    a_stopped_task,
    a_suite,
    a_task,
    a_veto_task,
    a_withheld_task,
    an_undecided_task,
    an_unmeasured_task,
)
from tests.unit.reports.provenance import a_confirmation, a_sign_off, an_integrity, confirmations, not_admitted

from passgate.tasks.model.measurement import Interval, Measurement, SuiteMeasurement, TaskMeasurement, TrialViolation
from passgate.tasks.model.policy import Rule
from passgate.tasks.model.run import Edit, Revision
from passgate.tasks.model.task import GateName, Suite
from passgate.tasks.model.verdict import (
    Comparison,
    Decision,
    Exemption,
    Finding,
    Inputs,
    OtherVerdict,
    Reason,
    Verdict,
    signed_off,
)

CONFIRMING = {"confirming": (True,) * 4 + (False,) * 5}
STARTED = datetime(2026, 4, 1, 2, 0, tzinfo=UTC)


def a_verdict(decision: Decision, tasks: tuple[TaskMeasurement, ...], **changes: Any) -> Verdict:
    """A verdict of a decision over tasks, with changes."""
    measurement = Measurement(
        suites=changes.pop("suites", (a_suite(),)),
        tasks=tasks,
        latency_p95_seconds=12.3,
        cost=0.43,
        isolation=("bubblewrap",),
    )
    plain: dict[str, Any] = {
        "run_id": "20260401T020000Z-ci_merge-5f3a",
        "gate": GateName.CI_MERGE,
        "decision": decision,
        "exit_code": int(decision.exit_code),
        "measurement": measurement,
        "agent": "cli:python agent.py",
        "judge": "recorded replies",
        "revision": Revision(commit="0123456789abcdef0123456789abcdef01234567", branch="fix-login", dirty=True),
        "inputs": Inputs(
            policy="p" * 16,
            tasks="t" * 16,
            graders="g" * 16,
            trials="r" * 16,
            agent="a" * 16,
            prices="d" * 16,
            baseline="b" * 16,
            quarantine="q" * 16,
            baseline_runs=("20260331T020000Z-nightly-77aa", "20260330T020000Z-nightly-19bc"),
            passgate_version="0.1.0",
        ),
        "started_at": STARTED,
        "judged_at": STARTED + timedelta(minutes=9),
    }
    return Verdict(**plain | changes)


def a_reason(task: TaskMeasurement, rule: Rule, message: str, **changes: Any) -> Reason:
    """A blocking reason that names a task, with changes."""
    plain: dict[str, Any] = {
        "rule": rule,
        "blocking": True,
        "message": message,
        "suite": task.suite,
        "task_id": task.task_id,
        "trials": task.failed_trials,
        "file": task.file,
        "line": task.line,
    }
    return Reason(**plain | changes)


def a_reason_of_the_gate(rule: Rule, message: str, **changes: Any) -> Reason:
    """A blocking reason that names no task, with changes."""
    return Reason(**{"rule": rule, "blocking": True, "message": message} | changes)


def failing_verdict() -> Verdict:
    """A FAIL with everything that a verdict can hold, but for a sign-off."""
    veto, fallen, hostile, undecided = a_veto_task(), a_failed_task(**CONFIRMING), a_hostile_task(), an_undecided_task()
    stopped, fits = a_stopped_task(), a_confirmed_task()
    new, quarantined = a_withheld_task(task_id="new_search"), a_withheld_task(task_id="new_export", line=4)
    reused = [
        a_task(task_id=name, reused_from="20260330T020000Z-ci_merge-19bc") for name in ("list_files", "sort_rows")
    ]
    return a_verdict(
        Decision.FAIL,
        (a_task(models=("gpt-5-mini",)), veto, fallen, hostile, undecided, stopped, fits, new, quarantined, *reused),
        suites=_failing_suites(),
        reasons=(
            a_reason(
                fallen,
                Rule.GOLDEN_REGRESSION,
                f"regression confirmed: 5 of 12 trials passed now, 58 of 60 before; {fallen.failure}",
            ),
            a_reason_of_the_gate(
                Rule.THRESHOLD, "the value of golden is 83 %, its threshold 100 %", blocking=False, suite=Suite.GOLDEN
            ),
            a_reason(veto, Rule.FORBIDDEN_TOOL, "delete_user was called", trials=(2, 5)),
            a_reason(veto, Rule.SAFETY_VIOLATION, "wrote the value of API_KEY to reply.txt", trials=(6,)),
            a_reason(hostile, Rule.TASK_FAILED, HOSTILE),
            a_reason_of_the_gate(
                Rule.LATENCY, "latency P95 rose by at least 18 % (paired over 41 tasks); the limit is +15 %"
            ),
            a_reason(undecided, Rule.MISSING_EVIDENCE, "2 of 5 trials have errors", trials=(2, 4)),
            a_reason(stopped, Rule.TASK_FAILED, f"pass^5 requires every trial to pass: {stopped.failure}"),
            a_reason(
                fits,
                Rule.GOLDEN_REGRESSION,
                "no large fall shown: 7 of 12 trials passed now, 51 of 60 before",
                blocking=False,
            ),
            a_reason(new, Rule.TASK_FAILED, "pass^3 requires every trial to pass", blocking=False),
            a_reason(quarantined, Rule.TASK_FAILED, "pass^3 requires every trial to pass", blocking=False),
        ),
        confirmations=confirmations(fits, hostile, fallen),
        not_admitted=not_admitted(new),
        quarantined=(
            Exemption(
                task=quarantined.name, why=f"quarantined until 2026-04-30 by ada: {HOSTILE} (https://tracker/12)"
            ),
        ),
        integrity=an_integrity(),
        comparisons=_comparisons(),
        notes=(
            "3 tasks have no baseline on main: their digests changed with this commit, and nothing says what they were",
            HOSTILE,
        ),
    )


def _failing_suites() -> tuple[SuiteMeasurement, ...]:
    return (
        a_suite(tasks_passed=10, trials_passed=32, value=10 / 12, interval=Interval(low=0.55, high=0.95)),
        a_suite(
            suite=Suite.ADVERSARIAL,
            tasks=30,
            tasks_passed=29,
            trials_passed=297,
            trials_measured=300,
            k="10",
            value=29 / 30,
            interval=Interval(low=0.83, high=0.994),
            cost=12.5,
            wall_time_seconds=4210.0,
        ),
        a_suite(
            suite=Suite.FAILURE_REPLAYS,
            tasks=4,
            tasks_passed=2,
            tasks_undecided=1,
            trials_passed=14,
            trials_measured=15,
            trials_error=2,
            trials_not_run=3,
            k="3-5",
            steps=None,
            cost=None,
        ),
    )


def _comparisons() -> tuple[Comparison, ...]:
    paired = {"pairs": 41, "runs": 20, "ratio": 1.24, "ratio_lower_bound": 1.18, "drift": 0.03}
    alone = {"pairs": 0, "ratio": None, "ratio_lower_bound": None}
    return (
        Comparison(name="latency P95", unit="s", baseline=12.3, current=15.6, limit="+15 %", **paired),
        Comparison(name="cost", unit="$", baseline=0.41, current=0.43, limit="+10 %", **alone),
    )


def inconclusive_verdict() -> Verdict:
    """An INCONCLUSIVE for want of evidence."""
    undecided = an_undecided_task()
    return a_verdict(
        Decision.INCONCLUSIVE,
        (a_task(), undecided, an_unmeasured_task()),
        suites=(
            a_suite(),
            a_suite(
                suite=Suite.FAILURE_REPLAYS, tasks=2, tasks_passed=0, tasks_undecided=2, trials_passed=3,
                trials_measured=3, trials_error=7, k="5", value=None, interval=None,
            ),
        ),
        reasons=(
            a_reason(undecided, Rule.MISSING_EVIDENCE, "2 of 5 trials could not be measured", trials=(2, 4)),
            a_reason_of_the_gate(
                Rule.MISSING_EVIDENCE, "the suite adversarial has no trial", suite=Suite.ADVERSARIAL
            ),
        ),
    )  # fmt: skip


def awaiting_verdict() -> Verdict:
    """A release candidate against which nothing speaks but that nobody has approved it yet."""
    run_id = "20260401T020000Z-release_candidate-5f3a"
    message = f"awaiting sign-off: passgate sign-off {run_id} --by NAME --decision approve|reject --reason TEXT"
    return a_verdict(
        Decision.INCONCLUSIVE,
        (a_task(), a_task(task_id="rename_module")),
        gate=GateName.RELEASE_CANDIDATE,
        run_id=run_id,
        reasons=(a_reason_of_the_gate(Rule.SIGN_OFF, message),),
        awaiting_sign_off=True,
    )


def a_verdict_that_says(text: str, *tasks: TaskMeasurement, times: int = 1) -> Verdict:
    """A FAIL of these tasks and two more in which each text of agents, people and files is this one, so many times."""
    plain: dict[str, Any] = {"task_id": text, "file": text, "failure": text, "error": text, "models": (text,)}
    failed = a_failed_task(**plain, violations=(TrialViolation(trial=1, rule="safety_violation", message=text),))
    withheld = a_failed_task(**plain, suite=Suite.ADVERSARIAL, reused_from=text or "run")
    names = (withheld.name, *(f"{text}{one or ''}" for one in range(times - 1)))
    exemptions = tuple(Exemption(task=name, why=text) for name in names)
    reason = a_reason(failed, Rule.TASK_FAILED, text)
    return a_verdict(
        Decision.FAIL,
        (*tasks, failed, withheld),
        reasons=(reason,),
        confirmations=tuple(a_confirmation(name, Finding.FITS) for name in names),
        not_admitted=exemptions,
        quarantined=exemptions,
        integrity=an_integrity(
            base=text,
            edits=tuple(Edit(path=f"{text}{one or ''}", kind="added", what="policy") for one in range(times)),
            change=OtherVerdict(decision=Decision.FAIL, headline=text, reasons=(reason,) * times),
        ),
        sign_off=a_sign_off(by=text, reason=text),
        notes=(text,) * times,
        agent=text,
    )


FAILING = failing_verdict()
INCONCLUSIVE = inconclusive_verdict()
PASSING = a_verdict(Decision.PASS, (a_task(), a_task(task_id="rename_module")))
"""Without remarks."""
AWAITING = awaiting_verdict()
APPROVED = signed_off(AWAITING, a_sign_off(by="Ada Lovelace", reason="read the failed trials of the week; ship it"))
REJECTED = signed_off(AWAITING, a_sign_off(by=HOSTILE, decision="reject", reason=HOSTILE))
"""Somebody with a hostile name has rejected it for a hostile reason."""
VERDICTS = {
    "failing": FAILING,
    "inconclusive": INCONCLUSIVE,
    "passing": PASSING,
    "awaiting": AWAITING,
    "approved": APPROVED,
    "rejected": REJECTED,
}
