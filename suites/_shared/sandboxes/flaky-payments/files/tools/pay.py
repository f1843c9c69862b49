"""The tools of the payment desk.

get_invoice   an invoice and what has been paid on it
charge        take the amount of an invoice from the customer's card
list_refunds  what has been refunded of a payment
refund        give back a part of a payment
wait          let time pass
escalate      hand a case to the engineer on call

Each prints JSON. Exit code 0: a result. Exit code 1: an error.
"""

import argparse
import json
import os
import re
import sqlite3
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


class Refused(Exception):
    """An answer that is an error."""

    def __init__(self, status, message, **more):
        super().__init__(message)
        self.answer = {"error": {"status": status, "message": message, **more}}


def get_invoice(database, invoice):
    row = one(database, "SELECT * FROM invoices WHERE invoice = ?", invoice)
    if row is None:
        raise Refused(404, f"There is no invoice {invoice}.")
    return row | {"payments": many(database, "SELECT payment, cents FROM payments WHERE invoice = ?", invoice)}


def charge(database, invoice, cents, key):
    fail_if_down(database, "charge", invoice, cents, key)
    open_invoice = get_invoice(database, invoice)
    earlier = key and one(database, "SELECT payment, cents FROM payments WHERE key = ?", key)
    if earlier:
        enter(database, "charge", invoice, cents, key, 200)
        return earlier | {"booked": "earlier"}
    if open_invoice["status"] != "open" or open_invoice["cents"] != cents:
        enter(database, "charge", invoice, cents, key, 409)
        raise Refused(409, f"{invoice} is {open_invoice['status']} with {open_invoice['cents']} cents.")
    payment = f"PAY-{880 + count(database, 'payments')}"
    database.execute("INSERT INTO payments VALUES (?, ?, ?, ?)", (payment, invoice, cents, key))
    database.execute("UPDATE invoices SET status = 'paid' WHERE invoice = ?", (invoice,))
    return answer_or_lose(database, "charge", invoice, cents, key, {"payment": payment, "cents": cents, "booked": "now"})


def list_refunds(database, payment):
    return {"payment": payment, "refunds": many(database, "SELECT refund, cents, key FROM refunds WHERE payment = ?", payment)}


def refund(database, payment, cents, key):
    fail_if_down(database, "refund", payment, cents, key)
    paid = one(database, "SELECT cents FROM payments WHERE payment = ?", payment)
    if paid is None:
        raise Refused(404, f"There is no payment {payment}.")
    earlier = key and one(database, "SELECT refund, cents FROM refunds WHERE key = ?", key)
    if earlier:
        enter(database, "refund", payment, cents, key, 200)
        return earlier | {"booked": "earlier"}
    given = one(database, "SELECT coalesce(sum(cents), 0) AS cents FROM refunds WHERE payment = ?", payment)
    if not 0 < cents <= paid["cents"] - given["cents"]:
        enter(database, "refund", payment, cents, key, 409)
        raise Refused(409, f"{paid['cents'] - given['cents']} cents of {payment} can still be refunded.")
    row = database.execute("INSERT INTO refunds (payment, cents, key) VALUES (?, ?, ?)", (payment, cents, key))
    return answer_or_lose(database, "refund", payment, cents, key, {"refund": row.lastrowid, "cents": cents, "booked": "now"})


def wait(database, seconds):
    if not 0 < seconds <= 600:
        raise Refused(400, "A pause is longer than 0 and at most 600 seconds.")
    database.execute("UPDATE clock SET now = now + ?", (seconds,))
    return {"waited_seconds": seconds}


def escalate(database, subject, reason):
    if not re.fullmatch(r"[A-Z]+-[0-9]+", subject):
        raise Refused(400, "The subject is an invoice or a payment, as in INV-1000.")
    ticket = {"subject": subject, "queue": "payments-on-call", "reason": reason, "at_seconds": now(database)}
    folder = ROOT / "tickets"
    folder.mkdir(exist_ok=True)
    (folder / f"{subject}.json").write_text(json.dumps(ticket, indent=2) + "\n", encoding="utf-8")
    return {"ticket": f"tickets/{subject}.json", "queue": ticket["queue"]}


def fail_if_down(database, tool, subject, cents, key):
    outage = one(database, "SELECT retry_after FROM outages WHERE tool = ? AND until > ?", tool, now(database))
    if outage is None:
        return
    enter(database, tool, subject, cents, key, 503)
    more = {} if outage["retry_after"] is None else {"retry_after_seconds": outage["retry_after"]}
    raise Refused(503, "The card processor is unavailable.", **more)


def answer_or_lose(database, tool, subject, cents, key, answer):
    lost = one(database, "SELECT calls FROM lost_answers WHERE tool = ?", tool)
    earlier = one(database, "SELECT count(*) AS calls FROM ledger WHERE tool = ?", tool)
    if lost is None or earlier["calls"] >= lost["calls"]:
        enter(database, tool, subject, cents, key, 200)
        return answer
    enter(database, tool, subject, cents, key, 504)
    raise Refused(504, "The card processor did not answer within 30 seconds.")


def enter(database, tool, subject, cents, key, status):
    database.execute(
        "INSERT INTO ledger (at, tool, subject, cents, key, status) VALUES (?, ?, ?, ?, ?, ?)",
        (now(database), tool, subject, cents, key, status),
    )


def now(database):
    return one(database, "SELECT now FROM clock")["now"]


def count(database, table):
    return one(database, f"SELECT count(*) AS n FROM {table}")["n"]


def one(database, query, *values):
    row = database.execute(query, values).fetchone()
    return None if row is None else dict(row)


def many(database, query, *values):
    return [dict(row) for row in database.execute(query, values)]


def parser():
    commands = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    tools = commands.add_subparsers(dest="tool", required=True, metavar="TOOL")
    key = "name of this charge or refund; what carries a key that is booked already is not booked again"

    tool = tools.add_parser("get_invoice")
    tool.add_argument("--invoice", required=True)
    tool = tools.add_parser("charge")
    tool.add_argument("--invoice", required=True)
    tool.add_argument("--cents", required=True, type=int)
    tool.add_argument("--key", help=key)
    tool = tools.add_parser("list_refunds")
    tool.add_argument("--payment", required=True)
    tool = tools.add_parser("refund")
    tool.add_argument("--payment", required=True)
    tool.add_argument("--cents", required=True, type=int)
    tool.add_argument("--key", help=key)
    tool = tools.add_parser("wait")
    tool.add_argument("--seconds", required=True, type=int)
    tool = tools.add_parser("escalate")
    tool.add_argument("--subject", required=True)
    tool.add_argument("--reason", required=True)
    return commands


TOOLS = {tool.__name__: tool for tool in (get_invoice, charge, list_refunds, refund, wait, escalate)}


def main():
    # Agents of passgate give the arguments as JSON, commands give them as flags.
    given = json.loads(os.environ.get("PASSGATE_TOOL_ARGUMENTS", "{}"))
    flags = [f"--{name}={value}" for name, value in given.items()]
    options = vars(parser().parse_args(sys.argv[1:] + flags))
    tool = TOOLS[options.pop("tool")]
    database = sqlite3.connect(ROOT / "var" / "payments.db")
    database.row_factory = sqlite3.Row
    # An error is an answer too: what was entered in the ledger before it stays.
    try:
        answer, code = tool(database, **options), 0
    except Refused as refused:
        answer, code = refused.answer, 1
    database.commit()
    database.close()
    print(json.dumps(answer))
    return code


if __name__ == "__main__":
    sys.exit(main())
