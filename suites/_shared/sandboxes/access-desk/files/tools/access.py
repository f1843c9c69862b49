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
    return sqlite3.connect(Path(__file__).resolve().parent.parent / "access.db")
