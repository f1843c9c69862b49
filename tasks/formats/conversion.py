"""Tasks written anew: the texts of their files, how these come into place, and whether earlier results still count."""

import contextlib
import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from passgate.tasks.errors import Problem
from passgate.tasks.formats.digests import FileDigests
from passgate.tasks.formats.discover import suites_folder_of
from passgate.tasks.formats.evals.read.paths import full_id, ground_of
from passgate.tasks.formats.evals.write.serialise import (
    LeavesError,
    Loss,
    Place,
    Serialisation,
    differences,
    serialised_task,
)
from passgate.tasks.formats.evals.write.tests import eval_document, eval_text, file_names, lines_texts, yaml_text
from passgate.tasks.formats.four_suite import with_files
from passgate.tasks.formats.loading import SourceTask
from passgate.tasks.formats.rules import asked_messages
from passgate.tasks.formats.schema_check import schema_validator

_MOST_PATHS = 3
_SCHEMAS = ("eval", "agentv")  # of EVAL.yaml, the strictest first


@dataclass(frozen=True)
class Staged:
    """Files that are written and not in their places yet."""

    places: Mapping[Path, Path]  # where each belongs, by where it is

    def publish(self) -> None:
        """Put every file into its place, over what is there."""
        for written, place in self.places.items():
            written.replace(place)


def staged_name(place: Path, mark: str) -> Path:
    """What a file is called until it is in its place: hidden, in the same folder, with the same suffix."""
    return place.with_name(f".{place.stem}.{mark}{place.suffix}")


@contextlib.contextmanager
def staging(texts: Mapping[Path, str]) -> Iterator[Staged]:
    """Write files beside their places. What is not put there is gone afterwards, and the folders made for it too.

    Raises `OSError`, and `ValueError` for a text that UTF-8 cannot write.
    """
    mark = secrets.token_hex(4)
    places = {staged_name(place, mark): place for place in texts}
    made: list[Path] = []
    try:
        for written, place in places.items():
            missing = [folder for folder in (place.parent, *place.parent.parents) if not folder.exists()]
            for folder in reversed(missing):
                folder.mkdir(exist_ok=True)
                made.append(folder)
            written.write_bytes(texts[place].encode("utf-8"))
        yield Staged(places)
    finally:
        for written in places:
            written.unlink(missing_ok=True)
        for folder in reversed(made):
            if folder.is_dir() and not os.listdir(folder):  # noqa: PTH208 - a folder of any size, and only whether
                folder.rmdir()


def no_longer_comparable(
    before: Sequence[SourceTask], after: Sequence[SourceTask], ids: Sequence[str]
) -> Iterator[Problem]:
    """A problem for each task whose earlier results are no baseline for it any more, at the task, with the reasons.

    `ids` are the tasks' ids among all tasks of the suites folder afterwards.
    """
    digests: dict[Path, FileDigests] = {}
    for one, other, task_id in zip(before, after, ids, strict=True):
        # A task that cannot be run has no earlier results, and its files may be missing.
        if not one.origin.cannot_run and (reasons := list(_changes(one, other, task_id, digests))):
            message = f"earlier results are no baseline for it: {'; '.join(reasons)}"
            yield one.problem("", f"task {one.task.task_id!r}: {message}")


def _changes(before: SourceTask, after: SourceTask, task_id: str, digests: dict[Path, FileDigests]) -> Iterator[str]:
    if task_id != before.origin.task_id:
        yield f"its id was {before.origin.task_id!r} and is {task_id!r}"
    known = zip(("task", "graders"), _digests_of(before, digests), _digests_of(after, digests), strict=True)
    changed = [name for name, digest, now in known if digest != now]
    if changed:
        # What is said otherwise, word by word, as paths in the task.
        one, other = (source.task.model_dump(mode="json", exclude_defaults=True) for source in (before, after))
        paths = list(differences(one, other))
        more = " and more" if len(paths) > _MOST_PATHS else ""
        cause = ", ".join(paths[:_MOST_PATHS]) + more or "the files that it names"
        yield f"the digest of its {' and '.join(changed)} changes, for {cause} differ"


def _digests_of(source: SourceTask, known: dict[Path, FileDigests]) -> tuple[str, str]:
    """The digest of a task and that of its graders, as loading the task gives them; files are read once."""
    files = known.setdefault(source.root, FileDigests(source.root))
    messages = asked_messages(source.task, source.root)
    return files.task(source.task, messages), files.graders(with_files(source.task, source.root))


@dataclass(frozen=True)
class ConvertedFiles:
    """Files that are to be written."""

    root: Path  # the suites folder that their paths are relative to, absolute
    texts: Mapping[Path, str]  # the text of each file; files that are read for themselves come first
    expected: tuple[dict[str, Any], ...]  # the tasks, as reading the files has to give them
    losses: tuple[tuple[Loss, ...], ...]  # of each task, what is not written
    ids: tuple[str, ...]  # the tasks' ids among all tasks of the suites folder, once the files are in their places


def four_suite_output(tasks: Sequence[SourceTask], folder: Path) -> ConvertedFiles:
    """A file for each task, in a folder for each suite."""
    root = folder.absolute()
    said = [_said(task, partial(_inside, task.root, root)) for task in tasks]
    texts: dict[Path, str] = {}
    for task, name, (plain, _) in zip(tasks, file_names(task.task.task_id for task in tasks), said, strict=True):
        written, (unmoved, _) = plain, _said(task, str)
        # Where no path in them has moved, the inputs stay word by word as they are: the task's digest holds them.
        if plain.get("inputs") == unmoved.get("inputs"):
            written = {**plain, **task.task.model_dump(mode="json", include={"inputs"})}
        texts[folder / task.task.suite / f"{name}.yaml"] = yaml_text(written)
    ids = tuple(task.task.task_id for task in tasks)
    return ConvertedFiles(root, texts, tuple(plain for plain, _ in said), tuple(losses for _, losses in said), ids)


def eval_output(tasks: Sequence[SourceTask], file: Path) -> ConvertedFiles:
    """One EVAL.yaml."""
    stem = file.stem.lower().removesuffix(".eval")
    document = eval_document(file.absolute().parent.name if stem == "eval" else stem, _beside(tasks, file))
    return _output(tasks, file, {file: eval_text(document, _schema(document, file))})


def lines_output(tasks: Sequence[SourceTask], file: Path) -> ConvertedFiles:
    """A JSONL file and its sidecar."""
    lines, sidecar = lines_texts(file.stem, _beside(tasks, file))
    return _output(tasks, file, {file: lines, file.with_suffix(".yaml"): sidecar})


def _output(tasks: Sequence[SourceTask], file: Path, texts: Mapping[Path, str]) -> ConvertedFiles:
    root = suites_folder_of(file)
    expected = tuple(_said(task, partial(_seen_from, task.root, root))[0] for task in tasks)
    ids = tuple(full_id(task.task.task_id, file.absolute(), ground_of(file, root)) for task in tasks)
    return ConvertedFiles(root, texts, expected, ((),) * len(tasks), ids)


def _beside(tasks: Sequence[SourceTask], file: Path) -> list[dict[str, Any]]:
    # A file writes paths relative to its own folder.
    return [_said(task, partial(_dotted, task.root, file.absolute().parent))[0] for task in tasks]


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
def _seen_from(root: Path, folder: Path, path: str) -> str:
    """A path of a suites folder as seen from another folder. What is not there stays as it is written."""
    # So does all where the folder is the same: the digests of tasks hold paths as they are written.
    with contextlib.suppress(OSError, ValueError):
        if folder != root and (root / path).exists():
            seen = Path(os.path.relpath(root / path, folder)).as_posix()
            return f"{seen}/" if path.endswith("/") else seen
    return path


def _dotted(root: Path, folder: Path, path: str) -> str:
    seen = _seen_from(root, folder, path)
    if seen in {".", ".."} or seen.startswith(("../", "/")) or (seen == path and not (folder / seen).exists()):
        return seen
    return f"./{seen}"  # so that everyone sees that it is a path


def _inside(root: Path, folder: Path, path: str) -> str:
    seen = _seen_from(root, folder, path)
    if seen == ".." or seen.startswith("../"):
        raise LeavesError(f"{seen!r} leaves the suites folder {folder.name!r}: write into a folder above it")
    return seen
