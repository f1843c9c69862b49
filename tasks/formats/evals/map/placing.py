"""Where a test works: the workspaces that it, its file and the files that these name say."""

from collections.abc import Iterator

from passgate.tasks.formats.evals.map.sources import Sources
from passgate.tasks.formats.evals.map.workspaces import read_workspace, shares_state
from passgate.tasks.formats.evals.read.documents import FILE_SCHEME
from passgate.tasks.formats.evals.read.node import Node, Parts
from passgate.tasks.formats.evals.read.paths import find_path
from passgate.tasks.formats.evals.read.raw import RawTest
from passgate.tasks.formats.schema_check import Kind, wrong_kind
from passgate.tasks.model.task import Workspace

_KEYS = ("workspace", "environment")
_POLICIES = ("experiment", "execution")


def workspace_of(test: Parts, raw: RawTest, sources: Sources) -> Workspace | None:
    """The workspace of a test. What it says itself goes before what its file says; the folder beside it comes first."""
    own = _said(test.node, sources)
    said = [*own, *_said(raw.context.root, sources), *_modes(raw.runtime.root)]
    template = None if own else raw.workspace
    workspace = read_workspace(said, sources)
    _check_dependencies(test, said, sources)
    if template is None:
        return workspace
    return (workspace or Workspace()).model_copy(update={"template": sources.ground.relative(template)})


def _said(node: Node, sources: Sources) -> list[Node]:
    """The mappings of a test or a file, also those that stand in a file of their own."""
    found = (_mapping(said, sources) for key in _KEYS if key in node.value and (said := node.get(key)) is not None)
    return [mapping for mapping in found if mapping is not None]


def _modes(root: Node) -> Iterator[Node]:
    """What the runtime policy of a file says of workspaces."""
    for name in _POLICIES:
        policy = root.get(name) if name in root.value else None
        mode = policy.get("workspace") if policy is not None else None
        if mode is not None and isinstance(mode.value, dict):
            yield mode


def _mapping(said: Node, sources: Sources) -> Node | None:
    if isinstance(said.value, str):
        path = find_path(said, said.value.removeprefix(FILE_SCHEME), sources.ground, sources.complaints)
        said_there = sources.read_file(path) if path is not None else None
        if said_there is None:
            return None
        said = said_there
    message = wrong_kind(said.value, (Kind.MAPPING,))
    if message is not None:
        sources.refuse(said, message)
    return None if message else said


def _check_dependencies(test: Parts, said: list[Node], sources: Sources) -> None:
    """Every trial stands alone, so a test cannot need what another one leaves behind."""
    depends = test.get("depends_on")
    if depends is None or not depends.value:
        return
    if shares_state(said):
        sources.cannot_run(depends, "every trial has a workspace of its own: it cannot have that of another test")
    else:
        sources.warn(depends, "every trial stands alone: it is run whatever comes of other tests", at_key=True)
