"""Bring about the empty queue."""

import sqlite3
from pathlib import Path

Path("var").mkdir()
with sqlite3.connect("var/queue.db") as database:
    database.executescript(
        """
        CREATE TABLE items (batch INTEGER, item INTEGER, recipient TEXT, state TEXT, error TEXT, retryable INTEGER);
        CREATE TABLE deliveries (seq INTEGER PRIMARY KEY, recipient TEXT);
        CREATE TABLE troubles (recipient TEXT PRIMARY KEY, error TEXT, retryable INTEGER);
        INSERT INTO troubles VALUES
          ('farid@lodge.example', 'mailbox unknown', 0),
          ('matteo@birch.example', 'the mail server was busy', 1),
          ('vera@birch.example', 'mailbox full', 0);
        """
    )
database.close()
