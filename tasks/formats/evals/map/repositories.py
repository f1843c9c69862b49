"""Git repositories that a workspace is made of."""

from passgate.tasks.formats.evals.map.sources import Sources
from passgate.tasks.formats.evals.read.node import Key, Node, as_count, as_items, as_text, as_texts, take_apart
from passgate.tasks.formats.schema_check import Kind
from passgate.tasks.model.task import Repository

_COMMIT = Key((Kind.TEXT,), spellings=("base_commit", "ref"), says="A commit, tag or branch.")
_ANCESTOR = Key((Kind.WHOLE,), says="How many first parents before `commit`.")
REPOSITORY_KEYS = {
    "path": Key((Kind.TEXT,), says="Where in the workspace."),
    "repo": Key((Kind.TEXT,), spellings=("url",), needed=True, says="A URL, a path or `owner/name`."),
    "commit": _COMMIT,
    "ancestor": _ANCESTOR,
    "sparse": Key((Kind.LIST,), items=(Kind.TEXT,), says="Only these folders."),
    "checkout": Key((Kind.MAPPING,)),
}
CHECKOUT_KEYS = {"commit": _COMMIT, "ancestor": _ANCESTOR}
_MOST_ANCESTORS = 100_000


def read_repositories(node: Node, sources: Sources) -> tuple[Repository, ...]:
    """The repositories of a workspace; what is wrong with one is a problem."""
    read = (_repository(item, sources) for item in as_items(node) if isinstance(item.value, dict))
    return tuple(repository for repository in read if repository is not None)


def _repository(node: Node, sources: Sources) -> Repository | None:
    parts = take_apart(node, REPOSITORY_KEYS, sources.complaints)
    if not parts.sound:
        return None
    checkout = parts.get("checkout")
    pin = parts if checkout is None else take_apart(checkout, CHECKOUT_KEYS, sources.complaints)
    address = _address(parts.values["repo"], sources)
    if not pin.sound or address is None or not _stays_inside(parts.get("path"), sources):
        return None
    return Repository(
        path=as_text(parts.get("path")) or ".",
        repo=address,
        commit=as_text(pin.get("commit")),
        ancestor=as_count(pin.get("ancestor"), sources.complaints, most=_MOST_ANCESTORS) or 0,
        sparse=as_texts(parts.get("sparse")),
    )


def _stays_inside(node: Node | None, sources: Sources) -> bool:
    path = as_text(node) or "."
    if node is None or not (path.startswith("/") or ".." in path.split("/")):
        return True
    sources.refuse(node, f"{path!r} is outside the workspace")
    return False


def _address(node: Node, sources: Sources) -> str | None:
    """A URL or `owner/name`; a path that begins with a dot or a slash has to be there."""
    address = as_text(node)
    if address is None:
        sources.cannot_run(node, "there is no repository without an address")
    if address is None or not address.startswith((".", "/")):
        return address
    return sources.folder(node, address)
