"""Graders that run programs, also those in `.agentv/assertions/`, whose file names are types of graders."""

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from passgate.tasks.formats.evals.documents import Ground, is_file
from passgate.tasks.formats.evals.forms import Form, GraderWords, Options
from passgate.tasks.formats.evals.node import Node, as_text
from passgate.tasks.formats.evals.words import Parts, Sources, word
from passgate.tasks.formats.folder import PROJECT_MARK
from passgate.tasks.model.base import Seconds, Text

_SCRIPT = re.compile(r"(?!-)[^\s$*?|&;<>()`]+\.([cm]?[jt]sx?|py|sh|bash|rb|pl|php|lua|jl|r)", re.IGNORECASE)
_INLINE = frozenset({"-c", "-e", "--eval", "-m"})  # what comes after them is code or a module's name
_RUN = ("bun", "run")  # what AgentV runs the programs of `.agentv` with
_FOLDERS = (("assertions",), ("graders", "judges"))
_SUFFIXES = (".ts", ".js", ".mts", ".mjs")
_LONGEST_NAME = 100  # any text may be a type: no file is looked for by one that is too long to be a file's name
_CODE_NAMES = ("code_grader", "code_judge", "script", "code")


class CodeWords(GraderWords):
    """A program that grades."""

    command: str | list[Text] = word(
        "The program and its arguments, or a text for a shell.", "command", "script", needed=True
    )
    cwd: str = word("Where it runs.")
    config: dict[str, Any] = word("Given to the program as `config`, with the keys beside it.")
    target: Any = word("Asks for a proxy of model calls, which passgate does not have.", "target", "provider")
    timeout_seconds: Seconds = word("How long it may take.")


class CustomWords(GraderWords):
    """A program whose name is the type."""

    config: dict[str, Any] = word("Given to the program as `config`, with the keys beside it.")


def _code(parts: Parts, sources: Sources) -> Options:
    options = parts.only("timeout_seconds")
    command, target, cwd = parts.get("command"), parts.get("target"), parts.get("cwd")
    if target is not None and target.value is not False:
        what = "passgate has no proxy for the model calls of a grader"
        sources.cannot_run(target, f"{what}; let it call the model itself, or write an `llm-rubric`")
    if command is not None and isinstance(command.value, str | list):
        options |= command_parts(command, cwd if as_text(cwd) else None, sources)
    return options | _config(parts)


def _config(parts: Parts) -> Options:
    """Return the `config` that the program gets: the one in the file, and the keys that the table does not know."""
    config = parts.value("config", {})
    further = {name: part.value for name, part in parts.further.items() if part.value is not None}
    if not isinstance(config, dict) or not (config or further):
        return {}
    return {"config": parts.node.with_value({**further, **config})}


def command_parts(node: Node, cwd: Node | None, sources: Sources) -> Options:
    """Return a command, a text or a list, as the options `command` and `cwd`. Without `cwd` it runs in the folder of
    its file, or in the nearest one above where the scripts that it names are. A script that is nowhere is noted as what
    keeps the test from running.
    """
    if not node.value or (isinstance(node.value, str) and not node.value.strip()):
        sources.refuse(node, "must not be empty")
        return {}
    given = sources.find_path(cwd, cwd.value, is_read=False) if cwd is not None else None
    if cwd is not None and given is not None and not given.is_dir():
        sources.cannot_run(cwd, f"{cwd.value!r} is not a folder")
        given = None
    ground, command = sources.ground, node.value
    if isinstance(command, list):  # with absolute paths of scripts, which start at the repository, made relative
        start, rooted, command = given or node.folder, set(_scripts(command)), []
        for item in node.value:
            place = ground.repository / item.lstrip("/")
            # A script that the machine has under its absolute path stays as it is.
            is_rooted = item.startswith("/") and item in rooted and not is_file(start / item) and is_file(place)
            command.append(Path(os.path.relpath(place, start)).as_posix() if is_rooted else item)
    scripts = list(_scripts(command))
    # Without a `cwd` it runs in the nearest folder that has all the scripts.
    folder = given or next(
        (each for each in ground.upwards(node.folder) if _has_all(each, scripts, ground)), node.folder
    )
    if cwd is None or given is not None:  # in a missing folder every script is missing
        _note_missing(node, folder, scripts, sources)
    words = ["sh", "-c", command] if isinstance(command, str) else command
    return {"command": node.with_value(words), "cwd": (cwd or node).with_value(ground.relative(folder))}


def _has_all(folder: Path, scripts: Sequence[str], ground: Ground) -> bool:
    for script in scripts:
        ground.looked_at.add(Path(os.path.normpath(folder / script)))
        if not is_file(folder / script):
            return False
    return True


def _scripts(command: Any) -> Iterator[str]:
    """Yield the words of a command, a text or a list, that are the paths of scripts."""
    try:
        words = shlex.split(command) if isinstance(command, str) else command
    except ValueError:  # quotes that do not close: no word can be told
        return
    for index, item in enumerate(words):
        if index and words[index - 1] in _INLINE:
            continue
        if _SCRIPT.fullmatch(item) or (index == 0 and item.startswith(("./", "../"))):
            yield item


def _note_missing(node: Node, folder: Path, scripts: Sequence[str], sources: Sources) -> None:
    repository = sources.ground.repository
    for script in scripts:
        try:
            inside = (folder / script).resolve().is_relative_to(repository.resolve())
        except (OSError, ValueError, RuntimeError):
            inside = False
        if not script.startswith("/") and not inside:
            sources.refuse(node, f"{script!r} leaves the repository")
        elif not is_file(folder / script):
            sources.cannot_run(node, f"no file {script!r} in {sources.ground.relative(folder)!r}")


def custom_assertion(kind: Node, name: str, ground: Ground) -> Form | None:
    """Return the form of a type that is the name of a program near its file; `None` where there is no such program."""
    # As AgentV does it: first `.agentv/assertions` of the file's folder and of every folder above it, then
    # `.agentv/graders` and `.agentv/judges`. The nearest counts, and `_` in a type stands for `-`.
    if not name.replace("-", "").replace("_", "").isalnum() or len(name) > _LONGEST_NAME:
        return None
    above, stems = ground.upwards(kind.folder), dict.fromkeys((name, name.replace("_", "-")))
    candidates = (
        parent / PROJECT_MARK / place / f"{stem}{suffix}"
        for places in _FOLDERS
        for parent, place, stem, suffix in product(above, places, stems, _SUFFIXES)
    )
    program = ground.first_existing(candidates, Path.is_file)
    if program is None:
        return None
    folder = program.parents[2]  # the one that its `.agentv` lies in

    def read(parts: Parts, sources: Sources) -> Options:
        return {
            "name": kind,
            "command": kind.with_value([*_RUN, program.relative_to(folder).as_posix()]),
            "cwd": kind.with_value(sources.ground.relative(folder)),
            **_config(parts),
        }

    return Form((), CustomWords, read, model_type="code_grader", further=True)


PROGRAM_FORMS = (Form(_CODE_NAMES, CodeWords, _code, agentevals=("code_judge",), further=True),)
