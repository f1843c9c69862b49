"""Tasks whose failures are reported without blocking: not admitted yet, or in quarantine. Vetoes are never withheld."""

from datetime import date
from typing import NamedTuple

from passgate.tasks.gates.admission import not_admitted
from passgate.tasks.gates.quarantine import quarantined, withheld_by_quarantine
from passgate.tasks.model.baseline import Baseline
from passgate.tasks.model.measurement import Measurement
from passgate.tasks.model.policy import GatePolicy
from passgate.tasks.model.quarantine import QuarantineFile
from passgate.tasks.model.verdict import Withheld


class Withholding(NamedTuple):
    """The tasks of a run that do not block."""

    not_admitted: tuple[Withheld, ...]
    quarantined: tuple[Withheld, ...]

    @property
    def tasks(self) -> dict[str, Withheld]:
        """All of them by their `suite/task_id`."""
        return {withheld.task: withheld for withheld in (*self.not_admitted, *self.quarantined)}


def withholding(
    policy: GatePolicy, quarantine: QuarantineFile, measurement: Measurement, baseline: Baseline, today: date
) -> Withholding:
    """Which tasks do not block, and why."""
    entries = quarantined(quarantine, today)
    new = (not_admitted(policy, task, baseline) for task in measurement.tasks)
    return Withholding(
        not_admitted=tuple(withheld for withheld in new if withheld is not None),
        quarantined=tuple(
            withheld_by_quarantine(entries[task.name]) for task in measurement.tasks if task.name in entries
        ),
    )
