"""Tasks as the texts of files of one dialect, with what reading them has to give."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from passgate.tasks.formats.discover import suites_folder_of
from passgate.tasks.formats.evals.names import full_id
from passgate.tasks.formats.evals.paths import ground_of
from passgate.tasks.formats.evals.serialise import LeavesError, Loss, Place, Serialisation, serialised_task
from passgate.tasks.formats.evals.write.file_names import file_names
from passgate.tasks.formats.evals.write.files import eval_document, eval_text, lines_texts
from passgate.tasks.formats.evals.write.yaml_text import yaml_text
from passgate.tasks.formats.schema_check import schema_validator
from passgate.tasks.formats.task_files import SourceTask

_SCHEMAS = ("eval", "agentv")
"""Of EVAL.yaml, the strictest first."""


@dataclass(frozen=True)
class Output:
    """Files that are to be written."""

    root: Path
    """The suites folder that their paths are relative to, absolute."""
    texts: Mapping[Path, str]
    """The text of each file; files that are read for themselves come first."""
    expected: tuple[dict[str, Any], ...]
    """The tasks, as reading the files has to give them."""
    losses: tuple[tuple[Loss, ...], ...]
    """Of each task, what is not written."""
    ids: tuple[str, ...]
    """The tasks' ids among all tasks of the suites folder, once the files are in their places."""


def four_suite_output(tasks: Sequence[SourceTask], folder: Path) -> Output:
    """A file for each task, in a folder for each suite."""
    root = folder.absolute()
    said = [_said(task, _inside(task.root, root)) for task in tasks]
    names = file_names(task.task.task_id for task in tasks)
    files = [folder / task.task.suite / f"{name}.yaml" for task, name in zip(tasks, names, strict=True)]
    written = [_as_in_digest(task, plain) for task, (plain, _) in zip(tasks, said, strict=True)]
    texts = {file: yaml_text(plain) for file, plain in zip(files, written, strict=True)}
    ids = tuple(task.task.task_id for task in tasks)
    return Output(root, texts, tuple(plain for plain, _ in said), tuple(losses for _, losses in said), ids)


def _as_in_digest(source: SourceTask, plain: dict[str, Any]) -> dict[str, Any]:
    """A task with its inputs word by word, which the digest of the task holds, where none of their paths has moved."""
    unmoved, _ = _said(source, _as_written)
    if plain.get("inputs") != unmoved.get("inputs"):
        return plain
    return {**plain, "inputs": source.task.model_dump(mode="json", include={"inputs"})["inputs"]}


def eval_output(tasks: Sequence[SourceTask], file: Path) -> Output:
    """One EVAL.yaml."""
    stem = file.stem.lower().removesuffix(".eval")
    document = eval_document(file.absolute().parent.name if stem == "eval" else stem, _beside(tasks, file))
    return _output(tasks, file, {file: eval_text(document, _schema(document, file))})


def lines_output(tasks: Sequence[SourceTask], file: Path) -> Output:
    """A JSONL file and its sidecar."""
    lines, sidecar = lines_texts(file.stem, _beside(tasks, file))
    return _output(tasks, file, {file: lines, file.with_suffix(".yaml"): sidecar})


def _output(tasks: Sequence[SourceTask], file: Path, texts: Mapping[Path, str]) -> Output:
    root = suites_folder_of(file)
    expected = tuple(_said(task, _seen_from(task.root, root))[0] for task in tasks)
    ids = tuple(full_id(task.task.task_id, file.absolute(), ground_of(file, root)) for task in tasks)
    return Output(root, texts, expected, ((),) * len(tasks), ids)


def _beside(tasks: Sequence[SourceTask], file: Path) -> list[dict[str, Any]]:
    """Tasks with paths as a file writes them: relative to its folder."""
    folder = file.absolute().parent
    return [_said(task, _dotted(task.root, folder))[0] for task in tasks]


def _said(task: SourceTask, place: Place) -> tuple[dict[str, Any], tuple[Loss, ...]]:
    saying = Serialisation(place)
    return serialised_task(task.task, saying), tuple(saying.losses)


def _schema(document: Mapping[str, Any], file: Path) -> str | None:
    """The JSON Schema of an EVAL.yaml for editors, where the repository that it lies in has it."""
    folder = ground_of(file, file.parent).repository / "schema"
    for name in _SCHEMAS:
        schema = folder / f"{name}.schema.json"
        if schema.is_file() and schema_validator(name).is_valid(document):
            return Path(os.path.relpath(schema, file.absolute().parent)).as_posix()
    return None


@cache
def _seen_from(root: Path, folder: Path) -> Place:
    """Paths of a suites folder as seen from another folder. What is not there stays as it is written, and so does all
    where the folder is the same: the digests of tasks hold paths as they are written.
    """
    if folder == root:
        return _as_written

    @cache
    def place(path: str) -> str:
        try:
            is_there = (root / path).exists()
        except (OSError, ValueError):
            is_there = False
        if not is_there:
            return path
        seen = Path(os.path.relpath(root / path, folder)).as_posix()
        return f"{seen}/" if path.endswith("/") else seen

    return place


def _as_written(path: str) -> str:
    return path


def _dotted(root: Path, folder: Path) -> Place:
    """The same so that everyone sees that it is a path: `./x`."""
    plain = _seen_from(root, folder)

    def place(path: str) -> str:
        seen = plain(path)
        is_plain = seen == path and not (folder / seen).exists()
        return seen if seen == "." or seen.startswith(("../", "/")) or seen == ".." or is_plain else f"./{seen}"

    return place


def _inside(root: Path, folder: Path) -> Place:
    """The same for a suites folder, which no path may leave."""
    plain = _seen_from(root, folder)

    def place(path: str) -> str:
        seen = plain(path)
        if seen == ".." or seen.startswith("../"):
            raise LeavesError(f"{seen!r} leaves the suites folder {folder.name!r}: write into a folder above it")
        return seen

    return place
