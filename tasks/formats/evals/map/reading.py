"""What the reading of graders has around it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from passgate.tasks.formats.evals.read.node import Complaints, Node
from passgate.tasks.formats.evals.read.paths import Ground
from passgate.tasks.model.graders import Grader

ReadFile = Callable[[Path], Node | None]
"""Reads a YAML file and fills in its variables; `None` where that cannot be, which it has complained of."""


@dataclass(frozen=True)
class Reading:
    """The folders that paths are about, where complaints go, and the templates that are being read."""

    ground: Ground
    complaints: Complaints
    read_file: ReadFile
    read_list: Callable[[Node, "Reading"], tuple[Grader, ...]]
    """Reads a list of graders, for those that are made of others."""
    of_texts: Callable[[Sequence[Node], "Reading"], Grader | None]
    """The grader that the plain texts of a list are."""
    templates: tuple[Path, ...] = ()
    """The outermost first."""

    def refuse(self, node: Node, message: str, *, at_key: bool = False) -> None:
        """Note that something is wrong with the file."""
        self.complaints.problems.append(node.problem(message, at_key=at_key))

    def cannot_run(self, node: Node, message: str) -> None:
        """Note that something is asked for that is not to be had."""
        self.complaints.cannot_run.append(node.problem(message))
