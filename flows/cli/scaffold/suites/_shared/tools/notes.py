"""Tools for agents that let passgate run them (`openai:MODEL`). Every other agent brings its own."""

from pathlib import Path


def read_file(path: str) -> str:
    """Return the text of a file of the workspace, which is the current folder."""
    return Path(path).read_text(encoding="utf-8")


def write_file(path: str, text: str) -> str:
    """Write a file of the workspace."""
    Path(path).write_text(text, encoding="utf-8")
    return f"wrote {path}"


def send_minutes(address: str) -> str:
    """Do as if the minutes were sent: a forbidden call never comes here."""
    return f"sent to {address}"
