"""A run: what was asked for and what is going to be done."""

from datetime import datetime
from enum import StrEnum

from passgate.tasks.model.base import Frozen
from passgate.tasks.model.policy import GatePolicy, Policy
from passgate.tasks.model.task import EvalTask, GateName


class RunRequest(Frozen):
    """What the user asks of a gate."""

    agent: str = "oracle"
    suites: str = "suites"
    gates: str = "gates.yaml"
    history: str | None = None
    """Folder or URL of the history; the policy's when not given."""
    k: int | None = None
    """Trials of every task, whatever the tasks say."""
    task: str | None = None
    """Only tasks whose `suite/task_id` matches this pattern."""
    jobs: int | None = None
    """Trials at once; the policy's when not given."""
    run: str | None = None
    """A run that was planned or begun before, to be carried on."""


class AgentKind(StrEnum):
    ORACLE = "oracle"
    NOP = "nop"
    CLI = "cli"
    PYTHON = "python"


class AgentSpec(Frozen):
    """The system under test: `oracle`, `oracle:NAME`, `nop`, `cli:COMMAND` or `python:MODULE:FUNCTION`."""

    kind: AgentKind
    target: str = ""

    @property
    def is_reference(self) -> bool:
        """Whether it proves graders rather than being measured: its time and cost say nothing."""
        return self.kind in {AgentKind.ORACLE, AgentKind.NOP}

    def __str__(self) -> str:
        return f"{self.kind}:{self.target}" if self.target else str(self.kind)


class Revision(Frozen):
    """Which state of the repository was run; empty outside a repository."""

    commit: str = ""
    branch: str = ""
    dirty: bool = False


class Plan(Frozen):
    """Everything that a run needs, resolved: written before the first trial and read again by `--resume`."""

    run_id: str
    gate: GateName
    request: RunRequest
    agent: AgentSpec
    created_at: datetime
    suites_folder: str
    """Absolute."""
    policy: Policy
    tasks: tuple[EvalTask, ...]
    unselected: int = 0
    """Tasks of the gate that `--task` left out."""
    revision: Revision = Revision()
    passgate_version: str

    @property
    def gate_policy(self) -> GatePolicy:
        return self.policy.gates[self.gate]


class Batch(Frozen):
    """Tasks of one suite that one Prefect task run takes on."""

    name: str
    suite: str
    tasks: tuple[EvalTask, ...]
