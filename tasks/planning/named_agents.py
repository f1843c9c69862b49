"""Find agents by their names, in agents.yaml and in AgentV's targets files."""

import difflib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from passgate.tasks.agents import FORMS, parse_agent
from passgate.tasks.errors import InputError, Problem, UsageError
from passgate.tasks.formats.four_suite import shown_path
from passgate.tasks.formats.project_files import AGENTS_FILE, TARGETS_FILE
from passgate.tasks.model.agent import AgentKind, AgentSpec, looks_like_a_form

if TYPE_CHECKING:
    from passgate.tasks.formats.agents_file import TargetsFile


@dataclass(frozen=True)
class NamedAgents:
    """The agents that the project names."""

    agents: Mapping[str, AgentSpec]  # Of agents.yaml
    targets: "tuple[TargetsFile, ...]"  # Of AgentV, not yet parsed; agents.yaml has priority

    @property
    def target_names(self) -> tuple[str, ...]:
        """The names of the targets that `--agent` can select."""
        names = dict.fromkeys(name for file in self.targets for name in file.positions)
        return tuple(name for name in names if name not in self.agents and not looks_like_a_form(name))

    def find(self, name: str) -> AgentSpec | None:
        """Return the agent of a name, or `None` if it is unknown. Raise `InputError` for an invalid target."""
        if name in self.agents:
            return self.agents[name]
        if name not in self.target_names:
            return None
        from passgate.tasks.formats.agents_file import find_target_agent

        answer = find_target_agent(self.targets, name, os.environ)
        if isinstance(answer, AgentSpec):
            return answer
        raise InputError(answer)


def find_agent(text: str, gates: Path, suites: Path) -> AgentSpec:
    """Return the agent of `--agent`: one of agents.yaml, a target of AgentV, a preset, or a form such as `cli:COMMAND`.
    Raise `UsageError` with the known names and forms, `InputError` for invalid files.
    """
    if looks_like_a_form(text):
        return parse_agent(text)
    named = named_agents(gates, suites)
    agent = named.find(text)
    if agent is not None:
        return agent
    from passgate.tasks.agents.presets import presets

    if preset := presets().get(text):
        return preset.spec(text)
    raise UsageError(_unknown(text, (*named.agents, *named.target_names), presets()))


def named_agents(gates: Path, suites: Path, working_folder: Path | None = None) -> NamedAgents:
    """Read agents.yaml beside the gates file, and AgentV's targets files around the suites folder and in the working
    folder (by default that of the process). Raise `InputError` with the problems of all files.
    """
    # Imported here: an agent that `--agent` describes itself needs no file.
    from passgate.tasks.formats.agents_file import TargetsFile, read_targets

    here = working_folder or Path.cwd()
    agents = _agents(gates.parent / AGENTS_FILE, here)
    answers = [read_targets(file, shown_path(file, here)) for file in targets_files(suites, here)]
    problems = [problem for answer in (agents, *answers) if isinstance(answer, list) for problem in answer]
    if problems or isinstance(agents, list):
        raise InputError(problems)
    return NamedAgents(agents, tuple(answer for answer in answers if isinstance(answer, TargetsFile)))


def load_agents(file: Path) -> dict[str, AgentSpec]:
    """Read one agents.yaml. Raise `InputError` with all its problems."""
    answer = _agents(file, Path.cwd())
    if isinstance(answer, list):
        raise InputError(answer)
    return answer


def _agents(file: Path, working_folder: Path) -> dict[str, AgentSpec] | list[Problem]:
    from passgate.tasks.formats.agents_file import read_agents

    return read_agents(file, shown_path(file, working_folder), parse_agent) if file.exists() else {}


def targets_files(suites: Path, working_folder: Path) -> tuple[Path, ...]:
    """Return the existing targets files, the nearest to the suites folder first, that of the working folder last."""
    above = [suites.resolve(), *suites.resolve().parents]
    # Up to the folder of the repository, or only the parent outside of a repository.
    root = next((position for position, path in enumerate(above) if (path / ".git").exists()), 1)
    folders = dict.fromkeys((*above[: root + 1], working_folder))
    return tuple(file for folder in folders if (file := folder / TARGETS_FILE).is_file())


def _unknown(text: str, names: tuple[str, ...], presets: Iterable[str]) -> str:
    close = difflib.get_close_matches(text, [*names, *presets, AgentKind.ORACLE, AgentKind.NOP], n=1)
    hint = f"; did you mean {str(close[0])!r}?" if close else "."
    if not names:
        file = AGENTS_FILE
        return f"unknown agent {text!r}{hint} Known: {FORMS}; {file} beside the gates file gives agents names"
    nearest_first = ", ".join(difflib.get_close_matches(text, names, n=len(names), cutoff=0.0))
    return f"unknown agent {text!r}{hint} Known: the agents {nearest_first}, and {FORMS}"
