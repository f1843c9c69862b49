"""Prompts of judges: written in the eval file, or in a file of their own."""

import re
from pathlib import Path

from passgate.tasks.formats.evals.map.reading import Reading
from passgate.tasks.formats.evals.read.documents import FILE_SCHEME
from passgate.tasks.formats.evals.read.node import Node
from passgate.tasks.formats.evals.read.paths import find_path
from passgate.tasks.formats.findings import read_text

_PREFIXES = ("./", "../", "/", FILE_SCHEME)
_FILE_NAME = re.compile(
    r"\S+\.(md|markdown|txt|text|prompt|j2|jinja|jinja2|njk|hbs|mustache|ya?ml|json)", re.IGNORECASE
)
_PROGRAM = re.compile(r".+\.([cm]?[jt]s|py|sh|rb)(:\w+)?", re.IGNORECASE)


def prompt_parts(node: Node, reading: Reading) -> dict[str, Node]:
    """A prompt as the options `prompt`, its text, and `prompt_file` where it comes from one.

    A text that looks like a path is one. A file that is missing and a prompt that a program makes are noted as what
    keeps the test from running, and then there is no text.
    """
    if not isinstance(node.value, str):
        reading.cannot_run(node, "a prompt that a program makes is not to be had")
        return {}
    if not names_file(node.value):
        return {"prompt": node}
    if _PROGRAM.fullmatch(node.value):
        reading.cannot_run(node, f"a prompt that a program makes is not to be had: {node.value!r}")
        return {}
    file = find_path(node, node.value.removeprefix(FILE_SCHEME), reading.ground, reading.complaints)
    text = read_file_text(file, node, reading) if file is not None else None
    if file is None or text is None:
        return {}
    return {"prompt": node.with_value(text), "prompt_file": node.with_value(reading.ground.relative(file))}


def names_file(text: str) -> bool:
    """Whether a text is the path of a file and not a prompt."""
    if "\n" in text or "{{" in text:
        return False
    return text.startswith(_PREFIXES) or _FILE_NAME.fullmatch(text) is not None


def read_file_text(file: Path, node: Node, reading: Reading) -> str | None:
    """The text of a file; `None` where it cannot be read, which is noted as what keeps the test from running."""
    try:
        return read_text(file)
    except ValueError as error:
        reading.cannot_run(node, f"{node.value!r} {error}")
        return None
