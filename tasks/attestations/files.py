"""Files from outside, read up to a bound."""

from pathlib import Path

from passgate.tasks.attestations.errors import UnreadableError


def read_bounded(file: Path, most: int) -> bytes:
    """The content of a file of at most `most` bytes.

    Raises `UnreadableError` for a larger one, and for what cannot be read or is no regular file.
    """
    try:
        if file.exists() and not file.is_file():  # a pipe may never end
            raise UnreadableError("is no regular file")
        with file.open("rb") as stream:
            content = stream.read(most + 1)
    except (OSError, ValueError) as error:
        raise UnreadableError(f"cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if len(content) > most:
        raise UnreadableError(f"is larger than {most // 1024} KiB")
    return content
