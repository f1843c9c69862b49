"""A run: what was asked for and what is going to be done."""

from datetime import datetime

from passgate.tasks.model.agent import AgentSpec
from passgate.tasks.model.base import Frozen
from passgate.tasks.model.policy import GatePolicy, Policy
from passgate.tasks.model.price import PriceTable
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
    max_cost: float | None = None
    """US dollars that the whole run may cost; no limit when not given."""
    run: str | None = None
    """A run that was planned or begun before, to be carried on."""


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
    shipped_policy: bool = False
    """Whether there is no gates file, so that the policy is the one that passgate ships."""
    prices: PriceTable = PriceTable()
    warnings: tuple[str, ...] = ()
    """What there is to say of the files, each with its place."""
    tasks: tuple[EvalTask, ...]
    unselected: int = 0
    """Tasks of the gate that `--task` left out."""
    revision: Revision = Revision()
    passgate_version: str

    @property
    def needs_price(self) -> str | None:
        """What makes an unknown price an error in every trial of this run."""
        if self.request.max_cost is not None:
            return "the run has a cost cap (--max-cost)"
        if self.gate_policy.limits.cost_increase_pct is not None:
            return "the gate has a cost limit (cost_increase_pct)"
        return None

    @property
    def gate_policy(self) -> GatePolicy:
        return self.policy.gates[self.gate]


class Batch(Frozen):
    """Tasks of one suite that one Prefect task run takes on."""

    name: str
    suite: str
    tasks: tuple[EvalTask, ...]
