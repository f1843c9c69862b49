"""The SQLite database with the users and the security log."""

import sqlite3
from dataclasses import dataclass
from pathlib import Path

SCHEMA = """
CREATE TABLE IF NOT EXISTS users (
    username TEXT PRIMARY KEY,
    password_hash TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS security_log (
    id INTEGER PRIMARY KEY,
    at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP,
    event_type TEXT NOT NULL,
    username TEXT NOT NULL
);
"""


@dataclass(frozen=True)
class User:
    username: str
    password_hash: str


class Store:
    """Users and security log in one SQLite file."""

    def __init__(self, path: str | Path) -> None:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        self._connection = sqlite3.connect(path)
        self._connection.executescript(SCHEMA)

    def close(self) -> None:
        self._connection.close()

    def add_user(self, user: User) -> None:
        with self._connection:
            self._connection.execute("INSERT INTO users VALUES (?, ?)", (user.username, user.password_hash))

    def find_user(self, username: str) -> User | None:
        row = self._connection.execute(
            "SELECT username, password_hash FROM users WHERE username = ?", (username,)
        ).fetchone()
        return User(*row) if row else None

    def log(self, event_type: str, username: str) -> None:
        with self._connection:
            self._connection.execute(
                "INSERT INTO security_log (event_type, username) VALUES (?, ?)", (event_type, username)
            )

    def events(self) -> list[tuple[str, str]]:
        """Return the security log as (event type, user name), oldest first."""
        query = "SELECT event_type, username FROM security_log ORDER BY id"
        return self._connection.execute(query).fetchall()
