"""Early stop: which trials of a task need not be run, because they cannot change the gate's decision any more."""

from collections.abc import Sequence
from typing import Final

from passgate.tasks.gates.guards import quarantined
from passgate.tasks.model.graders import grader_vetoes
from passgate.tasks.model.measurement import TaskState
from passgate.tasks.model.policy import GatePolicy, Rule
from passgate.tasks.model.run import RunContext
from passgate.tasks.model.task import BY_TRIALS, EvalTask, Metric, Suite
from passgate.tasks.model.trial import Trial
from passgate.tasks.stats.measurement import decide_by

LEFT_OUT: Final = "not run: the verdict is already decided without this trial"


def needless(plan: RunContext, task: EvalTask, trials: Sequence[Trial]) -> str | None:
    """Return why the remaining trials of a task need not be run, by those that were measured; `None` while they matter.

    With the gate's `curtailment` a trial is left out only where `rule_on` comes to the same decision whatever the trial
    would have come to, an error included, and whatever the baseline says and the trials of the other tasks come to.
    Let a task be decided: by `decide` its state is the same for all that its missing trials may be. Then:

    1. A blocking veto was found in it. The violation is measured, with or without the other trials, and nothing
       withholds it: the gate is FAIL.
    2. The task has failed, and its failure blocks (`_blocks`): the task is FAILED with or without the other trials, its
       reason is of a rule that blocks, and it is not in quarantine: the gate is FAIL. Not so where the baseline has a
       say, because confirming trials may clear the task (`evidence`) or it may not be admitted yet: then the gate may
       still pass, and a veto in a trial that is left out would be missed.
    3. The task has passed and nothing that a later trial may bring can block (`_stays`). It is PASSED with or without
       them, so it is no failed task and no missing evidence. Not so with `reruns: together`, where earlier runs may
       have failed it. Its graders can give no veto that blocks. No limit
       compares its latency or cost. Which models answer chooses the rows of its baseline, which admission and the
       evidence against other tasks may count: there it is not stopped. A threshold sees the mean over the suite's tasks
       of values that are 1 or 0 as the tasks are decided, for pass@k and pass^k of k trials are that, and so is the
       value of a stopped task. Had a left-out trial ended in an error the task would have no value, and the threshold
       would see the share of tasks that have not failed: the same number, as there is a mean of all values only when
       all tasks are decided. Where tasks of the suite go by their scores it is not the same, so there a threshold keeps
       all trials.

    A task that is not decided is never stopped, nor is one that goes by its scores. Nor does the first blocking reason
    stop the gate: the other tasks continue, for the people who repair them.

    What is kept is the decision under the plan's own policy. The figures are those of the trials that were run, and
    another policy may want trials that are not there. With a cost cap, more money is left for the other trials.
    """
    policy = plan.gate_policy
    if not policy.curtailment or task.metric not in BY_TRIALS:
        return None
    state = decide_by(task, trials)
    if state is TaskState.UNDECIDED:
        return None
    vetoed = any(Rule(violation.rule) in policy.blocks_on for trial in trials for violation in trial.violations)
    certain = vetoed or (_blocks(plan, task) if state is TaskState.FAILED else _stays(plan, task))
    return LEFT_OUT if certain else None


def _blocks(plan: RunContext, task: EvalTask) -> bool:
    """Return whether a failure of the task blocks for certain."""
    policy, today = plan.gate_policy, plan.created_at.date()
    # Which of the two it is depends on the baseline, which is known only when the models are that have answered.
    rules = {Rule.TASK_FAILED, Rule.GOLDEN_REGRESSION} if task.suite is Suite.GOLDEN else {Rule.TASK_FAILED}
    in_quarantine = task.name in quarantined(plan.quarantine, today)
    return rules <= {*policy.blocks_on} and not in_quarantine and not _asks_the_baseline(policy, task)


def _stays(plan: RunContext, task: EvalTask) -> bool:
    """Return whether a task that has passed cannot block any more."""
    policy = plan.gate_policy
    compared = bool(policy.limits.rules) and not plan.agent.is_reference
    # Where earlier runs of the commit count too, they may ask for more passes than one.
    is_open = task.metric is not Metric.PASS_AT_K or policy.reruns == "together"
    may_veto = any(Rule(rule) in policy.blocks_on for rule in grader_vetoes(task.graders))
    if is_open or compared or may_veto or _asks_the_baseline(policy, task):
        return False
    has_threshold = Rule.THRESHOLD in policy.blocks_on and task.suite in policy.thresholds
    by_scores = any(other.suite is task.suite and other.metric not in BY_TRIALS for other in plan.tasks)
    return not (has_threshold and by_scores)


def _asks_the_baseline(policy: GatePolicy, task: EvalTask) -> bool:
    """Return whether the baseline says if a failure of the task blocks, or has the task's part in what it says of
    others.
    """
    weighed = policy.regression.mode == "evidence" and task.suite in policy.regression.suites
    return policy.admission is not False or weighed
