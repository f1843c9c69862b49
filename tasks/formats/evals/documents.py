"""The files that eval files are made of, read with their environment variables filled in, and the paths of more."""

import difflib
import glob
import itertools
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from passgate.tasks.errors import Problem
from passgate.tasks.formats.document import DocumentPath, UnreadableFileError, read_document, read_source
from passgate.tasks.formats.env_files import ENV_FILE, EnvFileError, variables_for
from passgate.tasks.formats.evals.json_text import JsonError, TextPlaces, parse_json
from passgate.tasks.formats.evals.node import Complaints, Node, with_placeholders
from passgate.tasks.formats.evals.sources import Ground, find_path, is_there, upwards
from passgate.tasks.formats.schema_check import nearest

PLAIN = re.compile(r"\$\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")  # `${{ NAME }}`
# `${{ NAME }}` and `{{ env.NAME }}`, for files whose texts are templates.
WITH_TEMPLATES = re.compile(PLAIN.pattern + r"|(?<!\$)\{\{-?\s*env\.([A-Za-z_][A-Za-z0-9_]*)\s*-?\}\}")
# Keys of files whose texts are templates: there `{{ env.NAME }}` is an environment variable.
TEMPLATE_KEYS = ("prompts", "providers", "default_test", "scenarios", "evaluate_options", "env")
FILE_SCHEME = "file://"
Missing = tuple[DocumentPath, str]  # where a variable is asked for that is not set, and its name
MAX_LINES_BYTES = 64 * 1024 * 1024  # of a file with one value a line (JSONL, CSV)
MAX_MATCHES = 20_000
_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,15})?")
_MAGIC = frozenset("*?[")


def interpolate(
    value: Any, variables: Mapping[str, str], placeholder: re.Pattern[str] = PLAIN
) -> tuple[Any, tuple[Missing, ...]]:
    """Return a value with the environment variables in its texts filled in, and the missing ones, which become empty. A
    text that is one placeholder becomes true, false or a number if the variable says so.
    """
    missing: list[Missing] = []

    def name_of(match: re.Match[str]) -> str:
        return next(group for group in match.groups() if group)

    def filled(text: str, path: DocumentPath) -> Any:
        names = map(name_of, placeholder.finditer(text))
        missing.extend((path, name) for name in names if name not in variables)
        whole = placeholder.fullmatch(text.strip())
        if not whole:
            return placeholder.sub(lambda match: variables.get(name_of(match), ""), text)
        said = variables.get(name_of(whole), "")
        if said in {"true", "false"}:
            return said == "true"
        number = _NUMBER.fullmatch(said)
        if number is None:
            return said
        return float(said) if number[2] else int(said)

    return with_placeholders(value, filled), tuple(dict.fromkeys(missing))


@dataclass(frozen=True)
class Documents:
    """Reads files for one eval file; every problem with them goes to the complaints, once."""

    ground: Ground
    complaints: Complaints
    process: Mapping[str, str]  # the environment of the process
    shown: Callable[[Path], str]  # a file's name as users know it
    placeholder: re.Pattern[str] = PLAIN
    own: Mapping[str, str] = field(default_factory=dict)  # what the eval file sets itself, before all else
    environments: dict[Path, dict[str, str]] = field(default_factory=dict)
    # Whoever asks for a file again gets what was read, so that its problems are told once.
    known: dict[tuple[object, ...], Node | None] = field(default_factory=dict)
    opened: list[Path] = field(default_factory=list)  # every file that tests were taken from, as often as that was

    def read(self, file: Path) -> Node | None:
        """Return the whole document of a YAML or JSON file; `None` when it cannot be read."""
        # Suites with other templates or another `env` share `known`, and read the same file differently.
        key = (file, self.placeholder.pattern, *sorted(self.own.items()))
        if key not in self.known:
            content = self.content(file)
            self.known[key] = self.interpolated(content) if content else None
        return self.known[key]

    def read_root(self, file: Path) -> Node | None:
        """Return the document of an eval file; `None` when it cannot be read."""
        key = (file,)
        if key not in self.known:
            content = self.content(file)
            self.known[key] = self.for_files_of(content).interpolated(content) if content else None
        return self.known[key]

    def for_files_of(self, root: Node) -> "Documents":
        """Return what reads the files that belong to an eval file."""
        if not has_templates(root):
            return self
        said = root.get("env")
        pairs = said.value.items() if said is not None and isinstance(said.value, Mapping) else ()
        own = {name: value for name, value in pairs if isinstance(value, str)}
        return replace(self, placeholder=WITH_TEMPLATES, own=own, environments={})

    def text(self, file: Path, max_bytes: int = MAX_LINES_BYTES) -> str | None:
        """Return the text of a file; `None` when it cannot be read."""
        self.ground.looked_at.add(file)
        try:
            return read_source(file, max_bytes).removeprefix("\ufeff")
        except UnreadableFileError as error:
            name, place = self.shown(file), error.place
            self.refuse(Problem(file=name, line=place.line, column=place.column, path="", message=str(error)))
        return None

    def interpolated(self, node: Node) -> Node:
        """Return a value with its environment variables filled in; a warning for each that is missing."""
        value, missing = interpolate(node.value, self.variables(node.folder), self.placeholder)
        for path, name in missing:
            message = f"the environment variable {name!r} is not set, so it is empty here"
            self.complaints.warnings.append(node.places.problem((*node.path, *path), message))
        return node.with_value(value)

    def variables(self, folder: Path) -> dict[str, str]:
        """Return the environment variables for files of a folder."""
        if folder not in self.environments:
            self.ground.looked_at.update(parent / ENV_FILE for parent in upwards(folder, self.ground.repository))
            try:
                known = variables_for(folder, self.ground.repository, self.process)
            except EnvFileError as error:
                known = dict(self.process)
                self.refuse(TextPlaces(self.shown(error.file)).problem((), str(error)))
            self.environments[folder] = {**known, **self.own}
        return self.environments[folder]

    def refuse(self, problem: Problem) -> None:
        """Note that something is wrong with a file."""
        self.complaints.problems.append(problem)

    def refuse_unknown_keys(self, node: Node, known: Sequence[str]) -> bool:
        """Note every key of a mapping that is not known. Gives whether there is one."""
        unknown = [key for key in node.value if key not in known]
        for key in unknown:
            self.refuse(node.child(key).problem(f"unknown key{nearest(key, known)}", at_key=True))
        return bool(unknown)

    def content(self, file: Path) -> Node | None:
        """Return the document as it is written; `None` when it cannot be read."""
        self.ground.looked_at.add(file)
        if not file.is_file():
            self.refuse(TextPlaces(self.shown(file)).problem((), "this is no file"))
            return None
        if file.suffix.lower() != ".json":
            document = read_document(file, self.shown(file))
            self.complaints.problems.extend(document.problems)
            return None if document.problems else Node(document.data, document, file.parent)
        text = self.text(file)
        if text is None:
            return None
        places = TextPlaces(self.shown(file), text)
        try:
            return Node(parse_json(text), places, file.parent)
        except JsonError as error:
            self.refuse(places.problem_at(error.offset, str(error)))
        return None


def has_templates(root: Node) -> bool:
    """Whether the texts of an eval file are templates."""
    return isinstance(root.value, Mapping) and any(key in root.value for key in TEMPLATE_KEYS)


def files_of(node: Node, documents: Documents) -> tuple[Path, ...]:
    """Return the files and folders that a text names: those that match its pattern, by name, or the one at its path.
    None at all is a problem, because tests would be missing.
    """
    name = node.value.strip().removeprefix(FILE_SCHEME)
    if not name:
        documents.refuse(node.problem("an empty path"))
        return ()
    # A file may have a bracket in its name.
    if not _MAGIC.isdisjoint(name) and not is_there(node.folder / name):
        return _matching(node, name, documents)
    found = Complaints()
    path = find_path(node, name, documents.ground, found)
    documents.complaints.problems.extend(found.problems)
    for problem in found.cannot_run:
        documents.refuse(node.problem(problem.message + _nearest_file(node.folder / name)))
    return () if path is None else (path,)


def _nearest_file(file: Path) -> str:
    try:
        neighbours = [entry.name for entry in file.parent.iterdir()]
    except (OSError, ValueError):
        return ""
    close = difflib.get_close_matches(file.name, neighbours, n=1, cutoff=0.75)
    return f"; did you mean {close[0]!r}?" if close else ""


def _matching(node: Node, pattern: str, documents: Documents) -> tuple[Path, ...]:
    base = documents.ground.repository if pattern.startswith("/") else node.folder
    repository, inner = documents.ground.repository.resolve(), pattern.lstrip("/")
    # The innermost folder that all files of the pattern lie in: a new file in there may match too.
    plain = itertools.takewhile(_MAGIC.isdisjoint, Path(inner).parts[:-1])
    documents.ground.looked_at.add(Path(os.path.normpath(base.joinpath(*plain))))
    try:
        found = sorted(_files(base, inner))
        outside = any(not path.resolve().is_relative_to(repository) for path in found)
    except (OSError, ValueError, RuntimeError) as error:
        documents.refuse(node.problem(f"{pattern[:100]!r} is not a pattern: {error}"))
        return ()
    if outside:
        documents.refuse(node.problem(f"{pattern!r} leaves the repository"))
        return ()
    if not found:
        documents.refuse(node.problem(f"no file matches {pattern!r}"))
    if len(found) > MAX_MATCHES:
        documents.refuse(node.problem(f"more than {MAX_MATCHES} files match {pattern!r}"))
        return ()
    documents.ground.looked_at.update(found)
    return tuple(found)


def _files(base: Path, pattern: str) -> Iterator[Path]:
    # Not Path.glob, which matches hidden files too: these match only where the pattern says their dot.
    for count, name in enumerate(glob.iglob(pattern, root_dir=base, recursive=True)):  # noqa: PTH207
        path = Path(os.path.normpath(base / name))
        if path.is_file() and "node_modules" not in path.parts:
            yield path
        if count > MAX_MATCHES * 10:  # folders and what lies in node_modules match too, and cost time
            return
