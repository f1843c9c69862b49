"""The decision of a gate: every rule at its edge, with its data and without."""

from collections.abc import Sequence
from typing import Any

import pytest
from tests.builders import a_grade, a_plan, a_task, a_trial, a_violation, measured, trials_of

from passgate.tasks.gates.decide import Ruling, rule_on
from passgate.tasks.model.agent import AgentKind, AgentSpec
from passgate.tasks.model.grade import ViolationRule
from passgate.tasks.model.measurement import Baseline, BaselineTask, TaskState
from passgate.tasks.model.policy import GatePolicy, Rule
from passgate.tasks.model.run import RunRequest
from passgate.tasks.model.task import EvalTask, Metric, Suite
from passgate.tasks.model.trial import Trial, TrialStatus
from passgate.tasks.model.verdict import Decision, Reason

GOLDEN = a_task()
OPEN = a_task(task_id="open", suite=Suite.OPEN_ENDED, metric=Metric.PASS_AT_K, file="suites/open_ended/open.yaml")
ALL_RULES = [rule for rule in Rule if rule is not Rule.MISSING_EVIDENCE]

Group = tuple[EvalTask, Sequence[Trial]]


def rule(
    *groups: Group,
    baseline: Baseline | None = None,
    agent: AgentSpec | None = None,
    request: RunRequest | None = None,
    unselected: int = 0,
    shipped_policy: bool = False,
    warnings: tuple[str, ...] = (),
    **policy: Any,
) -> Ruling:
    """The ruling on some trials by a gate that blocks on everything and wants the suites that there are."""
    suites = list(dict.fromkeys(task.suite for task, _ in groups)) or [Suite.GOLDEN]
    gate = GatePolicy.model_validate({"suites": suites, "blocks_on": ALL_RULES} | policy)
    changes = ({"agent": agent} if agent else {}) | {"shipped_policy": shipped_policy, "warnings": warnings}
    plan = a_plan(*(task for task, _ in groups), request=request or RunRequest(), unselected=unselected, **changes)
    return rule_on(plan, gate, measured(*groups), baseline or Baseline(branch="main"))


def of(statuses: str, task: EvalTask = GOLDEN, **metrics: Any) -> Group:
    return task, trials_of(task, statuses, **metrics)


def violating(rule: ViolationRule, *trials: int, task: EvalTask = GOLDEN, statuses: str = "ppp") -> Group:
    """Trials of which some have violated a rule; that they passed all the same must not matter."""
    grade = a_grade(violations=(a_violation(rule),))
    made = trials_of(task, statuses)
    return task, [trial.model_copy(update={"grades": (grade,)}) if trial.trial in trials else trial for trial in made]


def green_before(state: TaskState = TaskState.PASSED, task: EvalTask = GOLDEN, **changes: Any) -> Baseline:
    entry = BaselineTask(**({"run_id": "20260101-ab", "state": state, "passed": 3, "n": 3} | changes))
    return Baseline(branch="main", tasks={f"{task.suite}/{task.task_id}": entry})


def only(ruling: Ruling) -> Reason:
    (reason,) = ruling.reasons
    return reason


def test_every_trial_passed_is_a_pass() -> None:
    ruling = rule(of("ppp"), of("fpf", OPEN))
    assert (ruling.decision, ruling.reasons) == (Decision.PASS, ())


class TestTaskFailed:
    def test_one_failed_trial_fails_a_task_that_needs_every_trial(self) -> None:
        ruling = rule(of("ppf"))
        assert ruling.decision is Decision.FAIL
        reason = only(ruling)
        assert (reason.rule, reason.blocking) == (Rule.TASK_FAILED, True)
        assert reason.message == "pass^3 needs every trial, 2 of 3 passed (trial 2): it failed"
        assert (reason.suite, reason.task_id, reason.trials) == (Suite.GOLDEN, "say-yes", (2,))
        assert (reason.file, reason.line) == ("suites/golden/say-yes.yaml", 1)

    def test_one_passed_trial_is_enough_where_one_is_wanted(self) -> None:
        assert rule(of("ffp", OPEN)).decision is Decision.PASS

    def test_none_passed_fails_where_one_is_wanted(self) -> None:
        assert only(rule(of("fff", OPEN))).message == (
            "pass@3 needs one trial, 0 of 3 passed (trials 0, 1, 2): it failed"
        )

    def test_many_trials_are_counted(self) -> None:
        task = a_task(k=15)
        assert "(trials 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 5 more)" in only(rule(of("f" * 15, task))).message

    def test_it_blocks_only_where_the_gate_says_so(self) -> None:
        ruling = rule(of("ppf"), blocks_on=["safety_violation"])
        assert ruling.decision is Decision.PASS
        assert only(ruling).blocking is False


class TestGoldenRegression:
    def test_green_before_and_red_now(self) -> None:
        ruling = rule(of("ppf"), baseline=green_before())
        reason = only(ruling)
        assert ruling.decision is Decision.FAIL
        assert reason.rule is Rule.GOLDEN_REGRESSION
        assert reason.message == (
            "was green in 20260101-ab (3 of 3); pass^3 needs every trial, 2 of 3 passed (trial 2): it failed"
        )

    def test_red_before_too_is_a_failed_task(self) -> None:
        assert only(rule(of("ppf"), baseline=green_before(TaskState.FAILED))).rule is Rule.TASK_FAILED

    def test_without_a_baseline_it_is_a_failed_task(self) -> None:
        assert only(rule(of("ppf"))).rule is Rule.TASK_FAILED

    def test_only_golden_tasks_regress(self) -> None:
        task = a_task(suite=Suite.ADVERSARIAL)
        assert only(rule(of("ppf", task), baseline=green_before(task=task))).rule is Rule.TASK_FAILED

    def test_a_gate_may_block_on_regressions_alone(self) -> None:
        blocks_on = ["golden_regression"]
        assert rule(of("ppf"), baseline=green_before(), blocks_on=blocks_on).decision is Decision.FAIL
        assert rule(of("ppf"), blocks_on=blocks_on).decision is Decision.PASS

    def test_green_before_and_open_now_is_no_regression(self) -> None:
        assert rule(of("ppe"), baseline=green_before()).decision is Decision.INCONCLUSIVE


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

    def test_one_pass_in_k_does_not_buy_it_back(self) -> None:
        ruling = rule(violating(ViolationRule.SAFETY_VIOLATION, 0, task=OPEN, statuses="fpp"))
        assert ruling.decision is Decision.FAIL

    def test_it_goes_before_missing_evidence(self) -> None:
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

    def test_at_the_threshold_is_enough(self) -> None:
        assert self.rule(0.75, "ppp", "ppp", "ppp", "ppf").decision is Decision.PASS

    def test_below_it_is_not(self) -> None:
        ruling = self.rule(0.76, "ppp", "ppp", "ppp", "ppf")
        assert ruling.decision is Decision.FAIL
        reason = next(reason for reason in ruling.reasons if reason.blocking)
        assert (reason.rule, reason.suite) == (Rule.THRESHOLD, Suite.GOLDEN)
        assert reason.message == "pass^k is 75.0%, the threshold is 76.0%"

    def test_a_suite_without_a_threshold_has_none(self) -> None:
        ruling = rule(of("fff"), blocks_on=["threshold"], thresholds={"open_ended": 1.0})
        assert ruling.decision is Decision.PASS

    def test_too_few_trials_do_not_hide_what_is_certain(self) -> None:
        """A failed task with errors has no estimate, and no doubt that it failed."""
        ruling = self.rule(1.0, "fee", "ppp")
        assert ruling.decision is Decision.FAIL
        assert any(reason.message == "pass^k is at most 50.0%, the threshold is 100.0%" for reason in ruling.reasons)

    def test_what_is_open_may_still_reach_the_threshold(self) -> None:
        assert self.rule(1.0, "ppe", "ppp").decision is Decision.INCONCLUSIVE
        assert self.rule(0.5, "ppe", "fff").decision is Decision.INCONCLUSIVE
        assert self.rule(0.6, "ppe", "fff").decision is Decision.FAIL

    def test_one_pass_is_enough_where_one_is_wanted_errors_or_not(self) -> None:
        ruling = rule(of("pee", OPEN), blocks_on=["threshold"], thresholds={"open_ended": 1.0})
        assert ruling.decision is Decision.PASS


class TestMissingEvidence:
    def test_an_error_that_leaves_a_task_open_is_inconclusive(self) -> None:
        ruling = rule(of("ppe"))
        reason = only(ruling)
        assert ruling.decision is Decision.INCONCLUSIVE
        assert (reason.rule, reason.blocking, reason.trials) == (Rule.MISSING_EVIDENCE, True, (2,))
        assert reason.message == "1 of 3 trials could not be measured: it error"

    def test_a_trial_that_is_not_there_is_as_good_as_an_error(self) -> None:
        assert only(rule(of("pp-"))).message == "1 of 3 trials could not be measured: trials were not run"

    def test_an_error_that_changes_nothing_is_no_matter(self) -> None:
        assert rule(of("pee", OPEN)).decision is Decision.PASS
        assert rule(of("fee")).decision is Decision.FAIL

    def test_a_fail_goes_before_missing_evidence(self) -> None:
        ruling = rule(of("ppe"), of("fff", a_task(task_id="other")))
        assert ruling.decision is Decision.FAIL
        assert {reason.rule for reason in ruling.reasons} == {Rule.TASK_FAILED, Rule.MISSING_EVIDENCE}

    def test_not_one_trial_is_no_pass(self) -> None:
        ruling = rule(of("---"))
        assert ruling.decision is Decision.INCONCLUSIVE
        assert "not one trial was measured" in [reason.message for reason in ruling.reasons]

    def test_not_one_task_is_no_pass(self) -> None:
        ruling = rule()
        assert ruling.decision is Decision.INCONCLUSIVE
        assert {reason.message for reason in ruling.reasons} == {
            "the suite golden has no task in this gate",
            "not one trial was measured",
        }

    def test_a_missing_suite_is_no_pass(self) -> None:
        ruling = rule(of("ppp"), suites=["golden", "adversarial"])
        assert ruling.decision is Decision.INCONCLUSIVE
        assert (only(ruling).suite, only(ruling).message) == (
            Suite.ADVERSARIAL,
            "the suite adversarial has no task in this gate",
        )

    def test_tasks_that_name_no_suite_need_no_other_suites(self) -> None:
        ruling = rule(of("ppp", a_task(suite_assumed=True)), suites=["golden", "adversarial"])
        assert ruling.decision is Decision.PASS
        assert any("1 of 1 tasks name no suite" in note for note in ruling.notes)

    def test_one_task_that_names_its_suite_makes_them_needed(self) -> None:
        group = of("ppp", a_task(suite_assumed=True)), of("ppp", a_task(task_id="other"))
        ruling = rule(*group, suites=["golden", "adversarial"])
        assert ruling.decision is Decision.INCONCLUSIVE

    def test_a_part_of_a_gate_is_no_pass(self) -> None:
        ruling = rule(of("ppp"), unselected=7, suites=["golden", "adversarial"])
        assert ruling.decision is Decision.INCONCLUSIVE
        assert only(ruling).message == "--task left out 7 tasks of the gate: a part of it cannot pass"

    def test_a_part_of_a_gate_can_fail(self) -> None:
        assert rule(of("ppf"), unselected=7).decision is Decision.FAIL


@pytest.mark.parametrize(
    ("metric", "says"),
    [
        (Metric.MEAN, "the mean score of 2 trials is 0.5, 0 of 2 passed"),
        (Metric.CONFIDENCE_INTERVAL, "the lower bound of the mean score of 2 trials is 0.5, 0 of 2 passed"),
    ],
)
def test_a_task_that_its_scores_decide_says_which(metric: Metric, says: str) -> None:
    task = a_task(k=2, metric=metric)
    ruling = rule((task, [a_trial(task, number, TrialStatus.FAILED, score=0.5) for number in range(2)]))
    assert ruling.decision is Decision.FAIL
    assert only(ruling).message.startswith(says)


def test_a_run_without_a_gates_file_says_whose_policy_it_is() -> None:
    assert not any("ships" in note for note in rule(of("ppp")).notes)
    note = "there is no gates.yaml: the policy is the one that passgate ships"
    assert note in rule(of("ppp"), shipped_policy=True).notes


def test_what_there_is_to_say_of_the_files_is_said() -> None:
    warning = "evals/EVAL.yaml:3:9: tests[0].input: the variable MISSING is not set"
    assert warning in rule(of("ppp"), warnings=(warning,)).notes


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


def test_blocking_reasons_come_first() -> None:
    ruling = rule(
        of("ppf"), violating(ViolationRule.SAFETY_VIOLATION, 0, task=a_task(task_id="b")), blocks_on=["task_failed"]
    )
    assert [reason.blocking for reason in ruling.reasons] == [True, False]


class TestLimits:
    """The comparison itself is that of test_limits."""

    TASKS = tuple(a_task(task_id=f"t{number}") for number in range(6))

    def rule(self, seconds: float, **changes: Any) -> Ruling:
        entries = {
            f"golden/{task.task_id}": BaselineTask(
                run_id="r", state=TaskState.PASSED, passed=3, n=3, wall_times=(10.0,) * 3
            )
            for task in self.TASKS
        }
        groups = [of("ppp", task, wall_time_seconds=seconds) for task in self.TASKS]
        limits = {"limits": {"latency_p95_increase_pct": 15}}
        return rule(*groups, baseline=Baseline(branch="main", tasks=entries), **(limits | changes))

    def test_a_limit_that_is_exceeded_fails(self) -> None:
        ruling = self.rule(12.0)
        assert ruling.decision is Decision.FAIL
        assert only(ruling).rule is Rule.LATENCY
        assert ruling.comparisons[0].pairs == 6

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


class TestNotes:
    def test_another_k_is_noted(self) -> None:
        notes = rule(of("ppp"), request=RunRequest(k=3), baseline=green_before()).notes
        assert "--k 3 stands in place of the tasks' own k" in notes

    def test_tasks_without_a_baseline_are_noted(self) -> None:
        other = a_task(task_id="other")
        (note,) = (note for note in rule(of("ppp"), of("ppp", other), baseline=green_before()).notes if "base" in note)
        assert note.startswith("no baseline for 1 of 2 tasks: no earlier run on main with the same agent")

    def test_a_baseline_of_every_task_needs_no_note(self) -> None:
        assert rule(of("ppp", steps=3), baseline=green_before()).notes == ()

    def test_budgets_that_were_not_held_are_noted(self) -> None:
        notes = rule(of("ppp", steps=3), of("ppp", a_task(task_id="blind")), baseline=green_before()).notes
        assert any(
            note.startswith("in 1 tasks the agent called no model through the meter and reports no transcript")
            for note in notes
        )

    def test_no_isolation_is_noted(self) -> None:
        task, trials = of("ppp", steps=3)
        bare = [trial.model_copy(update={"isolation": "process_group"}) for trial in trials]
        (note,) = rule((task, bare), baseline=green_before()).notes
        assert note.startswith("no isolation: bubblewrap does not work on this machine")

    def test_a_comparison_of_too_few_tasks_is_noted(self) -> None:
        baseline = green_before(wall_times=(1.0,))
        ruling = rule(
            of("ppp", steps=3, wall_time_seconds=100.0), baseline=baseline, limits={"latency_p95_increase_pct": 1}
        )
        assert ruling.decision is Decision.PASS
        assert ruling.notes == ("latency P95 is not judged: 1 tasks with a baseline are too few",)

    def test_a_cost_that_is_not_reported_any_more_is_noted(self) -> None:
        limits = {"cost_increase_pct": 10}
        baseline = green_before(costs=(1.0,))
        assert rule(of("ppp", steps=3), baseline=baseline, limits=limits).notes == (
            "cost is not judged: the agent reported it at the baseline and does not any more",
        )
        assert rule(of("ppp", steps=3), baseline=baseline).notes == ()
        assert rule(of("ppp", steps=3), baseline=green_before(), limits=limits).notes == ()
