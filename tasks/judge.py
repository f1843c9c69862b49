"""Judge a run: apply its policy to its measurement and its baseline, and return the verdict."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from passgate.tasks.gates.decide import rule_on
from passgate.tasks.model.baseline import Baseline
from passgate.tasks.model.graders import LlmRubric
from passgate.tasks.model.json_values import json_digest, trials_digest
from passgate.tasks.model.measurement import Measurement, SuiteMeasurement
from passgate.tasks.model.policy import AlarmPolicy, GatePolicy
from passgate.tasks.model.run import RunContext
from passgate.tasks.model.transcript import END_IN_WORDS, EndReason
from passgate.tasks.model.trial import MEASURED, Trial
from passgate.tasks.model.verdict import Alarm, AlarmKind, Inputs, Verdict

_CRASHES: Final = (END_IN_WORDS[EndReason.CRASHED], END_IN_WORDS[EndReason.NOT_STARTED])


def judge(
    context: RunContext,
    trials: Sequence[Trial],
    measurement: Measurement,
    baseline: Baseline,
    judge_name: str,
    drift: Sequence[str] = (),
) -> Verdict:
    """Return the verdict of a gate on a run.

    `judge_name` is the model that graded rubrics, `drift` the findings of drift in the history, as text.
    """
    policy = context.gate_policy
    ruling = rule_on(context, policy, measurement, baseline)
    alarms = suite_alarms(policy, measurement.suites, trials, drift)
    notes = (*(f"alarm: {alarm.message}" for alarm in alarms), *ruling.notes)
    has_rubrics = any(isinstance(grader, LlmRubric) for task in context.tasks for grader in task.graders)
    return Verdict(
        run_id=context.run_id,
        gate=context.gate,
        exit_code=ruling.decision.exit_code,
        **(dict(ruling) | {"notes": notes}),
        repeats=baseline.repeats,
        alarms=alarms,
        measurement=measurement,
        agent=str(context.agent),
        judge=judge_name if has_rubrics else "",
        revision=context.revision,
        inputs=verdict_inputs(context, trials, baseline),
        started_at=context.created_at,
        judged_at=datetime.now(UTC),
    )


def verdict_inputs(context: RunContext, trials: Sequence[Trial], baseline: Baseline) -> Inputs:
    """Return the digests of everything that a verdict depends on."""
    return Inputs(
        policy=json_digest(context.policy.model_dump(mode="json")),
        tasks=json_digest({task.task_id: task.task_digest for task in context.tasks}),
        graders=json_digest({task.task_id: task.grader_digest for task in context.tasks}),
        agent=json_digest(context.agent.model_dump(mode="json", exclude_defaults=True)),
        prices=json_digest(context.prices.model_dump(mode="json")),
        trials=trials_digest(trial.model_dump(mode="json") for trial in trials),
        baseline_runs=baseline.runs,
        baseline=json_digest(baseline.model_dump(mode="json")),
        quarantine=json_digest(context.quarantine.model_dump(mode="json")),
        passgate_version=context.passgate_version,
    )


def suite_alarms(
    policy: GatePolicy, suites: Iterable[SuiteMeasurement], trials: Sequence[Trial], drift: Iterable[str] = ()
) -> tuple[Alarm, ...]:
    """Return what a gate's policy wants to be told of its suites. `drift` is what the history tells, in words."""
    if policy.alarm is False:
        return ()
    found = tuple(alarm for suite in suites for alarm in _of_suite(policy.alarm, suite, trials))
    drifts = drift if policy.alarm.drift else ()
    return (*found, *(Alarm(kind=AlarmKind.DRIFT, message=f"drift: {told}") for told in drifts))


def _of_suite(policy: AlarmPolicy, suite: SuiteMeasurement, trials: Sequence[Trial]) -> Iterator[Alarm]:
    measured = [one for one in trials if one.suite is suite.suite and one.status in MEASURED]
    if policy.crashed_agents and measured and all(one.reason.startswith(_CRASHES) for one in measured):
        message = f"the agent crashed in each of {len(measured)} measured trials of {suite.suite}: {measured[0].reason}"
        yield Alarm(kind=AlarmKind.CRASHED_AGENTS, suite=suite.suite, message=message)
    floor = policy.floors.get(suite.suite)
    if floor is not None and suite.value is not None and suite.value < floor:
        message = f"{suite.metric} of {suite.suite} is {suite.value:.1%}, below its floor of {floor:.1%}"
        yield Alarm(kind=AlarmKind.BELOW_FLOOR, suite=suite.suite, message=message)
