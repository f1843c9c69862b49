"""What an agent is made of: its spec and the files that its policy names."""

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath

from passgate.tasks.errors import UsageError
from passgate.tasks.history.storage import STATE_FOLDER
from passgate.tasks.model.agent import AgentSpec
from passgate.tasks.model.json_values import digest_of

_NEVER_THE_AGENT = frozenset({".git", "__pycache__", STATE_FOLDER.name})
"""Folders that change without the agent, as passgate's own does with every run."""
_REMEDY = "see `reuse.agent_files` in the gates file"


def agent_digest(spec: AgentSpec, folder: Path, patterns: Sequence[str]) -> str:
    """SHA-256 of an agent's spec and of the files of a folder that match the patterns, as in `src/**/*.py`.

    Raises `UsageError` for a pattern that matches nothing or leads out of the folder, and for a file that cannot be
    read.
    """
    found = {file for pattern in patterns for file in _files(folder, pattern)}
    files = {file.relative_to(folder).as_posix(): _content(file) for file in found}
    return digest_of([spec.model_dump(mode="json", exclude_defaults=True), files])


def _files(folder: Path, pattern: str) -> Iterator[Path]:
    path = PurePath(pattern)
    if path.is_absolute() or ".." in path.parts:
        raise UsageError(f"the pattern {pattern!r} leads out of {folder}: {_REMEDY}")
    root, is_empty = folder.resolve(), True
    try:
        for file in folder.glob(pattern):
            if not _NEVER_THE_AGENT.isdisjoint(file.relative_to(folder).parts) or not file.is_file():
                continue
            # Passed over, it could change without anyone noticing.
            if not file.resolve().is_relative_to(root):
                raise UsageError(f"{file} is a link that leaves {folder}, and {pattern!r} matches it: {_REMEDY}")
            is_empty = False
            yield file
    except (ValueError, IndexError, OSError) as error:  # an IndexError is what pathlib has for "."
        raise UsageError(f"the files of the pattern {pattern!r} cannot be found: {error}; {_REMEDY}") from error
    if is_empty:
        raise UsageError(f"no file of {folder} matches the pattern {pattern!r}: {_REMEDY}")


def _content(file: Path) -> list[str | bool]:
    """The digest of a file, and whether it can be run."""
    try:
        with file.open("rb") as stream:
            return [hashlib.file_digest(stream, "sha256").hexdigest(), file.stat().st_mode & 0o111 != 0]
    except OSError as error:
        raise UsageError(f"{file} is an agent's file and cannot be read: {error.strerror}; {_REMEDY}") from error
