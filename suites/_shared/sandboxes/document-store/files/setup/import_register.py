"""Bring the register into the database of the document store."""

import csv
import sqlite3
from pathlib import Path

Path("var").mkdir(exist_ok=True)
with sqlite3.connect("var/store.db") as database:
    database.execute("CREATE TABLE contracts (contract TEXT PRIMARY KEY, partner TEXT, ends TEXT, yearly_eur INTEGER)")
    database.execute("CREATE TABLE requests (seq INTEGER PRIMARY KEY, tool TEXT, cursor TEXT)")
    with open("setup/register.csv", encoding="utf-8", newline="") as file:
        rows = [tuple(row.values()) for row in csv.DictReader(file)]
    database.executemany("INSERT INTO contracts VALUES (?, ?, ?, ?)", rows)
database.close()
