"""The files that eval files are made of, read with their environment variables filled in."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from passgate.tasks.errors import Problem
from passgate.tasks.formats.document import DocumentPath, UnreadableError, format_path, read_document, read_source
from passgate.tasks.formats.evals.node import Complaints, Node
from passgate.tasks.formats.evals.paths import Ground, upwards
from passgate.tasks.formats.evals.read.environment import (
    ENV_FILE,
    PLAIN,
    WITH_TEMPLATES,
    EnvFileError,
    interpolate,
    variables_for,
)
from passgate.tasks.formats.evals.read.json_text import JsonError, JsonPlaces, parse_json

MAX_LINES_BYTES = 64 * 1024 * 1024
"""Of a file with one value a line (JSONL, CSV)."""
TEMPLATE_KEYS = ("prompts", "providers", "default_test", "scenarios", "evaluate_options", "env")
"""Keys of files whose texts are templates: there `{{ env.NAME }}` is an environment variable."""


@dataclass(frozen=True)
class LinePlaces:
    """The places of a file that is known by its lines only: everything stands at the beginning of one."""

    file: str
    line: int = 1

    def problem(self, path: DocumentPath, message: str, *, at_key: bool = False) -> Problem:
        """A problem in this line."""
        return Problem(file=self.file, line=self.line, column=1, path=format_path(path), message=message)


@dataclass(frozen=True)
class Documents:
    """Reads files for one eval file; every problem with them goes to the complaints, once."""

    ground: Ground
    complaints: Complaints
    process: Mapping[str, str]
    """The environment of the process."""
    shown: Callable[[Path], str]
    """A file's name as users know it."""
    placeholder: re.Pattern[str] = PLAIN
    own: Mapping[str, str] = field(default_factory=dict)
    """What the eval file sets itself, before all else."""
    environments: dict[Path, dict[str, str]] = field(default_factory=dict)
    known: dict[tuple[object, ...], Node | None] = field(default_factory=dict)
    opened: list[Path] = field(default_factory=list)
    """Every file that tests were taken from, as often as that was."""

    def read(self, file: Path) -> Node | None:
        """The whole document of a YAML or JSON file; `None` when it cannot be read."""
        key = (file, self.placeholder.pattern, *sorted(self.own.items()))
        if key not in self.known:
            self.known[key] = self._read(file)
        return self.known[key]

    def read_root(self, file: Path) -> Node | None:
        """The document of an eval file; `None` when it cannot be read."""
        key = (file,)
        if key not in self.known:
            content = self._content(file)
            self.known[key] = self.for_files_of(content).interpolated(content) if content else None
        return self.known[key]

    def for_files_of(self, root: Node) -> "Documents":
        """What reads the files that belong to an eval file."""
        if not has_templates(root):
            return self
        return replace(self, placeholder=WITH_TEMPLATES, own=_own_environment(root), environments={})

    def plain(self) -> "Documents":
        """What reads another eval file."""
        return replace(self, placeholder=PLAIN, own={}, environments={})

    def text(self, file: Path, max_bytes: int = MAX_LINES_BYTES) -> str | None:
        """The text of a file; `None` when it cannot be read."""
        self.ground.looked_at.add(file)
        try:
            return read_source(file, max_bytes).removeprefix("\ufeff")
        except UnreadableError as error:
            self.refuse(
                Problem(
                    file=self.shown(file), line=error.place.line, column=error.place.column, path="", message=str(error)
                )
            )
        return None

    def interpolated(self, node: Node) -> Node:
        """A value with its environment variables filled in; a warning for each that is missing."""
        value, missing = interpolate(node.value, self.variables(node.folder), self.placeholder)
        for path, name in missing:
            message = f"the environment variable {name!r} is not set, so it is empty here"
            self.complaints.warnings.append(node.places.problem((*node.path, *path), message))
        return node.with_value(value)

    def variables(self, folder: Path) -> dict[str, str]:
        """The environment variables for files of a folder."""
        if folder not in self.environments:
            self.ground.looked_at.update(parent / ENV_FILE for parent in upwards(folder, self.ground.repository))
            try:
                known = variables_for(folder, self.ground.repository, self.process)
                self.environments[folder] = {**known, **self.own}
            except EnvFileError as error:
                self.environments[folder] = {**self.process, **self.own}
                self.refuse(LinePlaces(self.shown(error.file)).problem((), str(error)))
        return self.environments[folder]

    def refuse(self, problem: Problem) -> None:
        """Note that something is wrong with a file."""
        self.complaints.problems.append(problem)

    def _read(self, file: Path) -> Node | None:
        content = self._content(file)
        return self.interpolated(content) if content else None

    def _content(self, file: Path) -> Node | None:
        """The document as it is written."""
        self.ground.looked_at.add(file)
        if not file.is_file():
            self.refuse(LinePlaces(self.shown(file)).problem((), "this is no file"))
            return None
        if file.suffix.lower() == ".json":
            return self._json(file)
        document = read_document(file, self.shown(file))
        self.complaints.problems.extend(document.problems)
        return None if document.problems else Node(document.data, document, file.parent)

    def _json(self, file: Path) -> Node | None:
        text = self.text(file)
        if text is None:
            return None
        places = JsonPlaces(self.shown(file), text)
        try:
            return Node(parse_json(text), places, file.parent)
        except JsonError as error:
            self.refuse(places.problem_at(error.offset, str(error)))
        return None


def _own_environment(root: Node) -> dict[str, str]:
    said = root.get("env")
    pairs = said.value.items() if said is not None and isinstance(said.value, Mapping) else ()
    return {name: value for name, value in pairs if isinstance(value, str)}


def has_templates(root: Node) -> bool:
    """Whether the texts of an eval file are templates."""
    return isinstance(root.value, Mapping) and any(key in root.value for key in TEMPLATE_KEYS)
