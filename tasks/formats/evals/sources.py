"""Where the parts of a test are read from, and where complaints go."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from passgate.tasks.formats.evals.documents import Documents, Ground, find_folder, find_path
from passgate.tasks.formats.evals.node import Complaints, Node
from passgate.tasks.formats.evals.words import Parts
from passgate.tasks.formats.findings import left_out, read_text
from passgate.tasks.formats.schema_check import wrong_type

Value = TypeVar("Value")


@dataclass(frozen=True)
class Sources:
    """Where the parts of a test are read from, and where complaints about it go."""

    documents: Documents  # reads the files that belong to its eval file
    complaints: Complaints
    texts: dict[Path, str | ValueError] = field(default_factory=dict)  # of files that were read before
    templates: tuple[Path, ...] = ()  # the templates of assertions that are being read, the outermost first
    # Whether the plain texts in a list of graders go to one judge; else they are the items of a rubric.
    one_judge: bool = False

    @property
    def ground(self) -> Ground:
        """The folders that paths are about."""
        return self.documents.ground

    def refuse(self, node: Node, message: str, *, at_key: bool = False) -> None:
        """Add a problem: something is wrong with the file."""
        self.complaints.problems.append(node.problem(message, at_key=at_key))

    def refuses_type(self, node: Node, *types: type, context: str = "") -> bool:
        """Return whether a value is of none of the types, and add a problem if so."""
        message = wrong_type(node.value, *types)
        if message is not None:
            self.refuse(node, f"{context}{message}")
        return message is not None

    def cannot_run(self, node: Node, message: str, *, at_key: bool = False) -> None:
        """Note that the test cannot run: it asks for something that is missing."""
        self.complaints.cannot_run.append(node.problem(message, at_key=at_key))

    def cannot_have(self, asked: Parts | Node, messages: Mapping[str, str]) -> None:
        """Do the same for each of several keys that the file has."""
        for key, message in messages.items():
            if (part := asked.get(key)) is not None:
                self.cannot_run(part, message, at_key=True)

    def warn(self, node: Node, message: str, *, at_key: bool = False) -> None:
        self.complaints.warnings.append(node.problem(message, at_key=at_key))

    def path(self, node: Node, name: str) -> Path | None:
        """Where a path leads; complains and gives `None` when it leads nowhere."""
        return self._whole(node, name, find_path(node, name, self.ground, self.complaints))

    def folder(self, node: Node, name: str) -> str:
        """Return a working folder as tasks hold it. A path that leads nowhere stays as the file writes it."""
        path = self._whole(node, name, find_folder(node, name, self.ground, self.complaints))
        return name if path is None else self.ground.relative(path)

    def _whole(self, node: Node, name: str, path: Path | None) -> Path | None:
        """Return the same path; notes that the test cannot run where the checkout lacks contents of it."""
        if path is not None and (missing := left_out(path)):
            self.cannot_run(node, f"{name!r} {missing}")
        return path

    def text(self, node: Node, name: str, called: str = "") -> tuple[str, str | None]:
        """Return a path as tasks hold it, and what the file holds; without text where it cannot be read. `called` is
        how complaints name the file, where it is not by the path.
        """
        path = self.path(node, name)
        if path is None:
            return name, None
        if path not in self.texts:
            try:
                self.texts[path] = read_text(path)
            except ValueError as error:
                self.texts[path] = error  # every test that names the file reports it
        content = self.texts[path]
        if isinstance(content, ValueError):
            self.cannot_run(node, f"{called or name!r} {content}")
            return self.ground.relative(path), None
        return self.ground.relative(path), content


def present(values: Iterable[Value | None]) -> tuple[Value, ...]:
    """Return the values that are not `None`."""
    return tuple(value for value in values if value is not None)
