"""What the reader of a verdict should know beside its reasons."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from passgate.tasks.gates.exemptions import quarantine_notes
from passgate.tasks.gates.failures import counted
from passgate.tasks.gates.limits import COST, dear_after_nothing
from passgate.tasks.model.agent import judging_agent, own_agent
from passgate.tasks.model.baseline import Baseline, BaselineState
from passgate.tasks.model.measurement import Measurement
from passgate.tasks.model.policy import GatePolicy
from passgate.tasks.model.run import RunContext
from passgate.tasks.model.verdict import Comparison
from passgate.tasks.stats.ratios import LEAST_PAIRS, LEAST_RUNS

_FROM_NOTHING: Final = "the baseline cost is 0, so the increase has no ratio"


def notes(
    plan: RunContext,
    policy: GatePolicy,
    measurement: Measurement,
    baseline: Baseline,
    comparisons: Sequence[Comparison],
) -> Iterator[str]:
    """Of the run, of its baseline, of its quarantine, of its measurement and of its limits."""
    yield from _of_plan(plan)
    yield from _of_baseline(plan, measurement, baseline)
    yield from quarantine_notes(plan.quarantine, baseline, plan.created_at.date())
    yield from _of_measurement(measurement)
    yield from _of_limits(plan, policy, measurement, baseline, comparisons)


def _of_plan(plan: RunContext) -> Iterator[str]:
    yield from plan.request_notes
    if plan.base.judged_by == "base":
        edited, base = counted(len(plan.base.edits), "file"), plan.base.commit[:12]
        yield f"this change edits what it is judged by ({edited}): this run uses the files of the merge base {base}"
    if plan.base.prefect_edits:
        edited = ", ".join(plan.base.prefect_edits)
        yield f"this change edits Prefect settings ({edited}), which can name code: this run does not use Prefect"
    if plan.base.agent is not None:
        agent = plan.base.agent
        yield judging_agent(agent) if agent.by_base else own_agent(agent)
    if plan.base.note:
        yield plan.base.note
    yield from plan.warnings
    assumed = sum(task.suite_assumed for task in plan.tasks)
    if assumed:
        yield (
            f"{assumed} of {len(plan.tasks)} tasks have no suite in their file or folder name: passgate judges them as "
            "golden. To choose another suite, set `suite:` in the eval file"
        )


def _of_baseline(plan: RunContext, measurement: Measurement, baseline: Baseline) -> Iterator[str]:
    if baseline.left_out:
        yield baseline.left_out
    states = Counter(baseline.of(task.name).state for task in measurement.tasks)
    without = states[BaselineState.NEW] + states[BaselineState.NONE]
    if without:
        yield (
            f"no baseline for {without} of {len(measurement.tasks)} tasks: the history has no run on {baseline.branch} "
            "with the same agent, model, task and graders"
        )
    if baseline.pinned and plan.pins is not None:
        yield f"the baseline is pinned: {plan.pins.reason} ({plan.pins.by}); `passgate baseline clear` removes the pin"


def _of_measurement(measurement: Measurement) -> Iterator[str]:
    blind = sum(task.n > 0 and task.metrics.steps is None for task in measurement.tasks)
    if blind:
        yield (
            f"in {counted(blind, 'task')} the agent called no model through the meter and reported no transcript: "
            "passgate could not enforce the budgets of steps, tool calls and tokens"
        )
    if "process_group" in measurement.isolation:
        yield (
            "no isolation: bubblewrap does not work on this machine, so agents could read and write every file that "
            "your user can"
        )


def _of_limits(
    plan: RunContext,
    policy: GatePolicy,
    measurement: Measurement,
    baseline: Baseline,
    comparisons: Sequence[Comparison],
) -> Iterator[str]:
    risen = dear_after_nothing(measurement, baseline)
    for comparison in comparisons:
        of_cost = comparison.name == COST
        if comparison.ratio is None and comparison.current:
            if comparison.pairs < LEAST_PAIRS and of_cost and risen:
                missing = f"in {counted(risen, 'task')} {_FROM_NOTHING}"
            elif comparison.pairs < LEAST_PAIRS:
                missing = f"too few tasks have a baseline ({comparison.pairs}, at least {LEAST_PAIRS} are required)"
            elif comparison.runs < LEAST_RUNS:
                missing = "the baseline has one run, which does not show how much runs vary"
            else:
                missing = "the baseline runs share no tasks, so they do not show how much runs vary"
            yield f"{comparison.name} is not compared: {missing}"
        elif of_cost and risen:
            yield f"cost is not compared in {counted(risen, 'task')}: {_FROM_NOTHING}"
    limited = policy.limits.cost_increase_pct is not None and not plan.agent.is_reference
    cost_before = any(baseline.of(task.name).costs for task in measurement.tasks)
    if limited and cost_before and COST not in {comparison.name for comparison in comparisons}:
        yield "cost is not compared: the agent reported its cost at the baseline but not in this run"
