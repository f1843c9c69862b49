"""The tools of the document store.

list_contracts  contracts of the register that end before a day, by number, ten at a time

Prints JSON. Exit code 0: a result. Exit code 1: an error.
"""

import argparse
import json
import os
import sqlite3
import sys
from datetime import date
from pathlib import Path

DATABASE = Path(__file__).resolve().parent.parent / "var" / "store.db"
PAGE = 10


def list_contracts(database, ends_before, cursor):
    query = "SELECT * FROM contracts WHERE ends < ? AND contract > ? ORDER BY contract LIMIT ?"
    found = [dict(row) for row in database.execute(query, (ends_before.isoformat(), cursor or "", PAGE + 1))]
    database.execute("INSERT INTO requests (tool, cursor) VALUES ('list_contracts', ?)", (cursor,))
    more = {"next_cursor": found[PAGE - 1]["contract"]} if len(found) > PAGE else {}
    return {"contracts": found[:PAGE], **more}


def parser():
    commands = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    tools = commands.add_subparsers(dest="tool", required=True, metavar="TOOL")
    tool = tools.add_parser("list_contracts")
    tool.add_argument("--ends_before", type=date.fromisoformat, required=True, help="a day, as in 2026-12-31")
    tool.add_argument("--cursor", help="the next_cursor of the answer before")
    return commands


def main():
    # Agents of passgate give the arguments as JSON, commands give them as flags.
    given = json.loads(os.environ.get("PASSGATE_TOOL_ARGUMENTS", "{}"))
    flags = [f"--{name}={value}" for name, value in given.items()]
    options = parser().parse_args(sys.argv[1:] + flags)
    database = sqlite3.connect(DATABASE)
    database.row_factory = sqlite3.Row
    answer = list_contracts(database, options.ends_before, options.cursor)
    database.commit()
    database.close()
    print(json.dumps(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main())
