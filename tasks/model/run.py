"""A run: what was asked for and what is going to be done."""

from datetime import datetime
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import ConfigDict, Field

from passgate.tasks.model.agent import AgentChange, AgentSpec
from passgate.tasks.model.base import Frozen
from passgate.tasks.model.baseline import Pins
from passgate.tasks.model.names import RunnerName
from passgate.tasks.model.policy import GatePolicy, Policy, QuarantineFile
from passgate.tasks.model.price import PriceTable
from passgate.tasks.model.task import EvalTask, GateName, Suite
from passgate.tasks.model.trial import FinishedTrial, Trial

HISTORY_VARIABLE = "PASSGATE_HISTORY_URL"  # The environment variable that names the history where no option does


class RunRequest(Frozen):
    """What the user asks of a gate."""

    # Prefect's form shows them beside the fields.
    model_config = ConfigDict(use_attribute_docstrings=True)

    agent: str = "oracle"
    """A name in agents.yaml or in AgentV's targets, or oracle, nop, cli:COMMAND, python:MODULE:FUNCTION, http:URL,
    openai:MODEL, replay:FOLDER."""
    suites: str = "suites"
    """The suites folder."""
    gates: str = "gates.yaml"
    """The file with the policies of the gates."""
    history: str | None = None
    """Folder or URL of the history; the policy's when not given."""
    k: Annotated[int, Field(ge=1)] | None = None
    """Trials of every task, whatever the tasks say."""
    task: str | None = None
    """Only tasks whose `suite/task_id` matches this pattern."""
    jobs: Annotated[int, Field(ge=1)] | None = None
    """Trials at once; the policy's when not given."""
    base: str | None = None
    """The commit that the change under test is compared with; where it has left the baseline branch when not given."""
    max_cost: Annotated[float, Field(ge=0)] | None = None
    """US dollars that the whole run may cost; no limit when not given."""
    wait_for_sign_off: Annotated[float, Field(gt=0)] | None = None
    """Seconds for which the flow of release_candidate pauses in Prefect for a sign-off; it ends at once when not given.
    """
    run_store: str | None = None
    """URL below which the run is kept; in the working folder when not given."""
    run: str | None = None
    """A run to resume, planned or started before: its id, or its URL."""
    runner: RunnerName | None = None
    """The task runner of Prefect on which batches of trials run; they run in the process of the flow when not given."""
    workers: Annotated[int, Field(ge=1)] | None = None
    """Batches at once on the task runner; as many as the machine has processors when not given."""
    runner_address: str | None = None
    """Of the scheduler of Dask, or of the Ray cluster; a local one is started for the run when not given."""


ALSO_OF_RESUMED: Final = frozenset({"jobs", "max_cost", "runner", "workers", "runner_address"})
"""What may differ when a run is resumed."""


class Revision(Frozen):
    """Which state of the repository was run; empty outside a repository."""

    commit: str = ""
    branch: str = ""
    dirty: bool = False
    folder: str = ""
    """The working folder of the run, relative to the top folder of the repository; empty where it is that."""


class Edit(Frozen):
    """A file by which the gate judges, and which the change under test edits."""

    path: str
    """Relative to the repository."""
    kind: Literal["added", "changed", "deleted"]
    what: Literal["tasks and graders", "policy", "prices", "quarantine", "baseline pins", "agents"]
    grades: bool = False
    """Whether a task is graded otherwise by it, or is gone."""

    @property
    def subject(self) -> str:
        """What it edits, for reports."""
        return "graders" if self.grades and self.what == "tasks and graders" else self.what

    @property
    def decides(self) -> bool:
        """Whether it may change a verdict on tasks that stay as they are."""
        return self.grades or self.what != "tasks and graders"


class Base(Frozen):
    """What the change under test is compared with."""

    commit: str = ""
    """The merge base; empty where git cannot tell."""
    tip: str = ""
    """The tip of the branch that the change goes into, whose files judge; empty where the merge base's do: the change
    has left the branch at its tip, or the tip is unknown."""
    ancestors: tuple[str, ...] = ()
    """The commit and its first-parent ancestors, the newest first; those of the pinned commit where one is pinned: they
    say whose runs are the baseline, while `judging` says whose files judge."""
    edits: tuple[Edit, ...] = ()
    judged_by: Literal["base", "change"] = "change"
    """Whose files judge: those of `judging`, where the change's differ from them and both can be read."""
    is_local: bool = False
    """Whether this is a run outside of CI, which the files of the working folder judge."""
    is_beside: bool = False
    """Whether the plan of the files of `judging` stands beside that of a local run."""
    agent: AgentChange | None = None
    """How the change's definition of the agent differs from that of `judging`, where the files of `judging` judge."""
    prefect_edits: tuple[str, ...] = ()
    """Files of the working folder whose settings of Prefect the change edits."""
    note: str = ""
    """Why the base is unknown or cannot judge."""
    doubt: str = ""
    """Why other files than those that judge may have to, and what to do; empty where it is certain who judges."""

    @property
    def judging(self) -> str:
        """The commit whose files judge a change that edits them; empty where git cannot tell."""
        return self.tip or self.commit

    @property
    def name(self) -> str:
        """What that commit is, for messages."""
        return f"the {'tip of the target branch' if self.tip else 'merge base'} {self.judging[:12]}"

    def add_note(self, note: str) -> "Base":
        """Return the base with one more note, unless it has it already."""
        has_it = not note or note in self.note
        return self if has_it else self.model_copy(update={"note": f"{self.note}; {note}" if self.note else note})


class RunContext(Frozen):
    """What measuring, judging and recording need to know of a run."""

    run_id: str
    gate: GateName
    agent: AgentSpec
    created_at: datetime
    policy: Policy
    prices: PriceTable = PriceTable()
    warnings: tuple[str, ...] = ()
    """What there is to say of the files, each with its place."""
    tasks: tuple[EvalTask, ...]
    unselected: int = 0
    """Tasks of the gate that were left out."""
    revision: Revision = Revision()
    base: Base = Base()
    quarantine: QuarantineFile = QuarantineFile()
    pins: Pins | None = None
    agent_digest: str = ""
    """Of the agent's spec and of its files, where the policy names them."""
    passgate_version: str

    @property
    def gate_policy(self) -> GatePolicy:
        return self.policy.gates[self.gate]

    @property
    def day(self) -> str:
        """The day of the run, in UTC; its files in the history lie in a folder of that name."""
        return f"{self.created_at:%Y-%m-%d}"

    @property
    def history_location(self) -> str:
        """The folder or URL of the history that the run belongs to."""
        return self.policy.history

    @property
    def request_notes(self) -> tuple[str, ...]:
        """What a reader of the verdict should know of how the run was asked for."""
        return ()


class Snapshot(Frozen):
    """The files that the trials of a run need, in an archive that is kept with the run."""

    digest: str
    """SHA-256 of the archive."""
    suites: str
    """Where in it the suites folder is."""
    brought: str = ""
    """Where in it the change's suites folder is, where the run has tasks of it; empty where it has none."""


class Plan(RunContext):
    """Everything that a run needs, resolved: written before the first trial and read again by `--resume`."""

    request: RunRequest
    suites_folder: str
    """Absolute."""
    shipped_policy: bool = False
    """Whether there is no gates file, so that the policy is the one that passgate ships."""
    outside: tuple[str, ...] = ()
    """Where its eval files look for files outside of the suites folder, relative to it."""
    snapshot: Snapshot | None = None
    """Of a run that is kept at a URL."""
    brought: tuple[Suite, ...] = ()
    """Suites whose tasks are those of the change, for the merge base, whose files judge, has none of them."""

    @property
    def history_location(self) -> str:
        return self.request.history or self.policy.history

    @property
    def request_notes(self) -> tuple[str, ...]:
        notes = []
        if self.request.k is not None:
            notes.append(f"--k {self.request.k} replaces the tasks' own k")
        if self.shipped_policy:
            notes.append(f"{self.request.gates} does not exist: this run uses the policy that passgate ships")
        return tuple(notes)

    @property
    def needs_price(self) -> str | None:
        """What makes an unknown price an error in every trial of this run."""
        if self.request.max_cost is not None:
            return "the run has a cost cap (--max-cost)"
        if self.gate_policy.limits.cost_increase_pct is not None:
            return "the gate has a cost limit (cost_increase_pct)"
        return None

    def suites_folder_for(self, suite: Suite) -> Path:
        """Return the suites folder of a suite's tasks."""
        return Path(self.request.suites).absolute() if suite in self.brought else Path(self.suites_folder)


class Batch(Frozen):
    """Trials that one process runs side by side."""

    name: str
    step: Literal["run", "confirm"] = "run"
    trials: tuple[tuple[str, int], ...]
    """Task ids and trial numbers, in the order in which the trials begin."""


class RemoteBatch(Batch):
    """A batch for another process, with all that this process must know, in plain values."""

    location: str
    """The folder or the URL where the run is kept."""
    plan_digest: str
    """SHA-256 of the run's plan. A worker that finds another plan runs nothing."""
    coordinator: str
    """The id of the process that waits for the result. The batch stops if another process coordinates the run."""
    passgate_version: str
    """The coordinator's version. A worker with another version runs nothing."""
    trials_at_once: Annotated[int, Field(ge=1)]
    cost_cap: float | None = None
    """US dollars that the whole run may cost."""
    share: float | None = None
    """US dollars that the batch may spend; no limit when not given."""
    call_cost: float = 0.0
    """US dollars that a call has cost on average so far."""
    earlier: tuple[Trial, ...] = ()
    """The trials of its eval tasks that ended before."""


class BatchResult(Frozen):
    """What another process returns for a batch."""

    trials: tuple[FinishedTrial, ...] = ()
    """In the order in which they ended."""
    seconds: float = 0.0
    """How long its trials took, all together."""
    call_cost: float = 0.0
    """US dollars that a call has cost on average."""
    warnings: tuple[str, ...] = ()
    """Problems that no trial depends on."""
