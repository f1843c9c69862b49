"""The catalogue of a library."""

from catalog.search import open_catalog, search

__all__ = ["open_catalog", "search"]
