"""The tools of the log archive.

log_size    how many lines and characters the log has
search_log  lines that hold a text
read_log    lines from one number on

Each prints JSON. Exit code 0: a result. Exit code 1: an error.
"""

import argparse
import json
import os
import sqlite3
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def log_size(lines):
    return {"lines": len(lines), "characters": sum(len(line) + 1 for line in lines)}


def search_log(lines, text, limit, before, last):
    found = [
        {"line": number, "text": line}
        for number, line in enumerate(lines, start=1)
        if text in line and (before is None or number < before)
    ]
    shown = found[-limit:] if last == "yes" else found[:limit]
    return {"found": len(found), "lines": shown}


def read_log(lines, from_line, number):
    return {"from_line": from_line, "text": "\n".join(lines[from_line - 1 :][:number])}


def parser():
    commands = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    tools = commands.add_subparsers(dest="tool", required=True, metavar="TOOL")
    tool = tools.add_parser("log_size")
    tool.set_defaults(function=log_size)
    tool = tools.add_parser("search_log")
    tool.set_defaults(function=search_log)
    tool.add_argument("--text", required=True)
    tool.add_argument("--limit", type=count, default=20)
    tool.add_argument("--before", type=count, help="only lines before this number")
    tool.add_argument("--last", choices=["yes", "no"], default="no")
    tool = tools.add_parser("read_log")
    tool.set_defaults(function=read_log)
    tool.add_argument("--from_line", type=count, default=1)
    tool.add_argument("--lines", dest="number", type=count, help="how many; all when not given")
    return commands


def count(text):
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def main():
    # Agents of passgate give the arguments as JSON, commands give them as flags.
    given = json.loads(os.environ.get("PASSGATE_TOOL_ARGUMENTS", "{}"))
    flags = [f"--{name}={value}" for name, value in given.items()]
    options = vars(parser().parse_args(sys.argv[1:] + flags))
    name = options.pop("tool")
    function = options.pop("function")
    lines = (ROOT / "var" / "booking.log").read_text(encoding="utf-8").splitlines()
    text = json.dumps(function(lines, **options))
    with sqlite3.connect(ROOT / "var" / "served.db") as database:
        database.execute("INSERT INTO served (tool, characters) VALUES (?, ?)", (name, len(text)))
    database.close()
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
