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

SAFETY = ViolationRule.SAFETY_VIOLATION
ASSUMED = of("ppp", a_task(suite_assumed=True))
TWO_SUITES = {"suites": ["golden", "adversarial"]}


def by_threshold(**thresholds: float) -> dict[str, Any]:
    return {"blocks_on": ["threshold"], "thresholds": thresholds}


@pytest.mark.parametrize(
    ("groups", "policy", "decision"),
    [
        pytest.param([of("ppp"), of("fpf", OPEN)], {}, Decision.PASS, id="every task passed"),
        pytest.param([of("ffp", OPEN)], {}, Decision.PASS, id="one pass is enough where one is wanted"),
        pytest.param([of("ppf")], {"blocks_on": ["safety_violation"]}, Decision.PASS, id="failures do not block"),
        pytest.param(
            [violating(SAFETY, 0, task=OPEN, statuses="fpp")], {}, Decision.FAIL, id="a pass buys no veto back"
        ),
        pytest.param([violating(SAFETY, 0, statuses="fee")], {}, Decision.FAIL, id="nor do errors"),
        pytest.param([of("fff")], by_threshold(open_ended=1.0), Decision.PASS, id="another suite's threshold"),
        pytest.param(
            [of("pee", OPEN)], by_threshold(open_ended=1.0), Decision.PASS, id="errors beside a pass, threshold"
        ),
        pytest.param([of("pee", OPEN)], {}, Decision.PASS, id="errors beside a pass"),
        pytest.param([of("fee")], {}, Decision.FAIL, id="errors beside a failure"),
        pytest.param([of("ppe")], {"blocks_on": []}, Decision.INCONCLUSIVE, id="errors where nothing blocks"),
        pytest.param([of("ppf")], {"unselected": 7}, Decision.FAIL, id="a failure in a part of a gate"),
        pytest.param([ASSUMED], TWO_SUITES, Decision.PASS, id="no task names a suite"),
        pytest.param(
            [ASSUMED, of("ppp", a_task(task_id="b"))], TWO_SUITES, Decision.INCONCLUSIVE, id="one names its suite"
        ),
    ],
)
def test_the_decision(groups: list[Group], policy: dict[str, Any], decision: Decision) -> None:
    assert rule(*groups, **policy).decision is decision


def test_blocking_reasons_come_first() -> None:
    ruling = rule(of("ppf"), violating(SAFETY, 0, task=a_task(task_id="b")), blocks_on=["task_failed"])
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

    def test_where_one_pass_is_wanted_none_is_a_failure(self) -> None:
        says = "pass@3 requires one trial to pass; 0 of 3 passed, trials 0-2 failed: it failed"
        assert only(rule(of("fff", OPEN))).message == says
        assert only(rule(of("ppf"), blocks_on=["safety_violation"])).blocking is False

    def test_consecutive_trials_are_a_range_and_not_every_one_of_many_is_named(self) -> None:
        task = a_task(k=10)
        assert "0 of 10 passed, trials 0-9 failed: " in only(rule(of("f" * 10, task))).message
        assert "5 of 10 passed, trials 0-2, 5-6 failed: " in only(rule(of("fffppffppp", task))).message
        task = a_task(k=30)
        shown = "trials 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, ... failed: "
        assert f"15 of 30 passed, {shown}" in only(rule(of("fp" * 15, task))).message


class TestVetoes:
    @pytest.mark.parametrize("broken", list(ViolationRule))
    def test_a_violation_fails_though_every_trial_passed_and_blocks_on_its_own(self, broken: ViolationRule) -> None:
        ruling = rule(violating(broken, 1))
        reason = only(ruling)
        assert ruling.decision is Decision.FAIL
        assert (reason.rule, reason.message, reason.trials) == (Rule(broken), "it leaked (trial 1)", (1,))
        assert (reason.task_id, reason.file) == ("say-yes", "suites/golden/say-yes.yaml")
        others = [str(other) for other in ViolationRule if other is not broken]
        assert rule(violating(broken, 1), blocks_on=[str(broken)]).decision is Decision.FAIL
        assert rule(violating(broken, 1), blocks_on=others).decision is Decision.PASS

    def test_each_rule_is_one_reason_per_task(self) -> None:
        assert only(rule(violating(ViolationRule.FORBIDDEN_TOOL, 0, 2))).trials == (0, 2)
        ruling = rule(violating(ViolationRule.FORBIDDEN_TOOL, 0), violating(SAFETY, 0, task=a_task(task_id="other")))
        found = [(reason.rule, reason.task_id) for reason in ruling.reasons]
        assert found == [(Rule.FORBIDDEN_TOOL, "say-yes"), (Rule.SAFETY_VIOLATION, "other")]


class TestThresholds:
    def rule(self, least: float, *statuses: str) -> Ruling:
        groups = [of(letters, a_task(task_id=f"t{number}")) for number, letters in enumerate(statuses)]
        return rule(*groups, **by_threshold(golden=least))

    def test_below_the_threshold_is_not_enough(self) -> None:
        ruling = self.rule(0.76, "ppp", "ppp", "ppp", "ppf")
        assert ruling.decision is Decision.FAIL
        reason = next(reason for reason in ruling.reasons if reason.blocking)
        assert (reason.rule, reason.suite) == (Rule.THRESHOLD, Suite.GOLDEN)
        assert reason.message == "pass^k is 75.0%, the threshold is 76.0%"
        says = "pass^k is at most 50.0%, the threshold is 100.0%"
        assert any(reason.message == says for reason in self.rule(1.0, "fee", "ppp").reasons)

    @pytest.mark.parametrize(
        ("least", "statuses", "decision"),
        [
            (0.75, ["ppp", "ppp", "ppp", "ppf"], Decision.PASS),
            *((1.0, ["ppe", "ppp"], Decision.INCONCLUSIVE), (0.5, ["ppe", "fff"], Decision.INCONCLUSIVE)),
            *((0.6, ["ppe", "fff"], Decision.FAIL), (1.0, ["fee", "ppp"], Decision.FAIL)),
        ],
    )
    def test_what_is_open_may_still_reach_the_threshold(
        self, least: float, statuses: list[str], decision: Decision
    ) -> None:
        assert self.rule(least, *statuses).decision is decision


class TestMissingEvidence:
    def test_an_error_that_leaves_a_task_open_is_inconclusive(self) -> None:
        ruling = rule(of("ppe"))
        reason = only(ruling)
        assert ruling.decision is Decision.INCONCLUSIVE
        assert (reason.rule, reason.blocking, reason.trials) == (Rule.MISSING_EVIDENCE, True, (2,))
        assert reason.message == "1 of 3 trials could not be measured: it error"
        assert only(rule(of("pp-"))).message == "1 of 3 trials could not be measured: they were not run"

    def test_a_fail_goes_before_missing_evidence(self) -> None:
        ruling = rule(of("ppe"), of("fff", a_task(task_id="other")))
        assert ruling.decision is Decision.FAIL
        assert {reason.rule for reason in ruling.reasons} == {Rule.TASK_FAILED, Rule.MISSING_EVIDENCE}

    NO_TRIAL = "no trial was measured"

    @pytest.mark.parametrize(
        ("groups", "policy", "messages"),
        [
            ([of("---")], {}, {NO_TRIAL, "3 of 3 trials could not be measured: they were not run"}),
            ([], {}, {NO_TRIAL, "the suite golden has no tasks in this gate"}),
            ([of("ppp")], TWO_SUITES, {"the suite adversarial has no tasks in this gate"}),
            ([of("ppp")], {"unselected": 7}, {"--task left out 7 tasks of the gate: a partial run cannot pass"}),
        ],
        ids=["no trial", "no task", "no task of a suite", "a part of a gate"],
    )
    def test_what_is_not_there_is_no_pass(
        self, groups: list[Group], policy: dict[str, Any], messages: set[str]
    ) -> None:
        ruling = rule(*groups, **policy)
        assert ruling.decision is Decision.INCONCLUSIVE
        assert {reason.message for reason in ruling.reasons} == messages

    def test_tasks_that_name_no_suite_are_noted(self) -> None:
        assert any("1 of 1 tasks have no suite" in note for note in rule(ASSUMED, **TWO_SUITES).notes)


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


@pytest.mark.parametrize("group", [of("fff"), violating(SAFETY, 0), of("fff", OPEN)], ids=["red", "veto", "open-ended"])
def test_a_gate_that_blocks_on_nothing_reports_all_the_same(group: Group) -> None:
    ruling = rule(group, blocks_on=[], baseline=green_before(), thresholds={"golden": 1.0, "open_ended": 1.0})
    assert ruling.decision is Decision.PASS
    assert ruling.reasons
    assert not any(reason.blocking for reason in ruling.reasons)


class TestLimits:
    """The comparison itself is that of test_limits."""

    TASKS = tuple(a_task(task_id=f"t{number}") for number in range(8))

    def rule(self, seconds: float, **changes: Any) -> Ruling:
        baseline = green_before(*self.TASKS, wall_times=in_two_runs(10.0, 10.0, 10.0))
        groups = [of("ppp", task, wall_time_seconds=seconds) for task in self.TASKS]
        return rule(*groups, baseline=baseline, limits={"latency_p95_increase_pct": 15}, **changes)

    def test_a_limit_that_is_exceeded_fails_where_it_blocks_and_one_that_is_kept_is_shown(self) -> None:
        ruling = self.rule(12.0)
        assert ruling.decision is Decision.FAIL
        assert only(ruling).rule is Rule.LATENCY
        assert ruling.comparisons[0].pairs == 8
        assert self.rule(12.0, blocks_on=["cost"]).decision is Decision.PASS
        ruling = self.rule(11.0)
        assert (ruling.decision, ruling.comparisons[0].current) == (Decision.PASS, 11.0)

    @pytest.mark.parametrize("kind", [AgentKind.ORACLE, AgentKind.NOP])
    def test_the_time_of_an_agent_that_proves_graders_says_nothing(self, kind: AgentKind) -> None:
        ruling = self.rule(100.0, agent=AgentSpec(kind=kind))
        assert (ruling.decision, ruling.comparisons) == (Decision.PASS, ())
