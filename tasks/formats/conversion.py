"""Eval files written anew: as four-suite task files, or as the same eval file in YAML or JSONL."""

import contextlib
import json
import os
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from passgate.tasks.errors import Problem, UsageError
from passgate.tasks.formats.digests import FileDigests
from passgate.tasks.formats.evals.case_files import find_sidecar, read_lines
from passgate.tasks.formats.evals.documents import Documents, find_ground
from passgate.tasks.formats.evals.node import Complaints
from passgate.tasks.formats.folder import CASE_FILES, LINES_SUFFIX, TESTS_KEYS
from passgate.tasks.formats.four_suite import fill_files
from passgate.tasks.formats.loading import SourceTask
from passgate.tasks.formats.rules import asked_messages
from passgate.tasks.formats.serialise import LeavesError, Loss, Serialisation, differences, serialised_task

_MOST_PATHS = 3
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST = 120
# Names of files that are not tasks.
_MEANT_OTHERWISE = frozenset({*(name.partition(".")[0] for name in CASE_FILES), "eval", "gates", "agents", "prices"})
_WIDTH = 2**31  # no line is broken: a text of one line stays in one
# Some version of YAML reads these as a number or a truth value. PyYAML quotes only those of its own version.
_LOOKS_OTHERWISE = re.compile(
    r"[-+]?(0o?[0-7_]+|0x[0-9a-f_]+|0b[01_]+|(\.\d+|\d[\d_]*(\.\d*)?)(e[-+]?\d+)?|\.(inf|nan))|y|n|null|true|false",
    re.IGNORECASE,
)
_OTHER_BREAKS = re.compile("[\r\x85\u2028\u2029]")


@dataclass(frozen=True)
class Staged:
    """Files that are written and not in their places yet."""

    places: Mapping[Path, Path]  # where each belongs, by where it is

    def publish(self) -> None:
        """Put every file into its place, over what is there."""
        for written, place in self.places.items():
            written.replace(place)


@contextlib.contextmanager
def staging(texts: Mapping[Path, str]) -> Iterator[Staged]:
    """Write files beside their places, hidden. Remove what is not published, and the folders made for it too.

    Raise `OSError`, and `ValueError` for a text that UTF-8 cannot write.
    """
    mark = secrets.token_hex(4)
    places = {place.with_name(f".{place.stem}.{mark}{place.suffix}"): place for place in texts}
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


def lost_baselines(before: Sequence[SourceTask], after: Sequence[SourceTask], ids: Sequence[str]) -> Iterator[Problem]:
    """Yield a problem for each task that loses its baseline, at the task, with the reasons.

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
    known = zip(("task", "graders"), _digests(before, digests), _digests(after, digests), strict=True)
    changed = [name for name, digest, now in known if digest != now]
    if changed:
        # The paths in the task at which the two differ.
        one, other = (source.task.model_dump(mode="json", exclude_defaults=True) for source in (before, after))
        paths = list(differences(one, other))
        more = " and more" if len(paths) > _MOST_PATHS else ""
        cause = ", ".join(paths[:_MOST_PATHS]) + more or "the files that it names"
        yield f"the digest of its {' and '.join(changed)} changes, for {cause} differ"


def _digests(source: SourceTask, known: dict[Path, FileDigests]) -> tuple[str, str]:
    """Return the digest of a task and that of its graders, as loading gives them. Files are read once."""
    files = known.setdefault(source.root, FileDigests(source.root))
    messages = asked_messages(source.task, source.root)
    return files.task(source.task, messages), files.graders(fill_files(source.task, source.root))


@dataclass(frozen=True)
class TaskFiles:
    """Task files that are to be written, one for each task."""

    root: Path  # the suites folder that their paths are relative to, absolute
    texts: Mapping[Path, str]
    expected: tuple[dict[str, Any], ...]  # the tasks, as reading the files must return them
    losses: tuple[tuple[Loss, ...], ...]  # of each task, what is not written


def task_files(tasks: Sequence[SourceTask], folder: Path) -> TaskFiles:
    """Return a file for each task, in a folder for each suite."""
    root = folder.absolute()
    texts: dict[Path, str] = {}
    expected, losses = [], []
    for task, name in zip(tasks, file_names(task.task.task_id for task in tasks), strict=True):
        saying = Serialisation(partial(_path_inside, task.root, root))
        plain = serialised_task(task.task, saying)
        written, unmoved = plain, serialised_task(task.task, Serialisation(str))
        # Where no path in them has moved, the inputs stay word by word as they are: the task's digest holds them.
        if plain.get("inputs") == unmoved.get("inputs"):
            written = {**plain, **task.task.model_dump(mode="json", include={"inputs"})}
        texts[folder / task.task.suite / f"{name}.yaml"] = yaml_text(written)
        expected.append(plain)
        losses.append(tuple(saying.losses))
    return TaskFiles(root, texts, tuple(expected), tuple(losses))


def _path_inside(root: Path, folder: Path, path: str) -> str:
    """Return a path of a suites folder as seen from another one. What does not exist stays as it is written."""
    seen = path
    # So does everything where the folder is the same: the digests of tasks hold paths as they are written.
    with contextlib.suppress(OSError, ValueError):
        if folder != root and (root / path).exists():
            seen = Path(os.path.relpath(root / path, folder)).as_posix() + ("/" if path.endswith("/") else "")
    if seen == ".." or seen.startswith("../"):
        raise LeavesError(f"{seen!r} leaves the suites folder {folder.name!r}: write into a folder above it")
    return seen


def file_names(ids: Iterable[str]) -> list[str]:
    """Return a file name without suffix for each id: safe in every file system, and unique whatever the case."""
    taken: set[str] = set()
    names = []
    for task_id in ids:
        # passgate skips files whose names begin with a dot or an underscore.
        wanted = _UNSAFE.sub("-", task_id)[:_LONGEST].lstrip("._-").rstrip(".-") or "task"
        lower = wanted.lower()
        if lower in _MEANT_OTHERWISE or lower.endswith(".eval") or lower.startswith("dataset"):
            wanted = f"{wanted}-task"
        name, number = wanted, 2
        while name.lower() in taken:
            name, number = f"{wanted}-{number}", number + 1
        taken.add(name.lower())
        names.append(name)
    return names


def eval_file_texts(source: Path, out: Path) -> dict[Path, str]:
    """Return the texts of the same eval file under another name: YAML, or JSONL with a sidecar, by the suffix of `out`.

    Its texts and placeholders stay as they are written. Raise `UsageError` where it has no list of tests of its own.
    """
    root, tests = _parts(source)
    if out.suffix != LINES_SUFFIX:
        return {out: yaml_text({**root, "tests": tests})}
    lines = "".join(json.dumps(test, ensure_ascii=False, allow_nan=False) + "\n" for test in tests)
    return {out: lines, **({out.with_suffix(".yaml"): yaml_text(root)} if root else {})}


def _parts(source: Path) -> tuple[dict[str, Any], list[Any]]:
    """Return what an eval file says of all its tests, and the tests, both as they are written."""
    documents = Documents(find_ground(source, source.parent), Complaints(), {}, str)
    tests: Any
    if source.suffix == LINES_SUFFIX:
        sidecar = find_sidecar(source.absolute(), documents)
        root = documents.content(Path(sidecar.node.places.file)) if sidecar is not None else None
        tests = [line.value for line in read_lines(source.absolute(), documents, as_written=True)]
    else:
        root = documents.content(source.absolute())
        tests = root.value if root is not None else None
    said = root.value if root is not None and isinstance(root.value, dict) else {}
    if tests is said:
        tests = next((said[key] for key in TESTS_KEYS if said.get(key) is not None), None)
    if not isinstance(tests, list) or "scenarios" in said:
        raise UsageError(f"{source}: it has no list of tests of its own; convert the file that its tests are in")
    return {key: value for key, value in said.items() if key not in TESTS_KEYS}, tests


def yaml_text(document: Any) -> str:
    """Return a document of JSON values as YAML, keys in their order. Reading it gives the same document."""
    return yaml.dump(
        document, Dumper=_BlockDumper, sort_keys=False, allow_unicode=True, width=_WIDTH, default_flow_style=False
    )


class _BlockDumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        """Indent the items of lists, as people do."""
        super().increase_indent(flow, False)


def _style(text: str) -> str | None:
    if _OTHER_BREAKS.search(text):  # YAML escapes them only between double quotes
        return '"'
    if "\n" in text:
        return "|" if text.strip() else '"'
    return "'" if _LOOKS_OTHERWISE.fullmatch(text) else None


_BlockDumper.add_representer(
    str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style=_style(text))
)
