"""AgentV's `.agentv/targets.yaml` as a file: its targets by their names.

What is wrong with a target is said when that target is asked for, so that it does not spoil the others.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from passgate.tasks.errors import Problem
from passgate.tasks.formats.document import Document, read_document
from passgate.tasks.formats.schema_check import nearest
from passgate.tasks.formats.target_agent import Target, agent_of, not_set, resolved
from passgate.tasks.model.agent import AgentSpec

TARGETS_FILE = Path(".agentv", "targets.yaml")


@dataclass(frozen=True)
class TargetsFile:
    """The targets of one file, not yet looked into."""

    document: Document
    folder: Path
    """What relative paths of the file start from."""
    positions: Mapping[str, int]
    """Where each target stands in the list."""


def read_targets(file: Path, name: str) -> TargetsFile | list[Problem]:
    """The targets of a file, or why it is no file of targets. `name` is what problems call the file."""
    document = read_document(file, name)
    if document.problems:
        return document.problems
    entries = document.data.get("targets") if isinstance(document.data, dict) else None
    if not isinstance(entries, list):
        return [document.problem((), "expected a mapping with a list `targets`")]
    positions: dict[str, int] = {}
    problems: list[Problem] = []
    for position, entry in enumerate(entries):
        target = entry.get("name") if isinstance(entry, dict) else None
        if not isinstance(target, str) or not target:
            problems.append(document.problem(("targets", position), "expected a mapping with a `name`"))
        elif target in positions:
            problems.append(document.problem(("targets", position, "name"), f"the name {target!r} stands here twice"))
        else:
            positions[target] = position
    return problems or TargetsFile(document, file.absolute().parent, positions)


def agent_of_target(
    files: Sequence[TargetsFile], name: str, environment: Mapping[str, str]
) -> AgentSpec | list[Problem]:
    """The agent that a target is, or why it cannot be one. Of a name in several files the first file's counts.

    `${{ NAME }}` stands for a variable of `environment`. Keys are left where they are: only their variables are named.
    """
    seen: list[str] = []
    known = sorted({target for file in files for target in file.positions})
    while True:
        seen.append(name)
        target = _target(files, name, environment)
        if "use_target" not in target.entry:
            return agent_of(target)
        problem = _alias_problem(target.entry["use_target"], known, seen, environment)
        if problem is not None:
            return [target.problem(problem, "use_target")]
        name = resolved(target.entry["use_target"], environment)


def _target(files: Sequence[TargetsFile], name: str, environment: Mapping[str, str]) -> Target:
    file = next(file for file in files if name in file.positions)
    return Target(file.document, file.positions[name], file.folder, environment)


def _alias_problem(alias: Any, known: Sequence[str], seen: Sequence[str], environment: Mapping[str, str]) -> str | None:
    if not isinstance(alias, str):
        return "expected the name of a target"
    if missing := not_set(alias, environment):
        return missing
    name = resolved(alias, environment)
    if name in seen:
        return f"the targets refer to each other: {', '.join([*seen, name])}"
    return None if name in known else f"no target {name!r}{nearest(name, known)}"
