"""What a failure of a task leads to, as the gate itself says it."""

from collections.abc import Mapping
from typing import NamedTuple

from passgate.tasks.forecasts.task_assumptions import Setting
from passgate.tasks.gates.admission import not_admitted
from passgate.tasks.gates.evidence import is_weighed
from passgate.tasks.gates.failures import failed_tasks
from passgate.tasks.gates.quarantine import quarantined
from passgate.tasks.model.baseline import Baseline, BaselineState, BaselineTask
from passgate.tasks.model.measurement import TaskMeasurement
from passgate.tasks.model.policy import GatePolicy, Rule
from passgate.tasks.model.verdict import Confirmation, Finding


class Consequences(NamedTuple):
    """By which rule each of these blocks; `None` where it does not."""

    withheld: bool
    """Not admitted, or in quarantine."""
    weighed: bool
    """Whether the failure is held against the baseline by evidence."""
    failed: Rule | None
    """A failure that is not."""
    fallen: Rule | None
    undecided: Rule | None


def consequences(setting: Setting, task: TaskMeasurement, entry: BaselineTask, *, in_force: bool) -> Consequences:
    """What follows when a task has failed whose baseline is `entry`. `in_force`: other tasks of its suite are
    admitted."""
    gate = setting.plan.gate_policy
    baseline = Baseline(branch=setting.branch, tasks={task.name: entry})
    in_quarantine = task.name in quarantined(setting.plan.quarantine, setting.plan.created_at.date())
    if in_quarantine or (in_force and not is_admitted(gate, task, entry)):
        return Consequences(True, False, None, None, None)
    if is_weighed(gate, task) and entry.state is BaselineState.GREEN:
        fallen, undecided = (
            _blocking(gate, task, baseline, {task.name: _confirmation(task, entry, finding)})
            for finding in (Finding.FALLEN, Finding.UNDECIDED)
        )
        return Consequences(False, True, None, fallen, undecided)
    return Consequences(False, False, _blocking(gate, task, baseline, {}), None, None)


def is_admitted(gate: GatePolicy, task: TaskMeasurement, entry: BaselineTask) -> bool:
    """Whether a task may block, beside others of its suite that may."""
    shown = (True,) * gate.admission.of if gate.admission else ()
    other = BaselineTask(state=BaselineState.GREEN, newest=shown)
    return not_admitted(gate, task, Baseline(branch="", tasks={f"{task.suite}/": other, task.name: entry})) is None


def _blocking(
    gate: GatePolicy, task: TaskMeasurement, baseline: Baseline, confirmed: Mapping[str, Confirmation]
) -> Rule | None:
    for reason in failed_tasks(gate, [task], baseline, confirmed):
        if reason.blocking and reason.rule in gate.blocks_on:
            return reason.rule
    return None


def _confirmation(task: TaskMeasurement, entry: BaselineTask, finding: Finding) -> Confirmation:
    return Confirmation(
        task=task.name,
        finding=finding,
        passed=0,
        n=task.k,
        confirming=0,
        baseline_passed=entry.passed,
        baseline_n=entry.n,
        alpha=0.0,
    )
