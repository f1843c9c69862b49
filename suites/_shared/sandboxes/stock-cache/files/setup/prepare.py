"""Bring about the warehouse's state: what the cache says and what is on the shelves."""

import sqlite3
from pathlib import Path

Path("var").mkdir()
with sqlite3.connect("var/stock.db") as database:
    database.executescript(
        """
        CREATE TABLE stock (sku TEXT PRIMARY KEY, name TEXT, cached_units INTEGER, cached_at TEXT, units INTEGER);
        INSERT INTO stock VALUES
          ('LMP-204', 'desk lamp, brass', 40, '2026-02-08T06:00:00Z', 3),
          ('LMP-207', 'desk lamp, black', 18, '2026-02-08T06:00:00Z', 25);
        CREATE TABLE reservations (sku TEXT, units INTEGER, customer TEXT);
        CREATE TABLE requests (seq INTEGER PRIMARY KEY, sku TEXT, fresh INTEGER);
        """
    )
database.close()
