"""What a verdict costs: trials, money and time."""

from collections.abc import Sequence
from statistics import fmean

from passgate.tasks.forecasts.first_trials import expected_trials
from passgate.tasks.forecasts.task_assumptions import Prospect, Setting
from passgate.tasks.forecasts.task_forecast import Outlook
from passgate.tasks.forecasts.trials_of import trials_of
from passgate.tasks.gates.early_stopping import needless
from passgate.tasks.model.baseline import pooled
from passgate.tasks.model.forecast import Effort
from passgate.tasks.model.run import Plan
from passgate.tasks.model.task import EvalTask, Metric
from passgate.tasks.model.trial import TrialStatus


def effort(setting: Setting, outlooks: Sequence[Outlook]) -> Effort:
    """The trials of an unchanged agent, and what they cost by the means of the baseline; a task whose cost or time is
    not known there has the mean of the others.
    """
    plan = setting.plan
    tasks = {task.name: task for task in plan.tasks}
    first = [_first(plan, tasks[prospect.name], prospect) for prospect in setting.prospects]
    planned = sum(prospect.failed.k for prospect in setting.prospects)
    trials = [one + outlook.confirming for one, outlook in zip(first, outlooks, strict=True)]
    before = [prospect.known for prospect in setting.prospects]
    seconds = _in_all(trials, [pooled(one.wall_times) if one else () for one in before])
    at_once = plan.request.jobs or plan.policy.concurrency.trials
    return Effort(
        planned=planned,
        confirming=sum(outlook.confirming for outlook in outlooks),
        saved=max(planned - sum(first), 0.0),
        cost=_in_all(trials, [pooled(one.costs) if one else () for one in before]),
        seconds=None if seconds is None else seconds / at_once,
    )


def _first(plan: Plan, task: EvalTask, prospect: Prospect) -> float:
    """Expected of the first k trials."""
    by_pass = task.sequential is not None or task.metric is Metric.PASS_AT_K
    status = TrialStatus.PASSED if by_pass else TrialStatus.FAILED
    deciding = trials_of(task, status, None if task.sequential is not None else 1)
    stops = needless(plan, task, deciding) is not None
    return expected_trials(prospect.rule, prospect.trials(plan.gate_policy), stops=stops)


def _in_all(trials: Sequence[float], figures: Sequence[Sequence[float]]) -> float | None:
    """The sum over the tasks of trials times the mean figure of each."""
    means = [fmean(values) if values else None for values in figures]
    known = [mean for mean in means if mean is not None]
    if not known:
        return None
    others = fmean(known)
    return sum(count * (others if mean is None else mean) for count, mean in zip(trials, means, strict=True))
