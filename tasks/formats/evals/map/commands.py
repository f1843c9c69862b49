"""The commands of code graders: what they run and where."""

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from passgate.tasks.formats.evals.map.reading import Reading
from passgate.tasks.formats.evals.read.node import Node
from passgate.tasks.formats.evals.read.paths import Ground, find_folder, first_of, upwards
from passgate.tasks.formats.schema_check import Kind, wrong_kind

_SCRIPT = re.compile(r"(?!-)[^\s$*?|&;<>()`]+\.([cm]?[jt]sx?|py|sh|bash|rb|pl|php|lua|jl|r)", re.IGNORECASE)
_INLINE = frozenset({"-c", "-e", "--eval", "-m"})
"""What comes after them is code or a module's name."""


def command_parts(node: Node, cwd: Node | None, reading: Reading) -> dict[str, Node]:
    """A command, a text or a list, as the options `command` and `cwd`.

    Without `cwd` it runs in the folder of its file, or in the nearest one above where the scripts that it names are.
    A script that is nowhere is noted as what keeps the test from running.
    """
    if not _is_command(node, reading):
        return {}
    given = _given_folder(cwd, reading) if cwd is not None else None
    rooted = node.with_value(_rooted(node.value, given or node.folder, reading.ground.repository))
    scripts = list(_scripts(rooted.value))
    folder = given or _nearest(node.folder, scripts, reading.ground)
    if cwd is None or given is not None:
        _note_missing(node, folder, scripts, reading)
    words = ["sh", "-c", node.value] if isinstance(node.value, str) else rooted.value
    return {"command": node.with_value(words), "cwd": (cwd or node).with_value(reading.ground.relative(folder))}


def _is_command(node: Node, reading: Reading) -> bool:
    before = len(reading.complaints.problems)
    if not node.value or (isinstance(node.value, str) and not node.value.strip()):
        reading.refuse(node, "must not be empty")
    for item in node.items() if isinstance(node.value, list) else ():
        message = wrong_kind(item.value, (Kind.TEXT,))
        if message is not None:
            reading.refuse(item, message)
    return len(reading.complaints.problems) == before


def _rooted(command: Any, folder: Path, repository: Path) -> Any:
    """The words of a command with absolute scripts, which are absolute in the repository, as seen from a folder."""
    if isinstance(command, str):
        return command
    return [_seen_from(folder, word, repository) if word in _scripts(command) else word for word in command]


def _seen_from(folder: Path, script: str, repository: Path) -> str:
    inner = script.lstrip("/")
    if not script.startswith("/") or _is_there(folder, script) or not _is_there(repository, inner):
        return script
    return Path(os.path.relpath(repository / inner, folder)).as_posix()


def _scripts(command: Any) -> Iterator[str]:
    """The words of a command, a text or a list, that are the paths of scripts."""
    try:
        words = shlex.split(command) if isinstance(command, str) else command
    except ValueError:
        return
    for index, word in enumerate(words):
        if index and words[index - 1] in _INLINE:
            continue
        if _SCRIPT.fullmatch(word) or (index == 0 and word.startswith(("./", "../"))):
            yield word


def _given_folder(cwd: Node, reading: Reading) -> Path | None:
    folder = find_folder(cwd, cwd.value, reading.ground, reading.complaints)
    if folder is not None and not folder.is_dir():
        reading.cannot_run(cwd, f"{cwd.value!r} is not a folder")
        return None
    return folder


def _nearest(folder: Path, scripts: Sequence[str], ground: Ground) -> Path:
    """The nearest folder, from one upwards, that all scripts are found from; the one itself where there is none."""
    above = upwards(folder, ground.repository)
    return next((each for each in above if all(_is_found(each, script, ground) for script in scripts)), folder)


def _is_found(folder: Path, script: str, ground: Ground) -> bool:
    return (
        first_of([Path(os.path.normpath(folder / script))], ground, lambda file: _is_there(folder, script)) is not None
    )


def _is_there(folder: Path, script: str) -> bool:
    try:
        return (folder / script).is_file()
    except (OSError, ValueError):
        return False


def _note_missing(node: Node, folder: Path, scripts: Sequence[str], reading: Reading) -> None:
    for script in scripts:
        if not script.startswith("/") and not _is_inside(folder / script, reading.ground.repository):
            reading.refuse(node, f"{script!r} leaves the repository")
        elif not _is_there(folder, script):
            reading.cannot_run(node, f"no file {script!r} in {reading.ground.relative(folder)!r}")


def _is_inside(path: Path, repository: Path) -> bool:
    try:
        return path.resolve().is_relative_to(repository.resolve())
    except (OSError, ValueError, RuntimeError):
        return False
