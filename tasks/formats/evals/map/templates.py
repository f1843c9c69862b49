"""Lists of assertions with their includes: each `include` stands for what its template holds."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from passgate.tasks.formats.evals.map.sources import Sources, is_file
from passgate.tasks.formats.evals.read.node import Key, Keys, Node, take_apart
from passgate.tasks.formats.evals.read.paths import first_of, upwards
from passgate.tasks.formats.schema_check import Kind

MAX_DEPTH = 3
"""Templates inside of templates; as deep as AgentV reads them."""
FOLDER = ".agentv/templates"
_SUFFIXES = (".yaml", ".yml")
_INCLUDE_KEYS: Keys = {"include": Key((Kind.TEXT,), needed=True)}
_LIST = Key((Kind.LIST,), spellings=("assert", "evaluators"), needed=True)
_TEMPLATE_KEYS: Keys = {"assertions": _LIST, "name": Key(), "description": Key(), "version": Key()}


def entries(node: Node, sources: Sources) -> Iterator[tuple[Node, Sources]]:
    """The entries of a list, those of its templates in place of its includes, each with the sources it belongs to.

    An include whose file is missing stays as it is: it is noted as what keeps the test from running.
    """
    for item in node.items():
        if not isinstance(item.value, dict) or "include" not in item.value:
            yield item, sources
            continue
        parts = take_apart(item, _INCLUDE_KEYS, sources.complaints)
        if not parts.sound:
            continue
        before = len(sources.complaints.problems)
        file = _find(parts.values["include"], sources)
        if file is not None:
            yield from _of_template(file, item, sources)
        elif len(sources.complaints.problems) == before:
            yield item, sources


def _find(node: Node, sources: Sources) -> Path | None:
    name = node.value
    if "/" in name or "\\" in name or name.endswith(_SUFFIXES):
        return sources.path(node, name)
    folders = upwards(node.folder, sources.ground.repository)
    candidates = (folder / FOLDER / f"{name}{suffix}" for folder in folders for suffix in _SUFFIXES)
    file = first_of(candidates, sources.ground, is_file)
    if file is not None:
        return file
    sources.cannot_run(node, f"no template {FOLDER}/{name}.yaml here or in a folder above")
    return None


def _of_template(file: Path, node: Node, sources: Sources) -> Iterator[tuple[Node, Sources]]:
    message = _endless(file, sources.templates)
    if message:
        sources.refuse(node, message)
        return
    root = sources.read_file(file)
    listed = _list_of(root, sources) if root is not None else None
    if listed is not None:
        yield from entries(listed, replace(sources, templates=(*sources.templates, file)))


def _endless(file: Path, opened: tuple[Path, ...]) -> str:
    """Why a template cannot be opened inside of those; empty where it can."""
    if file in opened:
        chain = " -> ".join(part.name for part in (*opened[opened.index(file) :], file))
        return f"the templates include each other: {chain}"
    return f"templates are nested deeper than {MAX_DEPTH}" if len(opened) >= MAX_DEPTH else ""


def _list_of(root: Node, sources: Sources) -> Node | None:
    if sources.refuses_kind(root, (Kind.LIST, Kind.MAPPING), "a template holds 'assertions': "):
        return None
    if isinstance(root.value, list):
        return root
    parts = take_apart(root, _TEMPLATE_KEYS, sources.complaints)
    return parts.get("assertions") if parts.sound else None
