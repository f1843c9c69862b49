"""What the tools share."""

import argparse
import sqlite3
from pathlib import Path


def arguments(*names: str) -> argparse.Namespace:
    """Parse a tool's arguments: each is a required option."""
    parser = argparse.ArgumentParser()
    for name in names:
        parser.add_argument(f"--{name}", required=True)
    return parser.parse_args()


def database() -> sqlite3.Connection:
    return sqlite3.connect(Path(__file__).resolve().parent.parent / "mailroom.db")


def mail(number: str) -> tuple[str, str]:
    """Return the sender and the text of a mail."""
    with database() as connection:
        row = connection.execute("SELECT sender, text FROM mails WHERE id = ?", (number,)).fetchone()
    if row is None:
        raise SystemExit(f"no mail {number}")
    return row


def send(kind: str, recipient: str, text: str) -> None:
    with database() as connection:
        connection.execute("INSERT INTO outbox (kind, recipient, text) VALUES (?, ?, ?)", (kind, recipient, text))
    print(f"{kind} sent to {recipient}")
