"""What the tools share."""

import argparse
import json
import os
import sqlite3
import sys
from pathlib import Path


def arguments(*names: str) -> argparse.Namespace:
    """Parse a tool's arguments: each is a required option."""
    parser = argparse.ArgumentParser()
    for name in names:
        parser.add_argument(f"--{name}", required=True)
    # Agents of passgate give the arguments as JSON, commands give them as flags.
    given = json.loads(os.environ.get("PASSGATE_TOOL_ARGUMENTS", "{}"))
    flags = [f"--{name}={value}" for name, value in given.items()]
    return parser.parse_args(sys.argv[1:] + flags)


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
