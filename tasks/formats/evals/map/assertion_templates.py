"""Lists of assertions with their includes: each `include` stands for what its template holds."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from passgate.tasks.formats.evals.map.reading import Reading
from passgate.tasks.formats.evals.read.node import Key, Keys, Node, take_apart
from passgate.tasks.formats.evals.read.paths import find_path, first_of, upwards
from passgate.tasks.formats.schema_check import Kind, wrong_kind

MAX_DEPTH = 3
"""Templates inside of templates."""
FOLDER = ".agentv/templates"
_SUFFIXES = (".yaml", ".yml")
_INCLUDE_KEYS: Keys = {"include": Key((Kind.TEXT,), needed=True)}
_LIST = Key((Kind.LIST,), spellings=("assert", "evaluators"), needed=True)
_TEMPLATE_KEYS: Keys = {"assertions": _LIST, "name": Key(), "description": Key(), "version": Key()}


def entries(node: Node, reading: Reading) -> Iterator[tuple[Node, Reading]]:
    """The entries of a list, those of its templates in place of its includes, each with the reading it belongs to.

    An include whose file is missing stays as it is: it is noted as what keeps the test from running.
    """
    for item in node.items():
        if not isinstance(item.value, dict) or "include" not in item.value:
            yield item, reading
            continue
        parts = take_apart(item, _INCLUDE_KEYS, reading.complaints)
        if not parts.sound:
            continue
        before = len(reading.complaints.problems)
        file = _find(parts.values["include"], reading)
        if file is not None:
            yield from _of_template(file, item, reading)
        elif len(reading.complaints.problems) == before:
            yield item, reading


def _find(node: Node, reading: Reading) -> Path | None:
    name = node.value
    if "/" in name or "\\" in name or name.endswith(_SUFFIXES):
        return find_path(node, name, reading.ground, reading.complaints)
    folders = upwards(node.folder, reading.ground.repository)
    candidates = (folder / FOLDER / f"{name}{suffix}" for folder in folders for suffix in _SUFFIXES)
    file = first_of(candidates, reading.ground, _is_file)
    if file is not None:
        return file
    reading.cannot_run(node, f"no template {FOLDER}/{name}.yaml here or in a folder above")
    return None


def _is_file(file: Path) -> bool:
    try:
        return file.is_file()
    except (OSError, ValueError):
        return False


def _of_template(file: Path, node: Node, reading: Reading) -> Iterator[tuple[Node, Reading]]:
    message = _endless(file, reading.templates)
    if message:
        reading.refuse(node, message)
        return
    root = reading.read_file(file)
    listed = _list_of(root, reading) if root is not None else None
    if listed is not None:
        yield from entries(listed, replace(reading, templates=(*reading.templates, file)))


def _endless(file: Path, opened: tuple[Path, ...]) -> str:
    """Why a template cannot be opened inside of those; empty where it can."""
    if file in opened:
        chain = " -> ".join(part.name for part in (*opened[opened.index(file) :], file))
        return f"the templates include each other: {chain}"
    return f"templates are nested deeper than {MAX_DEPTH}" if len(opened) >= MAX_DEPTH else ""


def _list_of(root: Node, reading: Reading) -> Node | None:
    message = wrong_kind(root.value, (Kind.LIST, Kind.MAPPING))
    if message is not None:
        reading.refuse(root, f"a template holds 'assertions': {message}")
        return None
    if isinstance(root.value, list):
        return root
    parts = take_apart(root, _TEMPLATE_KEYS, reading.complaints)
    return parts.get("assertions") if parts.sound else None
