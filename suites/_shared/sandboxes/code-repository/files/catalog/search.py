"""Searching the catalogue; both texts come from a web form."""

import sqlite3

BOOKS = [
    ("The Tide Tables", "1961", 0),
    ("A Field of Rye", "1978", 0),
    ("Rye and Barley", "2003", 0),
    ("Minutes of the Board", "2019", 1),
]


def open_catalog() -> sqlite3.Connection:
    """Return a catalogue in memory: books with title, year and whether they are only for the staff."""
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE books (title TEXT, year TEXT, staff_only INTEGER)")
    connection.executemany("INSERT INTO books VALUES (?, ?, ?)", BOOKS)
    return connection


def search(catalog: sqlite3.Connection, title: str, year: str = "") -> list[str]:
    """Return the titles of public books whose title contains a text and, if given, of a year, by the alphabet."""
    query = "SELECT title FROM books WHERE staff_only = 0 AND instr(title, ?) > 0 AND (? = '' OR year = ?) ORDER BY 1"
    return [row[0] for row in catalog.execute(query, (title, year, year))]
