"""Which tasks may block a gate: guarded by their baseline, young, not admitted yet, in quarantine; and which trials
cannot change that any more. Vetoes are never exempt.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import date, timedelta
from typing import Final, NamedTuple

from passgate.tasks.model.baseline import Baseline, BaselineState, BaselineTask, Young
from passgate.tasks.model.graders import grader_vetoes
from passgate.tasks.model.measurement import Measurement, TaskMeasurement, TaskState
from passgate.tasks.model.policy import Admission, GatePolicy, QuarantineEntry, QuarantineFile, Rule
from passgate.tasks.model.run import RunContext
from passgate.tasks.model.task import BY_TRIALS, EvalTask, Metric, Suite
from passgate.tasks.model.trial import Trial
from passgate.tasks.model.verdict import Exemption
from passgate.tasks.stats.expected_rates import Counts, Drift, drift_between_runs, newest_if_worse, other_tasks
from passgate.tasks.stats.measurement import decide_by
from passgate.tasks.stats.regression import ENOUGH, Before

LEFT_OUT: Final = "not run: the verdict is already decided without this trial"
_LONGEST_TEXT: Final = 300


def is_weighed(policy: GatePolicy, task: TaskMeasurement | EvalTask) -> bool:
    """Return whether a failure of the task is held against its baseline by evidence rather than strictly."""
    return policy.regression.mode == "evidence" and task.suite in policy.regression.suites and task.metric in BY_TRIALS


def blocks_on_falls(policy: GatePolicy, task: TaskMeasurement) -> bool:
    """Return whether the gate blocks on a task of this suite that has fallen."""
    return (Rule.GOLDEN_REGRESSION if task.suite is Suite.GOLDEN else Rule.TASK_FAILED) in policy.blocks_on


def is_guarded(policy: GatePolicy, task: TaskMeasurement, baseline: Baseline) -> bool:
    """Return whether the task blocks when it falls below its own rate, admitted or not. A young baseline that is
    reported guards too: only what is shown to have fallen blocks then.
    """
    counts = guarding_counts(baseline.of(task.name), baseline.young)
    return is_weighed(policy, task) and counts is not None and (counts.n >= ENOUGH or baseline.young == "report")


def is_young(policy: GatePolicy, task: TaskMeasurement, baseline: Baseline) -> bool:
    """Return whether the policy only reports a failure of the task that is not shown to be a fall, because its baseline
    has too few trials. Another model on a known task is a change of the agent, and no young baseline.
    """
    before = baseline.of(task.name)
    is_new = before.n < ENOUGH and (before.n > 0 or not before.newest)
    return baseline.young == "report" and is_weighed(policy, task) and is_new


def guarding_counts(before: BaselineTask, young: Young) -> Counts | None:
    """Return the trials of the baseline that a task is held against; `None` where it cannot fall, or too little is
    known. From `ENOUGH` trials on they are known well enough, whatever the rate is. With fewer the task must have been
    green where it has to clear itself. Of a task whose newest runs are worse than the others only these count: no
    change is to blame for what it was.
    """
    if before.state in {BaselineState.NEW, BaselineState.NONE}:
        return None
    newest = newest_if_worse([Counts(passed, n) for passed, n in before.counts.values()])
    counts = newest or Counts(before.passed, before.n)
    is_known = counts.n >= ENOUGH or (not newest and (young == "report" or before.state is BaselineState.GREEN))
    return counts if counts.passed and is_known else None


def held_against(policy: GatePolicy, tasks: Iterable[TaskMeasurement], baseline: Baseline) -> dict[str, Before]:
    """Return what each task of a run that its baseline guards is held against, by its `suite/task_id`."""
    guarded = [
        (task, counts)
        for task in tasks
        if is_weighed(policy, task) and (counts := guarding_counts(baseline.of(task.name), baseline.young)) is not None
    ]
    by_suite: dict[Suite, list[Counts]] = {}
    for task, counts in guarded:
        by_suite.setdefault(task.suite, []).append(counts)
    others = {suite: other_tasks(counts) for suite, counts in by_suite.items()}
    drift, must_clear = run_drift(baseline.of(task.name) for task, _ in guarded), baseline.young == "block"
    return {
        task.name: Before(*others[task.suite].pool(counts), drift.deviation, must_clear) for task, counts in guarded
    }


def drift_in_force(policy: GatePolicy, tasks: Iterable[TaskMeasurement], baseline: Baseline) -> Drift:
    """Return by how much the whole runs of the baseline differ that the tasks are held against."""
    entries = [baseline.of(task.name) for task in tasks if is_weighed(policy, task)]
    return run_drift(entry for entry in entries if guarding_counts(entry, baseline.young) is not None)


def run_drift(entries: Iterable[BaselineTask]) -> Drift:
    """Return by how much the pass rates of whole runs of a baseline differ."""
    return drift_between_runs({run: Counts(*pair) for run, pair in entry.counts.items()} for entry in entries)


class Exemptions(NamedTuple):
    """The tasks of a run that do not block."""

    not_admitted: tuple[Exemption, ...]
    quarantined: tuple[Exemption, ...]
    guarded: frozenset[str] = frozenset()
    """Of those that are not admitted, by their `suite/task_id`, the ones that block when they fall below their rate."""

    @property
    def tasks(self) -> dict[str, Exemption]:
        """Return all of them by their `suite/task_id`."""
        return {exempt.task: exempt for exempt in (*self.not_admitted, *self.quarantined)}

    @property
    def settled(self) -> frozenset[str]:
        """Return those that block by nothing but a veto."""
        quarantined = {exempt.task for exempt in self.quarantined}
        return frozenset(name for name in self.tasks if name in quarantined or name not in self.guarded)


def exemptions(
    policy: GatePolicy, quarantine: QuarantineFile, measurement: Measurement, baseline: Baseline, today: date
) -> Exemptions:
    """Return which tasks do not block, and why."""
    entries = quarantined(quarantine, today)
    new = tuple(exempt for task in measurement.tasks if (exempt := not_admitted(policy, task, baseline)) is not None)
    guarded = (one.name for one in measurement.tasks if is_guarded(policy, one, baseline))
    return Exemptions(
        not_admitted=new,
        guarded=frozenset(guarded) & {exempt.task for exempt in new},
        quarantined=tuple(exempt_by_quarantine(entries[one.name]) for one in measurement.tasks if one.name in entries),
    )


def not_admitted(policy: GatePolicy, task: TaskMeasurement, baseline: Baseline) -> Exemption | None:
    """Return what a verdict says of a task that may not block by a failure yet; `None` for one that may.

    A task is admitted when enough of its newest measured trials at the baseline passed. Without a policy for it, and
    while admission is not in force, every task is. One that is not may still be guarded: it blocks when it falls.
    """
    if policy.admission is False or not admission_in_force(policy.admission, baseline, task.suite):
        return None
    wanted, before = policy.admission, baseline.of(task.name)
    newest = before.newest[: wanted.of]
    if _has_shown_itself(wanted, newest):
        return None
    shown = f"{sum(newest)} of {len(newest)} trials passed" if newest else "no trial was measured"
    why = f"not admitted yet: {shown} on {baseline.branch}, {wanted.passes} of {wanted.of} are required"
    if is_guarded(policy, task, baseline):
        why += "; it blocks if it falls below its own rate" + (" before its edit" if before.before_edit else "")
    elif before.restart is not None:
        why += f"; {before.restart}"
    return Exemption(task=task.name, why=why)


def admission_in_force(wanted: Admission, baseline: Baseline, suite: Suite) -> bool:
    """Return whether any task of the suite is admitted: in a history that has just begun none can be."""
    entries = (entry for name, entry in baseline.tasks.items() if name.startswith(f"{suite}/"))
    return any(_has_shown_itself(wanted, entry.newest) for entry in entries)


def _has_shown_itself(wanted: Admission, newest: Sequence[bool]) -> bool:
    counted = newest[: wanted.of]
    return len(counted) == wanted.of and sum(counted) >= wanted.passes


def quarantined(file: QuarantineFile, today: date) -> dict[str, QuarantineEntry]:
    """Return the entries in force by their tasks: up to and with the day on which they expire."""
    return {entry.task: entry for entry in file.tasks if today <= entry.expires}


def expired(file: QuarantineFile, today: date) -> tuple[QuarantineEntry, ...]:
    """Return the entries whose tasks block again."""
    return tuple(entry for entry in file.tasks if entry.expires < today)


def exempt_by_quarantine(entry: QuarantineEntry) -> Exemption:
    """Return what a verdict says of a task in quarantine."""
    return Exemption(task=entry.task, why=f"quarantined until {entry.expires} by {_whose(entry)}")


def quarantine_notes(file: QuarantineFile, baseline: Baseline, today: date) -> Iterator[str]:
    """Yield notes on the quarantine itself: entries that have expired, and tasks that need none any more."""
    for entry in expired(file, today):
        since = entry.expires + timedelta(days=1)
        yield (
            f"the quarantine of {entry.task} has expired and the task blocks again since {since}: repair the "
            f"task, or remove its entry from quarantine.yaml ({_whose(entry)})"
        )
    for task, entry in quarantined(file, today).items():
        green = baseline.of(task).green_in_a_row
        if green >= file.release_after:
            yield (
                f"{task} was green in the last {green} runs on {baseline.branch}: remove its entry from "
                f"quarantine.yaml ({_whose(entry)})"
            )


def _whose(entry: QuarantineEntry) -> str:
    # These texts may have several lines and any length; a note is one line.
    texts = [" ".join(text.split()) for text in (entry.owner, entry.reason, entry.issue)]
    owner, reason, issue = (text if len(text) <= _LONGEST_TEXT else f"{text[: _LONGEST_TEXT - 3]}..." for text in texts)
    return f"{owner}: {reason} ({issue})"


def needless(plan: RunContext, task: EvalTask, trials: Sequence[Trial]) -> str | None:
    """Return why the remaining trials of a task need not be run, by those that were measured; `None` while they matter.

    With the gate's `curtailment` a trial is left out only where `rule_on` comes to the same decision whatever the trial
    would have come to, an error included, and whatever the baseline says and the trials of the other tasks come to.
    Let a task be decided: by `decide` its state is the same for all that its missing trials may be. Then:

    1. A blocking veto was found in it: nothing withholds it, so the gate is FAIL.
    2. The task has failed, its reason is of a rule that blocks, and it is not in quarantine (`_blocks`): the gate is
       FAIL. Not so where the baseline has a say, because confirming trials may clear the task (`evidence`) or it may
       not be admitted yet: then a veto in a trial that is left out would be missed.
    3. The task has passed and nothing that a later trial may bring can block (`_stays`). With `reruns: together`
       earlier runs may have failed it. Its graders can give no veto that blocks, and no limit compares its latency or
       cost. Which models answer chooses the rows of its baseline, which admission and the evidence against other tasks
       may count: there it is not stopped. A threshold sees the mean over the suite's tasks of values that are 1 or 0 as
       the tasks are decided, so also of a stopped task. Had a left-out trial ended in an error, the threshold would see
       the share of tasks that have not failed: the same number. Where tasks of the suite go by their scores it is not
       the same, so there a threshold keeps all trials.

    A task that is not decided is never stopped, nor is one that goes by its scores; nor does the first blocking reason
    stop the gate: the other tasks continue, for the people who repair them. What is kept is the decision under the
    plan's own policy; the figures are those of the trials that were run.
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
    """Return whether the baseline says if a failure of the task blocks, or uses the task to judge others."""
    return policy.admission is not False or is_weighed(policy, task)
