"""What the parts of a test are read from."""

from dataclasses import dataclass, field
from pathlib import Path

from passgate.tasks.formats.evals.map.reading import ReadFile
from passgate.tasks.formats.evals.read.node import Complaints, Node
from passgate.tasks.formats.evals.read.paths import Ground, find_folder, find_path
from passgate.tasks.formats.findings import read_text


@dataclass(frozen=True)
class Sources:
    """The folders that paths are about, the files that were read before, and where complaints go."""

    ground: Ground
    complaints: Complaints
    read_file: ReadFile
    texts: dict[Path, str | ValueError] = field(default_factory=dict)

    def refuse(self, node: Node, message: str, *, at_key: bool = False) -> None:
        """Note that something is wrong with the file."""
        self.complaints.problems.append(node.problem(message, at_key=at_key))

    def cannot_run(self, node: Node, message: str, *, at_key: bool = False) -> None:
        """Note that something is asked for that is not to be had."""
        self.complaints.cannot_run.append(node.problem(message, at_key=at_key))

    def warn(self, node: Node, message: str, *, at_key: bool = False) -> None:
        self.complaints.warnings.append(node.problem(message, at_key=at_key))

    def add(self, complaints: Complaints) -> None:
        """Take over what was noted elsewhere."""
        add_complaints(self.complaints, complaints)

    def found(self, node: Node, name: str) -> str:
        """A path as tasks hold it; as the file says it where it leads nowhere, and then that is a complaint."""
        path = find_path(node, name, self.ground, self.complaints)
        return name if path is None else self.ground.relative(path)

    def folder(self, node: Node, name: str) -> str:
        """The same for a folder that something is worked in."""
        path = find_folder(node, name, self.ground, self.complaints)
        return name if path is None else self.ground.relative(path)

    def text(self, node: Node, name: str) -> tuple[str, str | None]:
        """A path as tasks hold it, and what the file holds; without text where it cannot be read."""
        path = find_path(node, name, self.ground, self.complaints)
        if path is None:
            return name, None
        answer = self._content(path)
        if isinstance(answer, str):
            return self.ground.relative(path), answer
        self.cannot_run(node, f"{name!r} {answer}")
        return self.ground.relative(path), None

    def _content(self, path: Path) -> str | ValueError:
        if path not in self.texts:
            try:
                self.texts[path] = read_text(path)
            except ValueError as error:
                self.texts[path] = error
        return self.texts[path]


def add_complaints(complaints: Complaints, others: Complaints) -> None:
    """Put further complaints behind those that there are."""
    complaints.problems.extend(others.problems)
    complaints.warnings.extend(others.warnings)
    complaints.cannot_run.extend(others.cannot_run)
