"""From a plan and what is known of an agent to the forecast of its gate."""

import shlex
from pathlib import Path
from typing import Any

import pytest

from passgate.tasks.commands.forecast import forecast, history_basis
from passgate.tasks.errors import UsageError
from passgate.tasks.forecasts.assumptions import Basis
from passgate.tasks.history.baseline import ErrorRates
from passgate.tasks.model.agent import AgentKind, AgentSpec
from passgate.tasks.model.baseline import Baseline, BaselineState, Pins
from passgate.tasks.model.forecast import Forecast
from passgate.tasks.model.policy import Rule
from passgate.tasks.model.run import Base, Plan, Revision
from passgate.tasks.model.task import EvalTask, Metric
from passgate.tasks.record import record
from tests.builders import a_baseline, a_finished, a_plan, a_policy, a_run_id, a_task, begun, in_two_runs

RUN = a_run_id("20260130")
TWENTY = [a_task(task_id=f"t{number:02}") for number in range(20)]
STRICT: dict[str, Any] = {"regression": {"mode": "strict"}, "admission": False, "limits": {}, "suites": ["golden"]}
EVIDENCE: dict[str, Any] = {**STRICT, "regression": {"mode": "evidence"}}


def plan_with(*tasks: EvalTask, **gate: Any) -> Plan:
    return a_plan(*tasks, policy=a_policy(**gate))


def assumed(plan: Plan, rate: float = 0.99, **changes: Any) -> Forecast:
    rates = {task.name: rate for task in plan.tasks}
    basis = Basis(Baseline(branch="main"), rates, "assumed", **changes)
    return forecast(plan, basis, gates=2_000)


@pytest.fixture(scope="module")
def of_the_seed() -> Forecast:
    return assumed(plan_with(*TWENTY, **STRICT))


def test_the_seeds_gate(of_the_seed: Forecast) -> None:
    assert of_the_seed.red == of_the_seed.strict_red == pytest.approx(0.4528, abs=0.03)
    assert of_the_seed.inconclusive == 0
    assert of_the_seed.catches[1].mean == of_the_seed.catches[1].strict_mean == pytest.approx(0.657, abs=0.01)
    assert Forecast.model_validate_json(of_the_seed.model_dump_json()) == of_the_seed


def test_the_smallest_change_of_the_seeds_gate_is_to_ask_for_evidence(of_the_seed: Forecast) -> None:
    advice = of_the_seed.advice
    assert advice is not None
    assert [change.what for change in advice.changes] == ["regression.mode: strict -> evidence"]
    assert advice.reaches_target
    assert advice.red <= 0.02
    assert advice.effort.confirming > 0
    after = assumed(plan_with(*TWENTY, **EVIDENCE))
    assert (after.advice, after.red, after.catches) == (None, pytest.approx(advice.red), advice.catches)


def test_a_gate_that_a_suite_is_missing_from_is_never_a_pass() -> None:
    found = assumed(plan_with(*TWENTY[:2], **{**EVIDENCE, "suites": ["golden", "adversarial"]}))
    assert found.inconclusive == pytest.approx(1 - found.red)
    assert any("the suite adversarial has no task" in note for note in found.notes)


def test_errors_make_it_inconclusive_and_violations_on_record_red() -> None:
    plan = plan_with(*TWENTY[:2], **EVIDENCE)
    found = assumed(plan, 1.0, error_rates={"golden/t00": ErrorRates(0.1, {})})
    assert found.inconclusive == pytest.approx(1 - 0.9**3, abs=0.03)
    found = assumed(plan, error_rates={"golden/t00": ErrorRates(0.0, {Rule.SAFETY_VIOLATION: 0.01})})
    assert (found.rules[0].rule, found.rules[0].chance) == (Rule.SAFETY_VIOLATION, pytest.approx(1 - 0.99**3, abs=0.01))
    assert not any("violations" in note for note in found.notes)


def test_the_baseline_of_the_history_goes_before_the_assumed_one() -> None:
    known = a_baseline(TWENTY[0], state=BaselineState.RED, runs=("a", "b"), passed=1, n=6)
    rates = dict.fromkeys((f"golden/{task.task_id}" for task in TWENTY[:2]), 0.99)
    found = forecast(plan_with(*TWENTY[:2], **EVIDENCE), Basis(known, rates, "assumed"), gates=100)
    assert [(task.state, task.can_block) for task in found.tasks] == [("red before too", False), ("as assumed", True)]
    assert found.baseline_runs == 2
    assert [task.n for task in found.tasks] == [None, None]


def test_reference_agents_are_not_compared_in_latency_and_cost() -> None:
    costs = a_baseline(*TWENTY, costs=in_two_runs(1.0, 2.0), wall_times=in_two_runs(1.0, 9.0))
    gate = {**EVIDENCE, "limits": {"cost_increase_pct": 0, "latency_p95_increase_pct": 0}, "young": "block"}
    plan = plan_with(*TWENTY, **gate).model_copy(update={"agent": AgentSpec(kind=AgentKind.ORACLE, target="")})
    found = forecast(plan, Basis(costs, dict.fromkeys(costs.tasks, 0.99), "history"), gates=100)
    assert {cause.rule for cause in found.rules} == {Rule.GOLDEN_REGRESSION}
    assert not any("is not forecast" in note for note in found.notes)


@pytest.mark.slow
@pytest.mark.parametrize(("rule", "figures"), [("latency", "times"), ("cost", "costs")])
def test_limits_without_figures_are_said(rule: str, figures: str) -> None:
    limits = {"latency": {"latency_p95_increase_ms": 100}, "cost": {"cost_increase_pct": 10}}[rule]
    blocks_on = ["golden_regression", "task_failed", rule]
    notes = assumed(plan_with(*TWENTY, **{**EVIDENCE, "limits": limits, "blocks_on": blocks_on})).notes
    too_few = f"the baseline has {figures} for fewer than 8 tasks or 2 runs, so the gate does not judge it"
    assert [note for note in notes if "judge" in note] == [f"{rule} is not forecast: {too_few}"]


def test_tasks_that_go_by_their_scores_are_said() -> None:
    found = assumed(plan_with(a_task(metric=Metric.MEAN), **STRICT), 0.9)
    assert found.red == pytest.approx(0.1, abs=0.02)
    assert any(note.startswith("1 tasks go by their scores") for note in found.notes)


@pytest.mark.parametrize(
    ("runs", "beginnings"),
    [
        (
            3,
            ["the baseline is young: 20 of 20 tasks have fewer than 20 trials, so only a shown", "the rates are known"],
        ),
        (8, ["the rates are known from 8 runs at the most"]),
        (20, []),
    ],
)
def test_a_young_baseline_has_its_limit_said(runs: int, beginnings: list[str]) -> None:
    counts = {f"r{run:02}": (3, 3) for run in range(runs)}
    known = a_baseline(*TWENTY, passed=3 * runs, n=3 * runs, counts=counts)
    basis = Basis(known, dict.fromkeys(known.tasks, 0.99), "history")
    notes = forecast(plan_with(*TWENTY, **EVIDENCE), basis, gates=100).notes
    said = [note for note in notes if note.startswith(("the baseline is young", "the rates are known"))]
    assert all(note.startswith(beginning) for note, beginning in zip(said, beginnings, strict=True))
    assert runs != 3 or said[0].endswith("the gate is sharp from 7 runs on main on")


def test_a_gate_without_tasks_is_never_red_and_never_a_pass() -> None:
    found = assumed(plan_with(**EVIDENCE))
    assert (found.red, found.inconclusive, found.effort.planned, found.tasks) == (0.0, 1.0, 0, ())


def test_the_same_history_has_the_same_forecast_and_its_error_is_said() -> None:
    plan = plan_with(*TWENTY[:5], **EVIDENCE)
    found = assumed(plan)
    assert found == assumed(plan)
    assert found.notes[-1].startswith("2,000 runs are simulated: the share of FAIL is known to within ")
    assert 0 < found.red_error < 0.01


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    plan = plan_with(*TWENTY[:2], **EVIDENCE)
    return plan.model_copy(update={"request": plan.request.model_copy(update={"history": str(tmp_path)})})


def store(plan: Plan, *tasks: EvalTask, branch: str = "main", run_id: str = RUN, **trial: Any) -> None:
    run = plan.model_copy(update={"run_id": run_id, "created_at": begun(run_id), "revision": Revision(branch=branch)})
    record(run, [a_finished(task, number, **trial) for task in tasks for number in range(3)])


def refusal(plan: Plan) -> str:
    with pytest.raises(UsageError) as raised:
        history_basis(plan, {}, "history")
    return str(raised.value).replace(str(plan.request.history), "HISTORY")


def test_a_history_gives_rates_and_baseline(plan: Plan) -> None:
    store(plan, *plan.tasks)
    basis = history_basis(plan, {}, "history")
    assert basis.rates == dict.fromkeys(basis.baseline.tasks, pytest.approx(6.5 / 7))
    assert basis.baseline.tasks["golden/t00"].passed == 3
    rates = history_basis(plan, {"golden/t00": 0.5}, "file").rates
    assert (rates["golden/t00"], rates["golden/t01"]) == (0.5, pytest.approx(6.5 / 7))


def test_a_new_task_beside_known_ones_is_only_reported(plan: Plan) -> None:
    store(plan, plan.tasks[0])
    found = forecast(plan, history_basis(plan, {}, "history"), gates=100)
    assert (found.rates, found.baseline_runs) == ("history", 1)
    assert [(task.state, task.passed, task.n) for task in found.tasks] == [("green", 3, 3), ("new task", 0, 0)]
    assert found.tasks[1].red == 0


def test_an_empty_history_is_refused_with_the_remedy_unless_all_rates_are_given(plan: Plan) -> None:
    assert refusal(plan) == (
        "the history HISTORY has no runs of cli:my-agent on main with the tasks of ci_merge: "
        "`passgate run ci_merge --agent cli:my-agent` makes the first; `--assume 0.99` forecasts without any"
    )
    given = {"golden/t00": 0.9, "golden/t01": 0.8}
    assert history_basis(plan, given, "file").rates == given
    with pytest.raises(UsageError, match="no runs"):
        history_basis(plan, {"golden/t00": 0.9}, "file")
    agent = AgentSpec(kind=AgentKind.CLI, target="sh it's.sh {prompt}")
    command = shlex.split(refusal(plan.model_copy(update={"agent": agent})).split("`")[1])
    assert command == ["passgate", "run", "ci_merge", "--agent", "cli:sh it's.sh {prompt}"], "for a shell"


MEASURED_NOTHING = "with the tasks of ci_merge, but they measured nothing: "
PINNED = Pins(runs=("20260130",), reason="r")


@pytest.mark.parametrize(
    ("task", "stored", "changes", "said"),
    [
        (
            {},
            {"status": "error"},
            {},
            f"{MEASURED_NOTHING}`passgate run ci_merge --agent cli:my-agent` makes another; ",
        ),
        ({}, {"status": "error"}, {"pins": PINNED}, f"{MEASURED_NOTHING}`passgate baseline clear`"),
        ({"grader_digest": "other"}, {}, {}, "with the tasks of ci_merge, but none measured them as they are now: "),
        ({}, {"branch": "mine"}, {}, "has no runs of cli:my-agent on main with the tasks of ci_merge, only runs of "),
        ({}, {"branch": "mine"}, {"base": Base(note="the clone is shallow")}, " (the clone is shallow): "),
    ],
)
def test_runs_that_give_no_rates_are_not_denied(
    plan: Plan, task: dict[str, str], stored: dict[str, Any], changes: dict[str, Any], said: str
) -> None:
    store(plan, *(one.model_copy(update=task) for one in plan.tasks), **stored)
    assert said in refusal(plan.model_copy(update=changes))


@pytest.mark.parametrize(
    ("pins", "what"),
    [
        (Pins(commit="0123456789abcdef", reason="r"), "the commit 0123456789ab"),
        (Pins(runs=("2024", "2023"), reason="r"), "the runs 2024, 2023"),
    ],
)
def test_a_history_that_lacks_what_is_pinned_names_the_pin(plan: Plan, pins: Pins, what: str) -> None:
    store(plan, *plan.tasks)
    assert refusal(plan.model_copy(update={"pins": pins})) == (
        f"baseline.yaml pins {what}, and the history HISTORY has no runs of cli:my-agent there with the tasks of "
        "ci_merge: `passgate baseline clear` takes the pin away; `--assume 0.99` forecasts without any"
    )
