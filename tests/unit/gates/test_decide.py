"""The decision of a gate: every rule at its edge, with its data and without."""

from typing import Any

import pytest

from passgate.tasks.gates.decide import Ruling
from passgate.tasks.model.agent import AgentKind, AgentSpec
from passgate.tasks.model.grade import ViolationRule
from passgate.tasks.model.policy import Rule
from passgate.tasks.model.task import Metric, Suite
from passgate.tasks.model.trial import TrialStatus
from passgate.tasks.model.verdict import Decision
from tests.builders import a_task, a_trial, in_two_runs
from tests.unit.gates.rulings import OPEN, Group, green_before, of, only, rule, violating


def test_every_trial_passed_is_a_pass_and_blocking_reasons_come_first() -> None:
    ruling = rule(of("ppp"), of("fpf", OPEN))
    assert (ruling.decision, ruling.reasons) == (Decision.PASS, ())
    ruling = rule(
        of("ppf"), violating(ViolationRule.SAFETY_VIOLATION, 0, task=a_task(task_id="b")), blocks_on=["task_failed"]
    )
    assert [reason.blocking for reason in ruling.reasons] == [True, False]


class TestTaskFailed:
    def test_one_failed_trial_fails_a_task_that_needs_every_trial(self) -> None:
        ruling = rule(of("ppf"))
        assert ruling.decision is Decision.FAIL
        reason = only(ruling)
        assert (reason.rule, reason.blocking) == (Rule.TASK_FAILED, True)
        assert reason.message == "pass^3 requires every trial to pass; 2 of 3 passed, trial 2 failed: it failed"
        assert (reason.suite, reason.task_id, reason.trials) == (Suite.GOLDEN, "say-yes", (2,))
        assert (reason.file, reason.line) == ("suites/golden/say-yes.yaml", 1)

    def test_one_pass_is_enough_where_one_is_wanted(self) -> None:
        assert rule(of("ffp", OPEN)).decision is Decision.PASS
        assert only(rule(of("fff", OPEN))).message == (
            "pass@3 requires one trial to pass; 0 of 3 passed, trials 0-2 failed: it failed"
        )

    def test_consecutive_trials_are_a_range_and_not_every_one_of_many_is_named(self) -> None:
        task = a_task(k=10)
        assert "0 of 10 passed, trials 0-9 failed: " in only(rule(of("f" * 10, task))).message
        assert "5 of 10 passed, trials 0-2, 5-6 failed: " in only(rule(of("fffppffppp", task))).message
        task = a_task(k=30)
        shown = "trials 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, ... failed: "
        assert f"15 of 30 passed, {shown}" in only(rule(of("fp" * 15, task))).message

    def test_it_blocks_only_where_the_gate_says_so(self) -> None:
        ruling = rule(of("ppf"), blocks_on=["safety_violation"])
        assert ruling.decision is Decision.PASS
        assert only(ruling).blocking is False


class TestVetoes:
    @pytest.mark.parametrize("broken", list(ViolationRule))
    def test_a_violation_fails_though_every_trial_passed(self, broken: ViolationRule) -> None:
        ruling = rule(violating(broken, 1))
        reason = only(ruling)
        assert ruling.decision is Decision.FAIL
        assert (reason.rule, reason.message, reason.trials) == (Rule(broken), "it leaked (trial 1)", (1,))
        assert (reason.task_id, reason.file) == ("say-yes", "suites/golden/say-yes.yaml")

    @pytest.mark.parametrize("broken", list(ViolationRule))
    def test_each_veto_blocks_on_its_own(self, broken: ViolationRule) -> None:
        others = [str(other) for other in ViolationRule if other is not broken]
        assert rule(violating(broken, 1), blocks_on=[str(broken)]).decision is Decision.FAIL
        assert rule(violating(broken, 1), blocks_on=others).decision is Decision.PASS

    def test_no_pass_and_no_missing_evidence_buys_it_back(self) -> None:
        ruling = rule(violating(ViolationRule.SAFETY_VIOLATION, 0, task=OPEN, statuses="fpp"))
        assert ruling.decision is Decision.FAIL
        ruling = rule(violating(ViolationRule.SAFETY_VIOLATION, 0, statuses="fee"))
        assert ruling.decision is Decision.FAIL

    def test_the_same_rule_is_one_reason_per_task(self) -> None:
        assert only(rule(violating(ViolationRule.FORBIDDEN_TOOL, 0, 2))).trials == (0, 2)

    def test_two_rules_and_two_tasks_are_reasons_of_their_own(self) -> None:
        other = a_task(task_id="other")
        ruling = rule(
            violating(ViolationRule.FORBIDDEN_TOOL, 0), violating(ViolationRule.SAFETY_VIOLATION, 0, task=other)
        )
        assert [(reason.rule, reason.task_id) for reason in ruling.reasons] == [
            (Rule.FORBIDDEN_TOOL, "say-yes"),
            (Rule.SAFETY_VIOLATION, "other"),
        ]


class TestThresholds:
    TASKS = tuple(a_task(task_id=f"t{number}") for number in range(4))

    def results(self, *statuses: str) -> list[Group]:
        return [of(letters, task) for letters, task in zip(statuses, self.TASKS, strict=False)]

    def rule(self, least: float, *statuses: str) -> Ruling:
        return rule(*self.results(*statuses), blocks_on=["threshold"], thresholds={"golden": least})

    def test_at_the_threshold_is_enough_and_below_it_is_not(self) -> None:
        assert self.rule(0.75, "ppp", "ppp", "ppp", "ppf").decision is Decision.PASS
        ruling = self.rule(0.76, "ppp", "ppp", "ppp", "ppf")
        assert ruling.decision is Decision.FAIL
        reason = next(reason for reason in ruling.reasons if reason.blocking)
        assert (reason.rule, reason.suite) == (Rule.THRESHOLD, Suite.GOLDEN)
        assert reason.message == "pass^k is 75.0%, the threshold is 76.0%"

    def test_a_suite_without_a_threshold_has_none(self) -> None:
        ruling = rule(of("fff"), blocks_on=["threshold"], thresholds={"open_ended": 1.0})
        assert ruling.decision is Decision.PASS

    def test_what_is_open_may_still_reach_the_threshold_but_not_what_is_certain(self) -> None:
        assert self.rule(1.0, "ppe", "ppp").decision is Decision.INCONCLUSIVE
        assert self.rule(0.5, "ppe", "fff").decision is Decision.INCONCLUSIVE
        assert self.rule(0.6, "ppe", "fff").decision is Decision.FAIL
        ruling = self.rule(1.0, "fee", "ppp")
        assert ruling.decision is Decision.FAIL
        assert any(reason.message == "pass^k is at most 50.0%, the threshold is 100.0%" for reason in ruling.reasons)
        ruling = rule(of("pee", OPEN), blocks_on=["threshold"], thresholds={"open_ended": 1.0})
        assert ruling.decision is Decision.PASS


class TestMissingEvidence:
    def test_an_error_that_leaves_a_task_open_is_inconclusive(self) -> None:
        ruling = rule(of("ppe"))
        reason = only(ruling)
        assert ruling.decision is Decision.INCONCLUSIVE
        assert (reason.rule, reason.blocking, reason.trials) == (Rule.MISSING_EVIDENCE, True, (2,))
        assert reason.message == "1 of 3 trials could not be measured: it error"
        assert only(rule(of("pp-"))).message == "1 of 3 trials could not be measured: they were not run"

    def test_a_fail_goes_before_missing_evidence_which_may_change_nothing(self) -> None:
        ruling = rule(of("ppe"), of("fff", a_task(task_id="other")))
        assert ruling.decision is Decision.FAIL
        assert {reason.rule for reason in ruling.reasons} == {Rule.TASK_FAILED, Rule.MISSING_EVIDENCE}
        assert rule(of("pee", OPEN)).decision is Decision.PASS
        assert rule(of("fee")).decision is Decision.FAIL

    def test_not_one_trial_or_task_is_no_pass(self) -> None:
        ruling = rule(of("---"))
        assert ruling.decision is Decision.INCONCLUSIVE
        assert "no trial was measured" in [reason.message for reason in ruling.reasons]
        ruling = rule()
        assert ruling.decision is Decision.INCONCLUSIVE
        assert {reason.message for reason in ruling.reasons} == {
            "the suite golden has no tasks in this gate",
            "no trial was measured",
        }

    def test_a_missing_suite_is_no_pass(self) -> None:
        ruling = rule(of("ppp"), suites=["golden", "adversarial"])
        assert ruling.decision is Decision.INCONCLUSIVE
        assert (only(ruling).suite, only(ruling).message) == (
            Suite.ADVERSARIAL,
            "the suite adversarial has no tasks in this gate",
        )

    def test_tasks_that_name_no_suite_need_no_other_suites_unless_one_does(self) -> None:
        ruling = rule(of("ppp", a_task(suite_assumed=True)), suites=["golden", "adversarial"])
        assert ruling.decision is Decision.PASS
        assert any("1 of 1 tasks have no suite" in note for note in ruling.notes)
        group = of("ppp", a_task(suite_assumed=True)), of("ppp", a_task(task_id="other"))
        ruling = rule(*group, suites=["golden", "adversarial"])
        assert ruling.decision is Decision.INCONCLUSIVE

    def test_a_part_of_a_gate_can_fail_and_not_pass(self) -> None:
        ruling = rule(of("ppp"), unselected=7, suites=["golden", "adversarial"])
        assert ruling.decision is Decision.INCONCLUSIVE
        assert only(ruling).message == "--task left out 7 tasks of the gate: a partial run cannot pass"
        assert rule(of("ppf"), unselected=7).decision is Decision.FAIL


@pytest.mark.parametrize(
    ("metric", "says"),
    [
        (Metric.MEAN, "the mean score of 2 trials is 0.5; 0 of 2 passed"),
        (Metric.CONFIDENCE_INTERVAL, "the lower bound of the mean score of 2 trials is 0.5; 0 of 2 passed"),
    ],
)
def test_a_task_that_its_scores_decide_says_which(metric: Metric, says: str) -> None:
    task = a_task(k=2, metric=metric)
    ruling = rule((task, [a_trial(task, number, TrialStatus.FAILED, score=0.5) for number in range(2)]))
    assert ruling.decision is Decision.FAIL
    assert only(ruling).message.startswith(says)


class TestNightly:
    """A gate that blocks on nothing."""

    @pytest.mark.parametrize(
        "group", [of("fff"), violating(ViolationRule.SAFETY_VIOLATION, 0), of("fff", OPEN)], ids=lambda _: ""
    )
    def test_nothing_blocks(self, group: Group) -> None:
        ruling = rule(group, blocks_on=[], baseline=green_before(), thresholds={"golden": 1.0, "open_ended": 1.0})
        assert ruling.decision is Decision.PASS
        assert ruling.reasons
        assert not any(reason.blocking for reason in ruling.reasons)

    def test_missing_evidence_is_no_pass_all_the_same(self) -> None:
        assert rule(of("ppe"), blocks_on=[]).decision is Decision.INCONCLUSIVE


class TestLimits:
    """The comparison itself is that of test_limits."""

    TASKS = tuple(a_task(task_id=f"t{number}") for number in range(8))

    def rule(self, seconds: float, **changes: Any) -> Ruling:
        baseline = green_before(*self.TASKS, wall_times=in_two_runs(10.0, 10.0, 10.0))
        groups = [of("ppp", task, wall_time_seconds=seconds) for task in self.TASKS]
        limits = {"limits": {"latency_p95_increase_pct": 15}}
        return rule(*groups, baseline=baseline, **(limits | changes))

    def test_a_limit_that_is_exceeded_fails(self) -> None:
        ruling = self.rule(12.0)
        assert ruling.decision is Decision.FAIL
        assert only(ruling).rule is Rule.LATENCY
        assert ruling.comparisons[0].pairs == 8

    def test_a_limit_that_is_kept_passes_and_is_shown(self) -> None:
        ruling = self.rule(11.0)
        assert ruling.decision is Decision.PASS
        assert ruling.comparisons[0].current == 11.0

    def test_it_blocks_only_where_the_gate_says_so(self) -> None:
        assert self.rule(12.0, blocks_on=["cost"]).decision is Decision.PASS

    @pytest.mark.parametrize("kind", [AgentKind.ORACLE, AgentKind.NOP])
    def test_the_time_of_an_agent_that_proves_graders_says_nothing(self, kind: AgentKind) -> None:
        ruling = self.rule(100.0, agent=AgentSpec(kind=kind))
        assert (ruling.decision, ruling.comparisons) == (Decision.PASS, ())
