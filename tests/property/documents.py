"""Documents of lists and mappings to draw, and the places in them."""

from typing import Any

from hypothesis import strategies as st

Path = tuple[str | int, ...]


def nested(
    leaves: st.SearchStrategy[Any], keys: st.SearchStrategy[str] | None = None, *, size: int = 3, most: int = 8
) -> st.SearchStrategy[Any]:
    """Leaves, and lists and mappings (with keys of any text) of up to `size` values, with at most so many leaves."""
    keys = st.text() if keys is None else keys
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=size) | st.dictionaries(keys, inner, max_size=size),
        max_leaves=most,
    )


def paths_of(value: Any, path: Path = ()) -> list[Path]:
    """The paths of everything in a document, that of the whole first."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(deeper for key, item in inner for deeper in paths_of(item, (*path, key)))]


def changed(document: Any, path: Path, value: Any) -> Any:
    """A copy of a document with another value at a path."""
    if not path:
        return value
    copy = dict(document) if isinstance(document, dict) else list(document)
    copy[path[0]] = changed(document[path[0]], path[1:], value)
    return copy
