"""Where the command of an agent starts, and where the files that it names lie."""

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Self

from passgate.tasks.errors import UsageError

_SANDBOX_FILES = "_shared/sandboxes/*/files"


def repository_of(folder: Path) -> Path:
    """The repository that a folder lies in; outside of one the folder itself."""
    return next((path for path in (folder, *folder.parents) if (path / ".git").exists()), folder)


@dataclass(frozen=True)
class Places:
    """Where the files of an agent's command are looked for."""

    working_folder: Path
    """Of passgate itself."""
    project: Path
    """What `{project}` stands for: the repository that the working folder lies in."""
    start: Path | None = None
    """The folder that the command starts in; `None` for the trial's workspace."""
    sandboxes: tuple[Path, ...] = ()
    """The folders that workspaces are copied from."""

    @classmethod
    def of(cls, cwd: str | None, suites_folder: Path | None = None) -> Self:
        """The places of a command that starts in `cwd`, a folder relative to the repository.

        Raises `UsageError` when there is no such folder.
        """
        working_folder = Path.cwd()
        project = repository_of(working_folder)
        start = None if cwd is None else project / cwd
        if start is not None and not start.is_dir():
            raise UsageError(f"the agent's `cwd` is no folder: {start}; name one relative to {project}")
        sandboxes = tuple(sorted(suites_folder.glob(_SANDBOX_FILES))) if suites_folder else ()
        return cls(working_folder, project, start, sandboxes)

    def refuse_misplaced(self, text: str, words: Sequence[str]) -> None:
        """Raise `UsageError` when a command names files of the repository by paths that start in the workspace, where
        no sandbox puts such a file. The error holds the command with the right paths.
        """
        found = dict(self._misplaced(words))
        if self.start is not None or not found:
            return
        right = reduce(_with_path, found.items(), text)
        word = next(iter(found))
        raise UsageError(
            f"the agent command names {', '.join(found)}. The command starts in the workspace of a trial, and the file "
            f"is in the repository: write {shlex.quote(f'cli:{right}')}. Where the task makes such a file, write "
            f"{{workspace}}/{word.removeprefix('./')}"
        )

    def _misplaced(self, words: Sequence[str]) -> Iterator[tuple[str, str]]:
        for word in filter(_is_relative_file_name, words):
            file = next((folder / word for folder in (self.working_folder, self.project) if _has(folder, word)), None)
            if file is not None and not any(_has(folder, word) for folder in self.sandboxes):
                yield word, self._named_from_project(file)

    def _named_from_project(self, file: Path) -> str:
        return f"{{project}}/{file.relative_to(self.project).as_posix()}"


def _is_relative_file_name(word: str) -> bool:
    """Whether a word is plainly the path of a file: a bare one, as in `run`, may be anything."""
    is_plain = word == word.strip() and not word.startswith(("-", "/", "~")) and "{" not in word
    return is_plain and ".." not in Path(word).parts and ("/" in word or bool(Path(word).suffix))


def _with_path(text: str, found: tuple[str, str]) -> str:
    """A command with the path of a word in place of it."""
    word, path = found
    return re.sub(rf"(?<![^\s'\"]){re.escape(word)}(?![^\s'\"])", lambda _: path, text)


def _has(folder: Path, name: str) -> bool:
    try:
        return (folder / name).is_file()
    except (OSError, ValueError):  # a word can be too long for a path
        return False
