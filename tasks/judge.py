"""Judge: a plan, its numbers and the history in, the verdict out."""

from collections.abc import Sequence
from datetime import UTC, datetime

from passgate.tasks.gates.decide import rule_on
from passgate.tasks.model.baseline import Baseline
from passgate.tasks.model.digest import digest_of, trials_digest
from passgate.tasks.model.graders import LlmRubric
from passgate.tasks.model.policy import Policy
from passgate.tasks.model.run import Plan
from passgate.tasks.model.trial import Trial
from passgate.tasks.model.verdict import Inputs, Verdict
from passgate.tasks.stats.measurement import measure


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
        confirmations=ruling.confirmations,
        not_admitted=ruling.not_admitted,
        quarantined=ruling.quarantined,
        awaiting_sign_off=ruling.awaiting_sign_off,
        measurement=measurement,
        agent=str(plan.agent),
        judge=judge_name if asked else "",
        revision=plan.revision,
        inputs=inputs_of(plan, policy, trials, baseline),
        started_at=plan.created_at,
        judged_at=datetime.now(UTC),
    )


def inputs_of(plan: Plan, policy: Policy, trials: Sequence[Trial], baseline: Baseline) -> Inputs:
    """The digests of all that a verdict is made from."""
    return Inputs(
        policy=digest_of(policy.model_dump(mode="json")),
        tasks=digest_of({task.task_id: task.task_digest for task in plan.tasks}),
        graders=digest_of({task.task_id: task.grader_digest for task in plan.tasks}),
        agent=digest_of(plan.agent.model_dump(mode="json", exclude_defaults=True)),
        prices=digest_of(plan.prices.model_dump(mode="json")),
        trials=trials_digest(trial.model_dump(mode="json") for trial in trials),
        baseline_runs=baseline.runs,
        baseline=digest_of(baseline.model_dump(mode="json")),
        quarantine=digest_of(plan.quarantine.model_dump(mode="json")),
        passgate_version=plan.passgate_version,
    )
