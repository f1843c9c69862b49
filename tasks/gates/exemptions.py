"""Tasks whose failures are reported without blocking: not admitted yet, or in quarantine. Vetoes are never exempt."""

from datetime import date
from typing import NamedTuple

from passgate.tasks.gates.admission import not_admitted
from passgate.tasks.gates.quarantine import exempt_by_quarantine, quarantined
from passgate.tasks.model.baseline import Baseline
from passgate.tasks.model.measurement import Measurement
from passgate.tasks.model.policy import GatePolicy
from passgate.tasks.model.quarantine import QuarantineFile
from passgate.tasks.model.verdict import Exemption


class Exemptions(NamedTuple):
    """The tasks of a run that do not block."""

    not_admitted: tuple[Exemption, ...]
    quarantined: tuple[Exemption, ...]

    @property
    def tasks(self) -> dict[str, Exemption]:
        """All of them by their `suite/task_id`."""
        return {exempt.task: exempt for exempt in (*self.not_admitted, *self.quarantined)}


def exemptions(
    policy: GatePolicy, quarantine: QuarantineFile, measurement: Measurement, baseline: Baseline, today: date
) -> Exemptions:
    """Which tasks do not block, and why."""
    entries = quarantined(quarantine, today)
    new = (not_admitted(policy, task, baseline) for task in measurement.tasks)
    return Exemptions(
        not_admitted=tuple(exempt for exempt in new if exempt is not None),
        quarantined=tuple(
            exempt_by_quarantine(entries[task.name]) for task in measurement.tasks if task.name in entries
        ),
    )
