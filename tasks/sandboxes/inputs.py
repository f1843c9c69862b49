"""The files of a task's messages, where its agent can read them: the suites folder itself is hidden from agents."""

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from passgate.tasks.errors import MeasurementError
from passgate.tasks.model.messages import TaskMessage

_IN_PLACE = ("data:", "http://", "https://")
"""How images begin that are no file."""


def bring_inputs(messages: Sequence[TaskMessage], suites_folder: Path, folder: Path) -> dict[str, Path]:
    """Copy the files and images that messages name into a folder; where each lies, by its name in the messages.

    Raises `MeasurementError` for one that is not there.
    """
    placed: dict[str, Path] = {}
    for name in dict.fromkeys(_names(messages)):
        placed[name] = folder / _place(name, len(placed))
        placed[name].parent.mkdir(parents=True, exist_ok=True)
        try:
            shutil.copyfile(suites_folder / name, placed[name])
        except OSError as error:
            raise MeasurementError(f"the file {name} of the task's messages cannot be read: {error}") from error
    return placed


def _names(messages: Sequence[TaskMessage]) -> Iterator[str]:
    for message in messages:
        for block in message.content if not isinstance(message.content, str) else ():
            if block.type in {"file", "image"} and not str(block.value).startswith(_IN_PLACE):
                yield str(block.value)


def _place(name: str, number: int) -> PurePosixPath:
    """The same path as in the suites folder, where it lies in there."""
    path = PurePosixPath(name)
    return PurePosixPath(f"elsewhere-{number}", path.name) if path.is_absolute() or ".." in path.parts else path
