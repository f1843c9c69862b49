"""The files that the commands of graders and hooks are made of."""

import os
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path

Command = tuple[str, tuple[str, ...]]
"""A folder relative to the suites folder, and the words of what runs there."""

_LONGEST_NAME = 4096
_LONGEST_PART = 255
_RUN_BY_PYTHON = "__main__.py"
_COPYING = frozenset(("cp", "git", "install", "ln", "mv", "rsync", "tar"))
"""Programs that put files where the agent works and run none of them."""
_OPERATORS = frozenset(";&|()")


def named_by_command(command: Command, root: Path) -> Iterator[str]:
    """The files and folders that a command names, also in a text for a shell, relative to the suites folder `root`.

    Of a folder that it works in, or that holds the suites folder, only what Python runs there.
    """
    for name in _names(command[0], _all_words(command)):
        if (root / name).is_file():
            yield name
        elif (root / name).is_dir():
            if not _is_around(name, os.path.normpath(command[0])):
                yield name
            elif (root / name / _RUN_BY_PYTHON).is_file():
                yield os.path.normpath(f"{name}/{_RUN_BY_PYTHON}")


def named_outside(command: Command) -> Iterator[str]:
    """What a command may name outside of the suites folder, whether or not it is there, relative to that folder."""
    for name in filter(is_outside, _names(command[0], _all_words(command))):
        yield f"{name}/{_RUN_BY_PYTHON}" if _holds_suites(name) else name


def run_by_command(command: Command, root: Path) -> Iterator[str]:
    """The files that a command names, but for what it puts somewhere else, relative to the suites folder `root`."""
    return (name for name in _names(command[0], _run_words(command)) if (root / name).is_file())


def run_outside(command: Command, root: Path) -> Iterator[str]:
    """The same outside of the suites folder, whether or not it is there.

    Of a folder only what Python runs there: the agent may work on the rest.
    """
    for name in filter(is_outside, _names(command[0], _run_words(command))):
        yield f"{name}/{_RUN_BY_PYTHON}" if (root / name).is_dir() else name


def words_of_command(command: Command, root: Path) -> Iterator[str]:
    """The words of a command that are files, whatever it does with them, relative to the suites folder `root`."""
    return (name for name in _names(*command) if (root / name).is_file())


def is_outside(name: str) -> bool:
    """Whether a name that is relative to the suites folder leads out of it."""
    return Path(os.path.normpath(name)).parts[:1] == (os.pardir,)


def _all_words(command: Command) -> Iterator[str]:
    return (word for part in _parts(command[1]) for word in part)


def _run_words(command: Command) -> Iterator[str]:
    return (word for part in _parts(command[1]) if part[0] not in _COPYING for word in part)


def _names(folder: str, words: Iterable[str]) -> Iterator[str]:
    """The words that may be paths, relative to the suites folder."""
    for word in words:
        is_short = len(word) <= _LONGEST_NAME and all(
            len(part.encode("utf-8", "surrogatepass")) <= _LONGEST_PART for part in word.split("/")
        )
        if is_short and "\0" not in word and not word.startswith("/"):
            yield os.path.normpath(f"{folder}/{word}")


def _parts(words: tuple[str, ...]) -> list[list[str]]:
    """The commands that a command is made of: itself, and those of its texts for a shell."""
    parts = [[*words]]
    for text in (word for word in words if any(letter.isspace() for letter in word)):
        parts.append([])
        for word in _shell_words(text):
            if _OPERATORS.issuperset(word):
                parts.append([])
            else:
                parts[-1].append(word)
    return [part for part in parts if part]


def _shell_words(text: str) -> list[str]:
    inner = shlex.shlex(text, posix=True, punctuation_chars=True)
    inner.commenters = ""
    try:
        return list(inner)
    except ValueError:
        return text.split()


def _is_around(name: str, folder: str) -> bool:
    """Whether a folder holds the suites folder, or is one of the suites that a command runs in or below."""
    return _holds_suites(name) or (not is_outside(name) and Path(folder).is_relative_to(name))


def _holds_suites(name: str) -> bool:
    return {*Path(name).parts} <= {os.pardir}
