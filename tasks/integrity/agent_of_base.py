"""Agent of base: the files of a merge base in, the agent that is run and how the change's differs out."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from passgate.tasks.errors import InputError
from passgate.tasks.formats.agents_file import looks_like_a_form
from passgate.tasks.formats.targets_file import TargetsFile
from passgate.tasks.integrity.base_checkout import first_problem
from passgate.tasks.model.agent import AgentKind, AgentSpec
from passgate.tasks.model.agent_change import AgentChange, agent_change
from passgate.tasks.model.run import Edit, Plan
from passgate.tasks.planning.named_agents import NamedAgents, named_agents
from passgate.tasks.planning.plan import PlanFiles


@dataclass(frozen=True)
class JudgedAgent:
    """The agent that is run."""

    spec: AgentSpec
    change: AgentChange | None = None
    """How the change's definition of it differs from that of the merge base."""
    note: str = ""
    """Why the merge base has none."""


def judged_agent(own: Plan, edits: Sequence[Edit], files: PlanFiles, folder: Path, root: Path) -> JudgedAgent:
    """The agent of a change, or the merge base's where the change edits what judges of it.

    `own` is the plan of the change's own files, `folder` has the restored files of the repository `root`.
    """
    before = _agent_at(own, files, folder, root)
    if isinstance(before, str):
        return JudgedAgent(own.agent, note=f"the merge base does not define the agent {own.request.agent!r}: {before}")
    recorded = _with_recordings_of_base(before, edits, folder, root)
    change = agent_change(own.request.agent, recorded, own.agent)
    return JudgedAgent(recorded if change is not None and change.by_base else own.agent, change)


def _agent_at(own: Plan, files: PlanFiles, folder: Path, root: Path) -> AgentSpec | str:
    """The agent as restored files define it, or why they do not."""
    if looks_like_a_form(own.request.agent):
        return own.agent  # it stands on the command line
    try:
        named = _in_place(named_agents(files.gates, files.suites, files.working_folder), folder, root)
        return named.find(own.request.agent) or "this change brings it"
    except InputError as error:
        return first_problem(error, files)


def _in_place(named: NamedAgents, folder: Path, root: Path) -> NamedAgents:
    """The agents with their paths in the repository instead of the folder that its files are restored in."""

    def moved(file: TargetsFile) -> TargetsFile:
        return replace(file, folder=root / file.folder.resolve().relative_to(folder.resolve()))

    return replace(named, targets=tuple(map(moved, named.targets)))


def _with_recordings_of_base(agent: AgentSpec, edits: Sequence[Edit], folder: Path, root: Path) -> AgentSpec:
    """The agent that repeats the restored recordings, where these are edited; its name stays."""
    recordings = recordings_of(agent, root)
    if recordings is None or not (folder / recordings).is_dir():
        return agent
    if not any(f"{edit.path}/".startswith(f"{recordings}/") for edit in edits):
        return agent
    return agent.model_copy(update={"target": str(folder / recordings), "name": str(agent)})


def recordings_of(agent: AgentSpec, root: Path) -> str | None:
    """Where in a repository the recordings of an agent lie that only repeats them; `None` for any other agent."""
    if agent.kind is not AgentKind.REPLAY or not agent.target:
        return None
    folder = Path(agent.target).resolve()
    return folder.relative_to(root).as_posix() if folder.is_relative_to(root) else None
