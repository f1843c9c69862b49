"""The alarms of a run: what somebody should look at, whatever the verdict is."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from passgate.tasks.model.measurement import SuiteMeasurement
from passgate.tasks.model.policy import AlarmPolicy, GatePolicy
from passgate.tasks.model.transcript import END_IN_WORDS, EndReason
from passgate.tasks.model.trial import MEASURED, Trial
from passgate.tasks.model.verdict import Alarm, AlarmKind

_CRASHES: Final = (END_IN_WORDS[EndReason.CRASHED], END_IN_WORDS[EndReason.NOT_STARTED])


def alarms_of(
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
