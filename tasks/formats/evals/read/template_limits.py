"""What a template may hold, so that rendering it takes no longer than its own length says."""

from collections.abc import Iterator
from typing import Final

from jinja2 import nodes

MAX_LOOPS: Final = 20
FILTERS: Final = frozenset(
    (
        *("abs", "capitalize", "count", "d", "default", "dump", "first", "float", "int", "join", "last", "length"),
        *("list", "lower", "reverse", "round", "safe", "sort", "string", "title", "trim", "unique", "upper"),
    )
)
"""None of them makes a long text out of a short one."""
_FUNCTIONS: Final = frozenset({"range"})
_REFUSED: Final[dict[type[nodes.Node], str]] = {
    nodes.Macro: "macro",
    nodes.CallBlock: "call",
    nodes.FilterBlock: "filter",
    nodes.Assign: "set",
    nodes.AssignBlock: "set",
    nodes.Include: "include",
    nodes.Import: "import",
    nodes.FromImport: "from",
    nodes.Extends: "extends",
    nodes.Block: "block",
}


def refuse_unbounded(template: nodes.Template) -> None:
    """Raises `ValueError` for a template that holds more than variables, operators, `if`, plain filters and loops that
    do not stand in one another.
    """
    for message in _messages(template):
        raise ValueError(f"not a template that passgate renders: {message}")


def _messages(template: nodes.Template) -> Iterator[str]:
    for node in template.find_all(tuple(_REFUSED)):
        yield f"`{{% {_REFUSED[type(node)]} %}}` is not allowed"
    for name in (node.name for node in template.find_all(nodes.Filter) if node.name not in FILTERS):
        yield f"the filter {name!r} is not allowed; these are: {', '.join(sorted(FILTERS))}"
    for call in template.find_all(nodes.Call):
        if not (isinstance(call.node, nodes.Name) and call.node.name in _FUNCTIONS):
            yield "calls are not allowed but for `range`"
    loops = list(template.find_all(nodes.For))
    if len(loops) > MAX_LOOPS:
        yield f"more than {MAX_LOOPS} loops"
    if any(loop.recursive or next(_inner_loops(loop), None) for loop in loops):
        yield "loops must not stand in one another"


def _inner_loops(loop: nodes.For) -> Iterator[nodes.For]:
    for part in (*loop.body, *loop.else_):
        if isinstance(part, nodes.For):
            yield part
        yield from part.find_all(nodes.For)
