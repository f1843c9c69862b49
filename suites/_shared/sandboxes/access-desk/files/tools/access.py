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
    return sqlite3.connect(Path(__file__).resolve().parent.parent / "access.db")
