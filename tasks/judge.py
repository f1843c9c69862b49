"""Judge: a plan, its numbers and the history in, the verdict out."""

from collections.abc import Sequence
from datetime import UTC, datetime

from passgate.tasks.gates.decide import rule_on
from passgate.tasks.history.baseline import COLUMNS, baseline_of
from passgate.tasks.history.dataset import History
from passgate.tasks.measure import measure
from passgate.tasks.model.digest import digest_of
from passgate.tasks.model.graders import LlmRubric
from passgate.tasks.model.measurement import Baseline
from passgate.tasks.model.policy import Policy
from passgate.tasks.model.run import Plan
from passgate.tasks.model.trial import Trial
from passgate.tasks.model.verdict import Inputs, Verdict


def read_baseline(plan: Plan, history: History) -> Baseline:
    """What earlier runs say of the plan's tasks. Raises `StorageError`."""
    where = {"git_branch": plan.policy.baseline.branch, "agent": str(plan.agent)}
    return baseline_of(plan, history.trials(where, COLUMNS))


def judge(plan: Plan, policy: Policy, trials: Sequence[Trial], baseline: Baseline, judge_name: str) -> Verdict:
    """The verdict of a gate on measured trials, under a policy that need not be the plan's own."""
    measurement = measure(plan.tasks, trials)
    ruling = rule_on(plan, policy.gates[plan.gate], measurement, baseline)
    asked = any(isinstance(grader, LlmRubric) for task in plan.tasks for grader in task.graders)
    return Verdict(
        run_id=plan.run_id,
        gate=plan.gate,
        decision=ruling.decision,
        exit_code=ruling.decision.exit_code,
        reasons=ruling.reasons,
        notes=ruling.notes,
        comparisons=ruling.comparisons,
        measurement=measurement,
        agent=str(plan.agent),
        judge=judge_name if asked else "",
        revision=plan.revision,
        inputs=_inputs(plan, policy, trials, baseline),
        started_at=plan.created_at,
        judged_at=datetime.now(UTC),
    )


def _inputs(plan: Plan, policy: Policy, trials: Sequence[Trial], baseline: Baseline) -> Inputs:
    return Inputs(
        policy=digest_of(policy.model_dump(mode="json")),
        tasks=digest_of({task.task_id: task.task_digest for task in plan.tasks}),
        graders=digest_of({task.task_id: task.grader_digest for task in plan.tasks}),
        agent=digest_of(plan.agent.model_dump(mode="json", exclude_defaults=True)),
        prices=digest_of(plan.prices.model_dump(mode="json")),
        trials=digest_of(sorted([trial.task_id, trial.trial, trial.transcript_digest] for trial in trials)),
        baseline_runs=tuple(sorted({entry.run_id for entry in baseline.tasks.values()})),
        passgate_version=plan.passgate_version,
    )
