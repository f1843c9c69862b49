"""Failed tasks in the light of the baseline: strictly, and by the evidence of confirming trials."""

from typing import Any

import pytest

from passgate.tasks.gates.decide import Ruling
from passgate.tasks.model.baseline import BaselineState
from passgate.tasks.model.grade import ViolationRule
from passgate.tasks.model.policy import Rule
from passgate.tasks.model.task import EvalTask, Metric, Suite
from passgate.tasks.model.trial import TrialStatus
from passgate.tasks.model.verdict import Decision, Finding
from tests.builders import a_task, a_trial, trials_of
from tests.unit.gates.rulings import GOLDEN, OPEN, Group, green_before, of, only, rule, violating

RUNS = tuple(f"r{n}" for n in range(20))
SETTLED: dict[str, Any] = {"passed": 60, "n": 60, "newest": (True,) * 60, "runs_green": 20, "runs": RUNS}
"""A baseline of twenty runs of three trials, all green."""


class TestStrict:
    def test_green_before_and_red_now(self) -> None:
        ruling = rule(of("ppf"), baseline=green_before())
        reason = only(ruling)
        assert ruling.decision is Decision.FAIL
        assert reason.rule is Rule.GOLDEN_REGRESSION
        assert reason.message == (
            "passed at the baseline (1 of 1 runs green, 3 of 3 trials passed); "
            "pass^3 requires every trial to pass; 2 of 3 passed, trial 2 failed: it failed"
        )

    ADVERSARIAL = a_task(suite=Suite.ADVERSARIAL)

    @pytest.mark.parametrize(
        ("task", "baseline"),
        [
            *(
                (GOLDEN, {"state": state})
                for state in (BaselineState.RED, BaselineState.UNRELIABLE, BaselineState.NONE)
            ),
            (GOLDEN, None),
            (ADVERSARIAL, {}),
        ],
    )
    def test_only_golden_tasks_that_were_green_regress(self, task: EvalTask, baseline: dict[str, Any] | None) -> None:
        reason = only(rule(of("ppf", task), baseline=None if baseline is None else green_before(task, **baseline)))
        assert (reason.rule, reason.blocking) == (Rule.TASK_FAILED, True)

    def test_a_gate_may_block_on_regressions_alone_and_open_is_none(self) -> None:
        blocks_on = ["golden_regression"]
        assert rule(of("ppf"), baseline=green_before(), blocks_on=blocks_on).decision is Decision.FAIL
        assert rule(of("ppf"), blocks_on=blocks_on).decision is Decision.PASS
        assert rule(of("ppe"), baseline=green_before()).decision is Decision.INCONCLUSIVE


UNKNOWN: dict[str, Any] = {"n": 0, "passed": 0, "newest": (), "runs": ()}


def evidence(statuses: str, task: EvalTask = GOLDEN, baseline: dict[str, Any] = SETTLED, **policy: Any) -> Ruling:
    """The ruling on one task with evidence; letters beyond the task's k are confirming trials."""
    regression = {"mode": "evidence"} | policy.pop("regression", {})
    return rule(of(statuses, task), baseline=green_before(task, **baseline), regression=regression, **policy)


class TestEvidence:
    def test_what_the_trials_have_shown_to_have_fallen_blocks(self) -> None:
        ruling = evidence("fff")
        reason = only(ruling)
        assert (ruling.decision, reason.rule) == (Decision.FAIL, Rule.GOLDEN_REGRESSION)
        assert reason.message.startswith(
            "regression confirmed: 0 of 3 trials passed now, 60 of 60 before; pass^3 requires"
        )
        (confirmation,) = ruling.confirmations
        assert (confirmation.finding, confirmation.n, confirmation.confirming) == (Finding.FALLEN, 3, 0)
        assert confirmation.alpha == pytest.approx(0.01)

    def test_what_fits_the_baseline_does_not_block_nor_what_need_not_be_confirmed(self) -> None:
        ruling = evidence("ppf" + "p" * 20)
        reason = only(ruling)
        assert (ruling.decision, reason.blocking) == (Decision.PASS, False)
        assert reason.message.startswith("no large fall shown: 12 of 13 trials passed now, 60 of 60 before; ")
        assert ruling.confirmations[0].confirming == 20
        ruling = evidence("ppf", blocks_on=["latency"])
        assert (ruling.decision, only(ruling).rule) == (Decision.PASS, Rule.GOLDEN_REGRESSION)
        assert only(ruling).message.startswith("passed at the baseline (20 of 20 runs green")

    def test_trials_that_are_still_wanted_leave_the_gate_open_and_so_do_errors_in_them(self) -> None:
        ruling = evidence("ppf")
        assert ruling.decision is Decision.INCONCLUSIVE
        assert ruling.confirmations[0].finding is Finding.UNFINISHED
        assert [reason.message for reason in ruling.reasons if reason.blocking] == [
            "confirming trials are missing: they were not run"
        ]
        ruling = evidence("ppfee")
        assert ruling.decision is Decision.INCONCLUSIVE
        assert "confirming trials are missing: 2 ended in errors" in [reason.message for reason in ruling.reasons]

    @pytest.mark.parametrize(("undecided", "decision"), [("block", Decision.FAIL), ("warn", Decision.PASS)])
    def test_what_stays_open_at_the_last_trial_is_the_policys(self, undecided: str, decision: Decision) -> None:
        ruling = evidence("pff", baseline={"young": "block"}, regression={"undecided": undecided, "max_trials": 3})
        assert ruling.decision is decision
        effect = {"block": "the policy blocks on that", "warn": "the policy only reports that"}[undecided]
        assert only(ruling).message.startswith(
            "possible regression: 1 of 3 trials passed now, 3 of 3 before; too few trials to confirm it, "
            f"and {effect} (`regression.undecided: {undecided}`); pass^3 requires"
        )
        assert ruling.confirmations[0].finding is Finding.UNDECIDED

    @pytest.mark.parametrize(
        ("statuses", "baseline", "decision", "said"),
        [
            ("pff", {}, Decision.PASS, "no large fall shown: 1 of 3 trials passed now, 3 of 3 before; "),
            ("pff", UNKNOWN | {"state": BaselineState.NEW}, Decision.PASS, "no run on main has decided it yet"),
            # Nothing at all has passed: no bad luck does that.
            ("fff", UNKNOWN | {"state": BaselineState.NEW}, Decision.FAIL, "pass^3 requires every trial to pass"),
            ("f" * 15, {"passed": 6, "n": 6}, Decision.FAIL, "regression confirmed: 0 of "),
            ("f" * 20, {"passed": 5, "n": 6, "state": BaselineState.UNRELIABLE}, Decision.FAIL, "regression confirmed"),
        ],
    )
    def test_a_young_baseline_blocks_only_a_shown_fall(
        self, statuses: str, baseline: dict[str, Any], decision: Decision, said: str
    ) -> None:
        ruling = evidence(statuses, baseline=baseline, regression={"max_trials": 30})
        some_passed = "p" in statuses
        assert (ruling.decision, ruling.young) == (decision, int(some_passed))
        assert ruling.reasons[0].message.startswith(said)
        assert ruling.unarmed == int(some_passed and "state" in baseline and not baseline["n"])

    @pytest.mark.parametrize(
        ("state", "says"),
        [(BaselineState.RED, "failed at the baseline too"), (BaselineState.UNRELIABLE, "the baseline is not reliable")],
    )
    def test_what_was_not_green_before_is_not_this_changes_doing(self, state: BaselineState, says: str) -> None:
        young = {"young": "block", "state": state, "runs_green": 5, "passed": 12, "n": 18}
        ruling = evidence("pff", baseline=SETTLED | young)
        reason = only(ruling)
        assert (ruling.decision, reason.rule) == (Decision.PASS, Rule.TASK_FAILED)
        assert reason.message.startswith(f"{says} (5 of 20 runs green, 12 of 18 trials passed); ")
        assert ruling.confirmations == ()

    def test_an_agent_that_passes_nothing_is_not_let_through_because_it_never_did(self) -> None:
        ruling = evidence("fff", baseline={"state": BaselineState.RED, "runs_green": 0, "passed": 0, "n": 3})
        assert ruling.decision is Decision.INCONCLUSIVE
        blocking, reported = ruling.reasons
        assert (blocking.rule, reported.rule) == (Rule.MISSING_EVIDENCE, Rule.TASK_FAILED)
        assert blocking.message.startswith("no trial passed, and no failure blocks because the agent was no better")

    @pytest.mark.parametrize("state", [BaselineState.RED, BaselineState.UNRELIABLE, BaselineState.GREEN])
    def test_a_flaky_task_is_held_against_its_own_rate(self, state: BaselineState) -> None:
        before = SETTLED | {"state": state, "runs_green": 6, "passed": 42}
        fits, fallen = evidence("fpp" + "p" * 9, baseline=before), evidence("f" * 30, baseline=before)
        assert (fits.decision, fits.confirmations[0].finding) == (Decision.PASS, Finding.FITS)
        assert (fallen.decision, fallen.confirmations[0].finding) == (Decision.FAIL, Finding.FALLEN)
        assert only(fallen).rule is Rule.GOLDEN_REGRESSION
        assert only(fallen).message.startswith("regression confirmed: 0 of ")

    def test_a_flaky_task_blocks_by_a_fall_before_it_is_admitted(self) -> None:
        other = a_task(task_id="other")
        flaky = green_before(state=BaselineState.UNRELIABLE, **SETTLED | {"passed": 42, "newest": (False,) * 20})
        known = flaky.model_copy(update={"tasks": flaky.tasks | green_before(other, **SETTLED).tasks})

        def ruling(statuses: str) -> Ruling:
            return rule(of(statuses), of("ppp", other), baseline=known, regression={"mode": "evidence"}, admission={})

        assert ruling("fpp" + "p" * 9).decision is Decision.PASS
        fallen = ruling("f" * 30)
        assert (fallen.decision, only(fallen).rule) == (Decision.FAIL, Rule.GOLDEN_REGRESSION)
        (exempt,) = fallen.not_admitted
        assert exempt.why == (
            "not admitted yet: 0 of 20 trials passed on main, 19 of 20 are required; "
            "it blocks if it falls below its own rate"
        )

    def test_what_has_dropped_on_the_branch_is_no_fall_of_this_change(self) -> None:
        counts = {f"r{20 - run:02}": ((0 if run < 3 else 3), 3) for run in range(20)}
        ruling = evidence("p" + "f" * 29, baseline=SETTLED | {"passed": 51, "counts": counts})
        assert (ruling.decision, ruling.confirmations) == (Decision.PASS, ())
        assert only(ruling).message.startswith("its newest runs at the baseline are worse than those before (20 of 20")

    @pytest.mark.parametrize(
        ("statuses", "task", "baseline", "decision"),
        [
            ("ppf", GOLDEN, UNKNOWN | {"state": BaselineState.NEW, "young": "block"}, Decision.FAIL),
            ("ppf", GOLDEN, UNKNOWN | {"state": BaselineState.NONE, "young": "block"}, Decision.FAIL),
            ("ppf", GOLDEN, UNKNOWN | {"state": BaselineState.NEW}, Decision.PASS),
            ("ppf", GOLDEN, UNKNOWN | {"state": BaselineState.NONE}, Decision.PASS),
            # Known with another model: that is a change of the agent, and no young baseline.
            ("ppf", GOLDEN, UNKNOWN | {"state": BaselineState.NONE, "newest": (True,) * 20}, Decision.FAIL),
            ("ppf" + "p" * 20, a_task(suite=Suite.OPEN_ENDED), SETTLED, Decision.FAIL),
            ("ppf" + "p" * 20, a_task(suite=Suite.FAILURE_REPLAYS), SETTLED, Decision.PASS),
            ("ppf" + "p" * 20, a_task(suite=Suite.ADVERSARIAL), SETTLED, Decision.PASS),
            ("fff", a_task(suite=Suite.FAILURE_REPLAYS), SETTLED, Decision.FAIL),
        ],
    )
    def test_tasks_with_a_baseline_are_weighed_in_suites_that_the_policy_names(
        self, statuses: str, task: EvalTask, baseline: dict[str, Any], decision: Decision
    ) -> None:
        ruling = evidence(statuses, task, baseline)
        assert (ruling.decision, only(ruling).rule) == (decision, Rule.TASK_FAILED)

    def test_scores_are_not_weighed(self) -> None:
        task = a_task(k=2, metric=Metric.MEAN)
        trials = [a_trial(task, number, TrialStatus.FAILED, score=0.5) for number in range(2)]
        ruling = rule((task, trials), baseline=green_before(task, **SETTLED), regression={"mode": "evidence"})
        assert (ruling.decision, ruling.confirmations) == (Decision.FAIL, ())

    def test_one_pass_of_k_is_weighed_by_its_trials(self) -> None:
        ruling = evidence("fff", OPEN, regression={"suites": ["open_ended"]})
        assert ruling.confirmations[0].finding is Finding.FALLEN
        assert evidence("fpf", OPEN, regression={"suites": ["open_ended"]}).reasons == ()

    def test_a_violation_is_not_weighed(self) -> None:
        task, trials = violating(ViolationRule.SAFETY_VIOLATION, 0, statuses="fpp")
        group: Group = (task, [*trials, *trials_of(task, "---" + "p" * 20)])
        ruling = rule(group, baseline=green_before(**SETTLED), regression={"mode": "evidence"})
        assert (ruling.decision, ruling.confirmations) == (Decision.FAIL, ())
        assert Rule.SAFETY_VIOLATION in {reason.rule for reason in ruling.reasons if reason.blocking}
        assert Rule.MISSING_EVIDENCE not in {reason.rule for reason in ruling.reasons}

    def test_the_risk_is_shared_out_over_the_tasks_that_could_be_confirmed(self) -> None:
        others = [a_task(task_id=f"t{number}") for number in range(9)]
        groups = [of("fff"), *(of("ppp", task) for task in others)]
        ruling = rule(*groups, baseline=green_before(GOLDEN, *others, **SETTLED), regression={"mode": "evidence"})
        (confirmation,) = ruling.confirmations
        assert confirmation.alpha == pytest.approx(1 - 0.99**0.1)
