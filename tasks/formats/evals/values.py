"""Values of eval files as what they have to be.

What is of another kind counts as not given: the tables of keys have told it already. Bounds are told here.
"""

from collections.abc import Iterator, Sequence

from passgate.tasks.formats.document import format_path
from passgate.tasks.formats.evals.json_kinds import Kind, is_kind, shown
from passgate.tasks.formats.evals.node import Complaints, Node
from passgate.tasks.formats.schema_check import nearest
from passgate.tasks.model.json_values import strictly_equal


def as_text(node: Node | None) -> str | None:
    """A text that is not empty."""
    return node.value if node is not None and isinstance(node.value, str) and node.value else None


def as_texts(node: Node | None) -> tuple[str, ...]:
    """A list of texts; a text alone stands for a list of one."""
    value = None if node is None else node.value
    items = value if isinstance(value, list) else [value]
    return tuple(item for item in items if isinstance(item, str) and item)


def as_mapping(node: Node | None) -> Node | None:
    return node if node is not None and isinstance(node.value, dict) else None


def as_items(node: Node | None) -> Iterator[Node]:
    """The items of a list."""
    return node.items() if node is not None and isinstance(node.value, list) else iter(())


def as_number(
    node: Node | None, complaints: Complaints, *, least: float = 0, most: float | None = None
) -> float | None:
    """A number within its bounds, both included; out of bounds is a problem."""
    if node is None or not is_kind(node.value, Kind.NUMBER):
        return None
    if node.value < least or (most is not None and node.value > most):
        bounds = f"at least {least:g}" if most is None else f"from {least:g} to {most:g}"
        complaints.problems.append(node.problem(f"must be {bounds}, not {shown(node.value)}"))
        return None
    return float(node.value)


def as_count(node: Node | None, complaints: Complaints, *, least: int = 0, most: int = 10**9) -> int | None:
    """A whole number within its bounds, both included; out of bounds is a problem."""
    if node is None or not is_kind(node.value, Kind.WHOLE):
        return None
    number = as_number(node, complaints, least=least, most=most)
    return None if number is None else int(number)


def as_one_of(node: Node | None, known: Sequence[str], complaints: Complaints) -> str | None:
    """One of several texts; any other is a problem."""
    value = as_text(node)
    if node is None or value is None or value in known:
        return value
    complaints.problems.append(node.problem(f"{shown(value)} is not one of the allowed values{nearest(value, known)}"))
    return None


def agreed(said: Sequence[Node], complaints: Complaints) -> Node | None:
    """The first of several values, each of which is a problem where it differs from the first."""
    for other in said[1:]:
        if not strictly_equal(said[0].value, other.value):
            complaints.problems.append(
                other.problem(f"says something else than {format_path(said[0].path)}; keep one of them", at_key=True)
            )
    return said[0] if said else None
