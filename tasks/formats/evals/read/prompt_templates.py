"""`prompts` of an eval file: templates in the file itself or in files of their own."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from passgate.tasks.formats.evals.node import Node
from passgate.tasks.formats.evals.read.documents import Documents, LinePlaces
from passgate.tasks.formats.evals.read.references import FILE_SCHEME, files_of
from passgate.tasks.formats.schema_check import nearest

MAX_PROMPT_BYTES = 1024 * 1024
_CONTENTS = ("raw", "prompt", "file")
_KEYS = (*_CONTENTS, "id", "label")
_DOCUMENTS = frozenset({".json", ".yaml", ".yml"})
_PROGRAMS = frozenset({".py", ".js", ".mjs", ".cjs", ".ts"})
_FILES = _DOCUMENTS | _PROGRAMS | {".txt", ".md", ".j2"}
_BETWEEN = "\n---\n"
"""What stands between several prompts of one text file."""


@dataclass(frozen=True)
class PromptTemplate:
    """One of the prompts."""

    node: Node
    """A text or a list of messages."""
    label: str
    names: tuple[str, ...]
    """By which tests may ask for it."""


def read_prompts(root: Node, documents: Documents) -> list[PromptTemplate]:
    """The prompts of an eval file, in order, each with a label of its own; none where it has none."""
    said = root.get("prompts")
    if said is None:
        return []
    items = [said] if isinstance(said.value, str) else list(said.items()) if isinstance(said.value, list) else []
    if not items:
        documents.refuse(said.problem("expected a list of prompts"))
    found = [prompt for item in items for prompt in _prompts(item, documents)]
    return [_labelled(prompt, number, found) for number, prompt in enumerate(found, start=1)]


def _labelled(prompt: PromptTemplate, number: int, prompts: list[PromptTemplate]) -> PromptTemplate:
    shared = sum(other.label == prompt.label for other in prompts) > 1
    label = f"{prompt.label or 'prompt'}-{number}" if shared or not prompt.label else prompt.label
    return PromptTemplate(prompt.node, label, tuple(dict.fromkeys((*prompt.names, label))))


def _prompts(item: Node, documents: Documents) -> Iterator[PromptTemplate]:
    if isinstance(item.value, dict):
        yield from _described(item, documents)
    elif isinstance(item.value, str) and _is_path(item.value):
        for file in files_of(item, documents):
            for node in _of_file(file, item, documents):
                yield PromptTemplate(node, file.stem, (item.value,))
    elif isinstance(item.value, str | list):
        yield PromptTemplate(item, "", ())
    else:
        documents.refuse(item.problem("expected a prompt: a text, a list of messages, or a mapping with `prompt`"))


def _described(item: Node, documents: Documents) -> Iterator[PromptTemplate]:
    """A prompt with an id or a label."""
    for key in item.value:
        if key not in _KEYS:
            documents.refuse(item.child(key).problem(f"unknown key{nearest(key, _KEYS)}", at_key=True))
    names = tuple(str(item.value[key]) for key in ("label", "id") if item.value.get(key) is not None)
    given = [part for part in map(item.get, _CONTENTS) if part is not None]
    identity = item.get("id")
    if not given and identity is not None and _is_path(str(identity.value)):
        given = [identity]
    if len(given) != 1:
        documents.refuse(item.problem(f"expected one of: {', '.join(_CONTENTS)}"))
        return
    for node in _contents(given[0], documents):
        yield PromptTemplate(node, names[0] if names else "", names)


def _contents(part: Node, documents: Documents) -> Iterator[Node]:
    if isinstance(part.value, list):
        yield part
    elif not isinstance(part.value, str):
        documents.refuse(part.problem("expected a text or a list of messages"))
    elif part.path[-1] == "file" or _is_path(part.value):
        for file in files_of(part, documents):
            yield from _of_file(file, part, documents)
    else:
        yield part


def _is_path(text: str) -> bool:
    """Whether a prompt is a file's name: it says so, or it is one word that ends as one."""
    return text.startswith(FILE_SCHEME) or (not set(text) & set(" \n{") and Path(text).suffix in _FILES)


def _of_file(file: Path, at: Node, documents: Documents) -> Iterator[Node]:
    """The prompts in a file. One that is a program gives none that can be run."""
    if file.suffix in _PROGRAMS:
        message = f"{at.value!r} is a program; passgate takes texts and messages"
        documents.complaints.cannot_run.append(at.problem(message))
        yield at
    elif file.suffix in _DOCUMENTS:
        content = documents.read(file)
        if content is not None and not isinstance(content.value, str | list):
            documents.refuse(content.problem("expected a list of messages"))
        elif content is not None:
            yield content
    elif file.is_file():
        text = documents.text(file, MAX_PROMPT_BYTES) or ""
        for part in text.split(_BETWEEN) if file.suffix == ".txt" else [text]:
            yield documents.interpolated(Node(part.strip(), LinePlaces(documents.shown(file)), file.parent))
    else:
        documents.refuse(at.problem("this is no file"))
