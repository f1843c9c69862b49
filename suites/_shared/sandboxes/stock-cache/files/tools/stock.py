"""The tools of the warehouse.

get_stock  how many units of an article there are
reserve    put units aside for a customer

Each prints JSON. Exit code 0: a result. Exit code 1: an error.
"""

import argparse
import json
import os
import sqlite3
import sys
from pathlib import Path

DATABASE = Path(__file__).resolve().parent.parent / "var" / "stock.db"
NOW = "2026-02-17T09:30:00Z"


def get_stock(database, sku, fresh):
    row = database.execute("SELECT * FROM stock WHERE sku = ?", (sku,)).fetchone()
    if row is None:
        return {"error": f"There is no article {sku}."}
    database.execute("INSERT INTO requests (sku, fresh) VALUES (?, ?)", (sku, fresh == "yes"))
    if fresh == "yes":
        return {"sku": sku, "name": row["name"], "units": row["units"], "source": "count", "as_of": NOW}
    return {"sku": sku, "name": row["name"], "units": row["cached_units"], "source": "cache", "as_of": row["cached_at"]}


def reserve(database, sku, units, customer):
    database.execute("INSERT INTO reservations VALUES (?, ?, ?)", (sku, units, customer))
    return {"sku": sku, "reserved": units, "customer": customer}


def parser():
    commands = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    tools = commands.add_subparsers(dest="tool", required=True, metavar="TOOL")
    tool = tools.add_parser("get_stock")
    tool.set_defaults(function=get_stock)
    tool.add_argument("--sku", required=True)
    tool.add_argument("--fresh", choices=["yes", "no"], default="no")
    tool = tools.add_parser("reserve")
    tool.set_defaults(function=reserve)
    tool.add_argument("--sku", required=True)
    tool.add_argument("--units", required=True, type=int)
    tool.add_argument("--customer", required=True)
    return commands


def main():
    # Agents of passgate give the arguments as JSON, commands give them as flags.
    given = json.loads(os.environ.get("PASSGATE_TOOL_ARGUMENTS", "{}"))
    flags = [f"--{name}={value}" for name, value in given.items()]
    options = vars(parser().parse_args(sys.argv[1:] + flags))
    del options["tool"]
    function = options.pop("function")
    database = sqlite3.connect(DATABASE)
    database.row_factory = sqlite3.Row
    answer = function(database, **options)
    database.commit()
    database.close()
    print(json.dumps(answer))
    return int("error" in answer)


if __name__ == "__main__":
    sys.exit(main())
