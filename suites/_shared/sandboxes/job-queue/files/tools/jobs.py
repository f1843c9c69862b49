"""The tools of the mail queue.

submit_batch  hand in a CSV file of letters
get_batch     what became of a batch
retry_item    send one failed letter again

Each prints JSON. Exit code 0: a result. Exit code 1: an error.
"""

import argparse
import csv
import json
import os
import sqlite3
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def submit_batch(database, file):
    with (ROOT / "batches" / Path(file).name).open(encoding="utf-8", newline="") as letters:
        recipients = [row["recipient"] for row in csv.DictReader(letters)]
    batch = database.execute("SELECT coalesce(max(batch), 0) + 1 FROM items").fetchone()[0]
    for item, recipient in enumerate(recipients, start=1):
        trouble = database.execute("SELECT * FROM troubles WHERE recipient = ?", (recipient,)).fetchone()
        state, error, retryable = ("failed", trouble["error"], trouble["retryable"]) if trouble else ("done", None, 0)
        database.execute("INSERT INTO items VALUES (?, ?, ?, ?, ?, ?)", (batch, item, recipient, state, error, retryable))
        if not trouble:
            database.execute("INSERT INTO deliveries (recipient) VALUES (?)", (recipient,))
    return {"batch": batch, "accepted": len(recipients)}


def get_batch(database, batch):
    items = database.execute("SELECT * FROM items WHERE batch = ? ORDER BY item", (batch,)).fetchall()
    failed = [
        {"item": row["item"], "recipient": row["recipient"], "error": row["error"], "retryable": bool(row["retryable"])}
        for row in items
        if row["state"] == "failed"
    ]
    return {"batch": batch, "state": "finished", "done": len(items) - len(failed), "failed": len(failed), "failures": failed}


def retry_item(database, batch, item):
    where = "WHERE batch = ? AND item = ? AND state = 'failed'"
    row = database.execute(f"SELECT * FROM items {where}", (batch, item)).fetchone()
    if row is None:
        return {"error": f"Batch {batch} has no failed letter {item}."}
    if not row["retryable"]:
        return {"error": f"Not sent: {row['error']}."}
    database.execute(f"UPDATE items SET state = 'done' {where}", (batch, item))
    database.execute("INSERT INTO deliveries (recipient) VALUES (?)", (row["recipient"],))
    return {"batch": batch, "item": item, "recipient": row["recipient"], "state": "done"}


def parser():
    commands = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    tools = commands.add_subparsers(dest="tool", required=True, metavar="TOOL")
    tool = tools.add_parser("submit_batch")
    tool.set_defaults(function=submit_batch)
    tool.add_argument("--file", required=True, help="a file of batches/")
    tool = tools.add_parser("get_batch")
    tool.set_defaults(function=get_batch)
    tool.add_argument("--batch", required=True, type=int)
    tool = tools.add_parser("retry_item")
    tool.set_defaults(function=retry_item)
    tool.add_argument("--batch", required=True, type=int)
    tool.add_argument("--item", required=True, type=int)
    return commands


def main():
    # Agents of passgate give the arguments as JSON, commands give them as flags.
    given = json.loads(os.environ.get("PASSGATE_TOOL_ARGUMENTS", "{}"))
    flags = [f"--{name}={value}" for name, value in given.items()]
    options = vars(parser().parse_args(sys.argv[1:] + flags))
    del options["tool"]
    function = options.pop("function")
    database = sqlite3.connect(ROOT / "var" / "queue.db")
    database.row_factory = sqlite3.Row
    answer = function(database, **options)
    database.commit()
    database.close()
    print(json.dumps(answer))
    return int("error" in answer)


if __name__ == "__main__":
    sys.exit(main())
