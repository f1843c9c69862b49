"""Text files that tasks refer to."""

from pathlib import Path

MAX_TEXT_BYTES = 1024 * 1024


def read_text(file: Path) -> str:
    """The text of a file. Raises `ValueError` with what is wrong with it, as in "is not UTF-8 text"."""
    try:
        if not file.is_file():
            raise ValueError("is no file")
        with file.open("rb") as stream:
            content = stream.read(MAX_TEXT_BYTES + 1)
        if len(content) > MAX_TEXT_BYTES:
            raise ValueError(f"is larger than {MAX_TEXT_BYTES // 1024 // 1024} MiB")
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError("is not UTF-8 text") from None
    except OSError as error:
        raise ValueError(f"cannot be read: {error.strerror}") from error
