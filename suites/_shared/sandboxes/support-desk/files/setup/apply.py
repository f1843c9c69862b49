"""Run an SQL file on the desk's database."""

import sqlite3
import sys
from pathlib import Path

Path("var").mkdir(exist_ok=True)
with sqlite3.connect("var/desk.db") as database:
    database.executescript(Path(sys.argv[1]).read_text(encoding="utf-8"))
database.close()
