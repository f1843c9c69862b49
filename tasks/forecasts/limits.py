"""What a forecast does not know, in words."""

from collections.abc import Iterator
from typing import Final

from passgate.tasks.forecasts.assumptions import Setting
from passgate.tasks.gates.guards import is_weighed
from passgate.tasks.stats.regression import ENOUGH

_ENOUGH_RUNS: Final = 10  # Fewer do not tell how runs differ, nor how much tasks do


def limits_of(setting: Setting, confirming: float) -> Iterator[str]:
    """The limits of the forecast of a setting, in which so many confirming trials are expected."""
    gate = setting.plan.gate_policy
    known = [task for task in setting.tasks if task.known is not None and is_weighed(gate, task.failed)]
    young = [task for task in known if task.known is not None and task.known.n < ENOUGH]
    if young:
        sharp = max(-(-ENOUGH // task.failed.k) for task in young)
        blocks = "only a shown fall blocks" if setting.young == "report" else "what stays undecided may block"
        yield (
            f"the baseline is young: {len(young)} of {len(setting.tasks)} tasks have fewer than {ENOUGH} trials, so "
            f"{blocks} there; the gate is sharp from {sharp} runs on {setting.branch} on"
        )
    runs = max((len(task.known.counts) for task in known if task.known is not None), default=_ENOUGH_RUNS)
    if runs < _ENOUGH_RUNS:
        yield (
            f"the rates are known from {runs} runs at the most: where tasks differ much, or whole runs do, the gate is "
            "red several times as often as this forecast says"
        )
    most = gate.most_confirming(sum(task.failed.k for task in setting.tasks))
    if confirming > most:
        yield f"a run stops after {most} confirming trials (`regression.max_confirming`): it has fewer than forecast"
