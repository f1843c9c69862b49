"""From the finished runs of a burn-in to what they say."""

from pathlib import Path
from typing import Any

import pytest

from passgate.tasks.commands.burn_in import Finished, JudgedRun, burn_in_folder, first_runs, summarise, why_nothing
from passgate.tasks.gates.decide import rule_on
from passgate.tasks.model.baseline import Baseline, BaselineState, Pins
from passgate.tasks.model.forecast import BurnIn
from passgate.tasks.model.policy import BaselinePolicy, Rule
from passgate.tasks.model.run import Base, Plan, Revision
from passgate.tasks.model.trial import Trial
from passgate.tasks.planning.baseline import pool_of_history, pool_of_runs
from passgate.tasks.record import record
from passgate.tasks.stats.estimators import shrunk_rates
from tests.builders import a_baseline, a_finished, a_plan, a_policy, a_run_id, a_task, begun, measured, trials_of

RUN = a_run_id("20260130")
TASK, OTHER = a_task(), a_task(task_id="other")
GATE: dict[str, Any] = {
    "suites": ["golden"],
    "blocks_on": ["golden_regression", "task_failed"],
    "regression": {"mode": "strict"},
    "admission": False,
    "limits": {},
}
PLAN = a_plan(TASK, OTHER, policy=a_policy(**GATE))
GREEN = a_baseline(TASK, OTHER, runs=("a", "b"), passed=60, n=60)


def a_run(first: str, second: str = "ppp", plan: Plan = PLAN, baseline: Baseline = GREEN, **metrics: Any) -> JudgedRun:
    groups = [(TASK, trials_of(TASK, first, **metrics)), (OTHER, trials_of(OTHER, second, **metrics))]
    ruling = rule_on(plan, plan.gate_policy, measured(*groups), baseline)
    return JudgedRun(tuple(trial for _, trials in groups for trial in trials), ruling)


def summarised(*runs: JudgedRun, first: int = 0, asked: int = 0, plan: Plan = PLAN, **changes: Any) -> BurnIn:
    made = [tuple(a_run("ppp").trials)] * first
    finished = Finished(first=made, judged=list(runs), pool=lambda _: GREEN, **changes)
    return summarise(plan, finished, asked or len(runs) + first)


def test_reds_are_counted_and_causes_are_shares_of_runs_and_of_all_causes() -> None:
    found = summarised(a_run("ppf", "ppf"), a_run("ppf"), a_run("ppp"), a_run("ppp"))
    assert (found.judged, found.red, found.inconclusive) == (4, 2, 0)
    interval = found.red_interval.low, found.red_interval.high
    assert interval == (pytest.approx(0.15, abs=0.01), pytest.approx(0.85, abs=0.01))
    assert [(cause.task, cause.chance) for cause in found.causes] == [("golden/say-yes", 0.5), ("golden/other", 0.25)]
    assert [cause.share for cause in found.causes] == [pytest.approx(2 / 3), pytest.approx(1 / 3)]
    assert [(rule.rule, rule.chance, rule.share) for rule in found.rules] == [(Rule.GOLDEN_REGRESSION, 0.5, 1.0)]


def test_missing_evidence_is_inconclusive_and_no_cause_and_part_of_the_forecast() -> None:
    found = summarised(a_run("ppe"), a_run("ppp"))
    assert (found.red, found.inconclusive, found.causes, found.cost) == (0, 1, (), None)
    assert found.forecast.inconclusive > 0.1


def test_a_run_that_only_waits_for_a_sign_off_is_as_good_as_a_pass() -> None:
    plan = a_plan(TASK, OTHER, policy=a_policy(**GATE, sign_off=True))
    found = summarised(a_run("ppp", plan=plan), plan=plan)
    assert (found.red, found.inconclusive) == (0, 0)


def test_trials_are_those_that_were_run() -> None:
    left_out = [trial.model_copy(update={"status": "not_run", "left_out": True}) for trial in trials_of(TASK, "--f")]
    run = a_run("fp-", "ppf", cost=0.1)
    judged = JudgedRun((*run.trials, *left_out, *trials_of(OTHER, "---pp")), run.ruling)
    found = summarised(judged, a_run("ppp", cost=0.2), spent=7.5)
    assert (found.cost, found.spent) == (pytest.approx(0.85), 7.5), "of the judged runs and of all"
    assert (found.trials, found.confirming, found.saved) == ((7 + 6) / 2, 1.0, 0.5)


def test_the_forecast_is_at_the_rates_of_all_finished_runs_against_the_same_baseline() -> None:
    found = summarised(a_run("ppf"), a_run("ppp"), first=2, asked=9)
    assert (found.first, found.asked, found.forecast.rates) == (2, 9, "burn-in")
    rates = shrunk_rates([(11, 12), (12, 12)])
    assert [task.pass_rate for task in found.forecast.tasks] == [pytest.approx(rate) for rate in rates]
    assert [(task.passed, task.n) for task in found.forecast.tasks] == [(60, 60)] * 2
    assert found.forecast.red == pytest.approx(1 - (rates[0] * rates[1]) ** 3, abs=0.015)


def test_without_a_judged_run_in_which_something_was_measured_there_is_nothing_to_say() -> None:
    assert summarise(PLAN, Finished(), 5) is None
    assert summarise(PLAN, Finished(first=[a_run("ppp").trials], pool=lambda _: GREEN), 5) is None
    unmeasured = a_run("eee", "eee")
    assert summarise(PLAN, Finished(first=[unmeasured.trials], judged=[unmeasured], pool=lambda _: GREEN), 2) is None
    assert summarised(unmeasured, first=1).inconclusive == 1, "one run that was measured is enough"


UNMEASURED, BASELINE = [a_run("eee", "eee")], [a_run("ppp").trials]
HOST, NO_HOST = {"error": "no such host"}, "; the first error: no such host"
NO_MONEY = "--max-cost 0.5 left no money for a "


@pytest.mark.parametrize(
    ("finished", "interrupted", "why"),
    [
        ({"begun": 3, "judged": UNMEASURED, **HOST}, False, f"nothing could be measured in 1 run{NO_HOST}"),
        ({"begun": 3, "judged": UNMEASURED * 2, **HOST}, True, f"nothing could be measured in 2 runs{NO_HOST}"),
        ({"begun": 3}, True, "interrupted before a run was judged: 3 of 9 runs had begun"),
        ({"begun": 1, **HOST}, True, f"interrupted before a run was judged: 1 of 9 runs had begun{NO_HOST}"),
        ({}, False, f"{NO_MONEY}single run"),
        ({"begun": 3}, False, f"{NO_MONEY}single run"),
        ({"begun": 3, "first": BASELINE}, False, f"{NO_MONEY}run to judge: 1 of 9 runs made the baseline"),
    ],
)
def test_why_there_is_nothing_to_say(finished: dict[str, Any], interrupted: bool, why: str) -> None:
    plan = PLAN.model_copy(update={"request": PLAN.request.model_copy(update={"max_cost": 0.5})})
    assert why_nothing(plan, Finished(**finished), 9, interrupted=interrupted) == why


@pytest.mark.parametrize(("runs", "pooled", "first"), [(50, 20, 20), (30, 20, 15), (2, 20, 1), (50, 3, 3)])
def test_at_most_half_of_the_runs_make_the_baseline(runs: int, pooled: int, first: int) -> None:
    policy = PLAN.policy.model_copy(update={"baseline": BaselinePolicy(runs=pooled)})
    assert burn_in_folder(PLAN) == Path(".passgate/burn-in").absolute() / PLAN.run_id, "in no history"
    assert first_runs(PLAN.model_copy(update={"policy": policy}), runs) == first


def test_runs_are_pooled_as_if_they_were_on_the_baseline_branch() -> None:
    elsewhere = {"base": Base(commit="c", ancestors=("c",)), "pins": Pins(commit="d", reason="r")}
    pool = pool_of_runs(a_plan(TASK, OTHER, **elsewhere), [a_run("ppp").trials, a_run("ppf").trials])
    entry = pool(()).tasks["golden/say-yes"]
    assert (entry.state, entry.passed, entry.n, len(entry.runs)) == (BaselineState.UNRELIABLE, 5, 6, 2)


def test_a_run_is_compared_with_the_models_that_have_answered_in_it() -> None:
    def answered(model: str) -> tuple[Trial, ...]:
        return tuple(trial.model_copy(update={"model": model}) for trial in trials_of(TASK, "ppp"))

    pool = pool_of_runs(a_plan(TASK), [answered("m"), answered("n"), answered("n")])
    assert [len(pool(answered(model)).tasks["golden/say-yes"].runs) for model in ("m", "n", "other")] == [1, 2, 0]


def test_a_history_that_knows_the_tasks_goes_first(tmp_path: Path) -> None:
    plan = PLAN.model_copy(update={"request": PLAN.request.model_copy(update={"history": str(tmp_path)})})
    assert pool_of_history(plan) is None
    run = plan.model_copy(update={"run_id": RUN, "created_at": begun(RUN), "revision": Revision(branch="main")})
    record(run, [a_finished(TASK, trial) for trial in range(3)])
    assert pool_of_history(plan)(()).tasks["golden/say-yes"].passed == 3
