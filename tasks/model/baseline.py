"""What earlier runs say of each task."""

from enum import StrEnum
from fractions import Fraction
from typing import Annotated, Literal

from pydantic import Field

from passgate.tasks.model.base import Frozen, Text
from passgate.tasks.model.trial import Trial

GREEN_SHARE = Fraction(2, 3)  # A task is green that at least so many of its runs passed
RED_SHARE = Fraction(1, 3)  # A task is red that at most so many of its runs passed
RED_IN_A_ROW = 3  # A task is red, whatever it was before, that so many of its newest runs failed one after the other


Young = Literal["report", "block"]
"""What a failed task does while its baseline is young: `report` blocks only what is shown to have fallen."""

FiguresOfRuns = dict[str, tuple[float, ...]]
"""Of each run, by its id and the newest first, a figure of every trial that has one."""


def all_figures(figures: FiguresOfRuns) -> tuple[float, ...]:
    """Return the figures of all runs in one sequence."""
    return tuple(value for of_run in figures.values() for value in of_run)


class BaselineState(StrEnum):
    """How a task stood at the baseline."""

    NEW = "new task"
    """No run of the baseline knows the task at all."""
    NONE = "no baseline"
    """The task is known, but no run decided it with these digests, this k, this agent and this model."""
    GREEN = "green"
    RED = "red before too"
    UNRELIABLE = "unreliable"
    """Between the two: now green, now red."""


class Restart(StrEnum):
    """Why the runs of a task before its edit do not guard it."""

    GRADERS = "its graders, its k or its metric are not those of its earlier runs"
    WORSE = "since its edit it passes less often at the baseline"


class BaselineTask(Frozen):
    """What the newest runs of the baseline say of one task, pooled; only the first k trials of each run count."""

    state: BaselineState
    runs: tuple[str, ...] = ()
    """Runs that decided the task, the newest first."""
    runs_green: int = 0
    """Of `runs`, those that it passed."""
    green_in_a_row: int = 0
    """Of the newest runs, how many in a row it passed."""
    passed: int = 0
    """Trials of all runs that passed."""
    n: int = 0
    """Trials of all runs that were measured."""
    counts: dict[str, tuple[int, int]] = {}
    """Of each run, by its id and the newest first, its trials that passed and those that were measured."""
    newest: tuple[bool, ...] = ()
    """Whether each of the measured trials passed, the newest first; those of other models too, none from before an
    edit."""
    before_edit: int = 0
    """Of the `n` trials those of versions of the task before an edit: they guard it while its own are too few."""
    restart: Restart | None = None
    """`None` also where there are no such runs, or the task's own trials are enough."""
    wall_times: FiguresOfRuns = {}
    """Seconds per trial."""
    costs: FiguresOfRuns = {}
    """US dollars per trial."""


class Repeat(Frozen):
    """An earlier run of the same commit, gate and agent."""

    run_id: str
    failed: tuple[str, ...] = ()
    """Its tasks that failed, by their `suite/task_id`, as far as the history tells."""


class Baseline(Frozen):
    """The pooled history that a run is compared with, per `suite/task_id`."""

    branch: str
    commit: str = ""
    """The merge base; empty where git could not tell, so that the runs are those on the branch by its name."""
    pinned: bool = False
    """Whether a pin has chosen the commit or the runs."""
    young: Young = "report"
    """What a failed task does while its baseline is too young to guard it, as the policy says."""
    renamed: dict[str, str] = {}
    """Of tasks some of whose runs had them under another name, with the same inputs and graders: that name."""
    repeats: tuple[Repeat, ...] = ()
    """Earlier runs of the commit that is judged, the oldest first, whatever the baseline is."""
    repeated_trials: tuple[Trial, ...] = ()
    """The measured trials of `repeats` that count together with those of this run; none unless the policy wants it.
    Each names its run in `reused_from`."""
    tasks: dict[str, BaselineTask] = {}
    """Of every task of the plan."""

    def of(self, name: str) -> BaselineTask:
        """Return the baseline of a task by its `suite/task_id`."""
        return self.tasks.get(name) or BaselineTask(state=BaselineState.NEW)

    @property
    def runs(self) -> tuple[str, ...]:
        """Every run that has a part in it."""
        return tuple(sorted({run for task in self.tasks.values() for run in task.runs}))


class Pins(Frozen):
    """The whole of baseline.yaml: which runs are the baseline, whatever is newer. Give `commit` or `runs`."""

    version: Annotated[int, Field(ge=1, le=1)] = 1
    commit: Text | None = None
    """The runs of this commit and its first-parent ancestors."""
    runs: tuple[Text, ...] = ()
    """These runs: their ids, or what their ids begin with."""
    reason: Text
    by: Text = "unknown"
    """Who has pinned it."""
