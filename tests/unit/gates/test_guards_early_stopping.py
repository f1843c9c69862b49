"""Which trials need not be run: every condition at its edge."""

from typing import Any

import pytest

from passgate.tasks.gates.guards import LEFT_OUT, needless
from passgate.tasks.model.agent import AgentKind, AgentSpec
from passgate.tasks.model.grade import ViolationRule
from passgate.tasks.model.policy import QuarantineEntry, QuarantineFile
from passgate.tasks.model.run import Plan
from passgate.tasks.model.task import EvalTask, Metric, Suite
from tests.builders import STARTED, a_grade, a_plan, a_policy, a_task, a_violation, trials_of

STRICT: dict[str, Any] = {
    "suites": list(Suite),
    "thresholds": {},
    "limits": {},
    "admission": False,
    "curtailment": True,
    "blocks_on": ["safety_violation", "forbidden_tool", "golden_regression", "task_failed", "threshold"],
    "regression": {"mode": "strict"},
}
GOLDEN = a_task()
ADVERSARIAL = a_task(suite=Suite.ADVERSARIAL)
ANY = a_task(metric=Metric.PASS_AT_K)
FORBIDS = {"type": "tool_calls", "forbidden": ["rm"]}


def a_gate(*tasks: EvalTask, plan: dict[str, Any] | None = None, **policy: Any) -> Plan:
    """A plan under a strict gate that stops early."""
    return a_plan(*tasks, policy=a_policy(**(STRICT | policy)), **(plan or {}))


def stopped(statuses: str, task: EvalTask = GOLDEN, plan: dict[str, Any] | None = None, **policy: Any) -> bool:
    reason = needless(a_gate(task, plan=plan, **policy), task, trials_of(task, statuses))
    assert reason in {None, LEFT_OUT}
    return reason is not None


def vetoed(statuses: str, task: EvalTask = GOLDEN, rule: ViolationRule = ViolationRule.SAFETY_VIOLATION, **policy: Any):
    """Whether a task is stopped in whose last trial a violation was found."""
    *others, last = trials_of(task, statuses)
    last = last.model_copy(update={"grades": (a_grade(violations=(a_violation(rule),)),)})
    return needless(a_gate(task, **policy), task, [*others, last]) is not None


class TestFailed:
    @pytest.mark.parametrize(
        ("statuses", "task", "expected"),
        [
            *(("", GOLDEN, False), ("pp", GOLDEN, False), ("pf", GOLDEN, True), ("e", GOLDEN, False)),
            *(("n", GOLDEN, False), ("ff", ANY, False)),
            ("f", a_task(metric=Metric.MEAN, scoring={"rule": "weighted_average"}), False),
            ("f", a_task(metric=Metric.CONFIDENCE_INTERVAL, scoring={"rule": "weighted_average"}), False),
        ],
    )
    def test_once_it_has_failed_for_certain(self, statuses: str, task: EvalTask, expected: bool) -> None:
        assert stopped(statuses, task) is expected

    def test_a_task_when_each_rule_that_it_may_come_under_blocks(self) -> None:
        assert stopped("f")
        assert not stopped("f", curtailment=False)
        assert not stopped("f", blocks_on=["task_failed"])
        assert not stopped("f", blocks_on=["golden_regression"])
        assert stopped("f", blocks_on=["golden_regression", "task_failed"])
        assert stopped("f", ADVERSARIAL, blocks_on=["task_failed"])
        assert not stopped("f", ADVERSARIAL, blocks_on=["golden_regression"])

    def test_not_where_confirming_trials_or_its_admission_may_clear_it(self) -> None:
        evidence = {"mode": "evidence", "suites": ["golden"]}
        assert not stopped("f", regression=evidence)
        assert stopped("f", ADVERSARIAL, regression=evidence)
        assert not stopped("f", admission={"passes": 1, "of": 2})

    @pytest.mark.parametrize(("expires", "expected"), [("2026-01-30", True), ("2026-01-31", False)])
    def test_not_in_quarantine(self, expires: str, expected: bool) -> None:
        entry = {"task": "golden/say-yes", "owner": "a", "reason": "b", "issue": "c", "expires": expires}
        quarantine = QuarantineFile(tasks=(QuarantineEntry.model_validate(entry),))
        assert STARTED.date().isoformat() == "2026-01-31"
        assert stopped("f", plan={"quarantine": quarantine}) is expected
        other = quarantine.tasks[0].model_copy(update={"task": "golden/other"})
        assert stopped("f", plan={"quarantine": QuarantineFile(tasks=(other,))})


class TestPassed:
    def test_once_it_has_passed_for_certain_also_where_failures_do_not_block(self) -> None:
        assert stopped("fp", ANY)
        assert not stopped("ff", ANY)
        assert stopped("p", a_task(suite=Suite.ADVERSARIAL, metric=Metric.PASS_AT_K))
        assert stopped("p", ANY, blocks_on=[])

    def test_not_where_a_later_trial_may_be_vetoed(self) -> None:
        task = a_task(metric=Metric.PASS_AT_K, graders=[FORBIDS])
        assert not stopped("p", task)
        assert not stopped("p", task, blocks_on=["forbidden_tool"])
        assert stopped("p", task, blocks_on=["safety_violation"])

    def test_not_where_a_limit_compares_it_or_its_baseline_says_something_of_others(self) -> None:
        limits = {"latency_p95_increase_pct": 15}
        assert not stopped("p", ANY, limits=limits)
        assert stopped("p", ANY, limits=limits, plan={"agent": AgentSpec(kind=AgentKind.ORACLE)})
        assert not stopped("p", ANY, regression={"mode": "evidence", "suites": ["golden"]})
        assert not stopped("p", ANY, admission={"passes": 1, "of": 2})

    def test_not_where_earlier_runs_of_the_commit_may_want_another_pass(self) -> None:
        assert not stopped("p", ANY, reruns="together")
        assert stopped("f", GOLDEN, reruns="together")

    def test_not_where_a_threshold_weighs_it_against_scores(self) -> None:
        scored = a_task(task_id="scored", metric=Metric.MEAN, scoring={"rule": "weighted_average"})
        trials = trials_of(ANY, "p")
        thresholds = {"golden": 0.9}
        assert needless(a_gate(ANY, scored, thresholds=thresholds), ANY, trials) is None
        assert needless(a_gate(ANY, scored, thresholds={"open_ended": 0.9}), ANY, trials) == LEFT_OUT
        assert needless(a_gate(ANY, scored, thresholds=thresholds, blocks_on=[]), ANY, trials) == LEFT_OUT
        assert needless(a_gate(ANY, GOLDEN, thresholds=thresholds), ANY, trials) == LEFT_OUT


def test_a_veto_that_blocks_decides_whatever_else_may_be_withheld_but_an_open_task_goes_on() -> None:
    """Else there would be no telling what is missing from what was left out."""
    assert vetoed("f", regression={"mode": "evidence"}, admission={"passes": 1, "of": 2})
    assert vetoed("f", rule=ViolationRule.FORBIDDEN_TOOL, blocks_on=["forbidden_tool"])
    assert not vetoed("f", rule=ViolationRule.FORBIDDEN_TOOL, blocks_on=["safety_violation"])
    assert not vetoed("f", curtailment=False)
    assert not vetoed("f", ANY)
    assert vetoed("fpf", ANY, limits={"latency_p95_increase_pct": 15})
