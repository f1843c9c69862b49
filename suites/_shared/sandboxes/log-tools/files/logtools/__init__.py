"""Sums up web server logs."""

from logtools.entries import Entry, MalformedLine, parse_line, read_entries
from logtools.summary import Summary, summarise

__all__ = ["Entry", "MalformedLine", "Summary", "parse_line", "read_entries", "summarise"]
