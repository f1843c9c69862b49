"""The tools of the support desk.

get_ticket       a ticket with what the customer wrote
list_tickets     the tickets of a customer
close_ticket     mark a ticket as resolved
delete_ticket    delete a ticket for good
get_customer     a customer's account
update_customer  change a customer's e-mail address
list_charges     what was taken from a customer, and what of it was refunded
refund_charge    give a charge back, or a part of it

Each prints JSON. Exit code 0: a result. Exit code 1: an error.
"""

import argparse
import json
import os
import sqlite3
import sys
from pathlib import Path

DATABASE = Path(__file__).resolve().parent.parent / "var" / "desk.db"


class Refused(Exception):
    """An answer that is an error."""


def get_ticket(database, ticket):
    return found(database, "SELECT * FROM tickets WHERE ticket = ?", ticket)


def list_tickets(database, customer):
    query = "SELECT ticket, opened, status, subject FROM tickets WHERE customer = ? ORDER BY ticket"
    return {"customer": customer, "tickets": many(database, query, customer)}


def close_ticket(database, ticket, resolution):
    get_ticket(database, ticket)
    database.execute("UPDATE tickets SET status = 'resolved', resolution = ? WHERE ticket = ?", (resolution, ticket))
    return {"ticket": ticket, "status": "resolved"}


def delete_ticket(database, ticket):
    get_ticket(database, ticket)
    database.execute("DELETE FROM tickets WHERE ticket = ?", (ticket,))
    return {"ticket": ticket, "deleted": True}


def get_customer(database, customer):
    return found(database, "SELECT * FROM customers WHERE customer = ? OR name = ?", customer, customer)


def update_customer(database, customer, email):
    get_customer(database, customer)
    database.execute("UPDATE customers SET email = ? WHERE customer = ?", (email, customer))
    return {"customer": customer, "email": email}


def list_charges(database, customer):
    query = """
        SELECT charge, day, charges.cents, what, coalesce(sum(refunds.cents), 0) AS refunded_cents
        FROM charges LEFT JOIN refunds USING (charge) WHERE customer = ? GROUP BY charge ORDER BY day
    """
    return {"customer": customer, "charges": many(database, query, customer)}


def refund_charge(database, charge, cents, reason):
    taken = found(database, "SELECT cents FROM charges WHERE charge = ?", charge)["cents"]
    given = found(database, "SELECT coalesce(sum(cents), 0) AS cents FROM refunds WHERE charge = ?", charge)["cents"]
    if not 0 < cents <= taken - given:
        raise Refused(f"{taken - given} cents of {charge} can still be refunded.")
    database.execute("INSERT INTO refunds (charge, cents, reason) VALUES (?, ?, ?)", (charge, cents, reason))
    return {"charge": charge, "refunded_cents": cents}


def found(database, query, *values):
    row = database.execute(query, values).fetchone()
    if row is None:
        raise Refused(f"There is no {values[0]}.")
    return dict(row)


def many(database, query, *values):
    return [dict(row) for row in database.execute(query, values)]


ARGUMENTS = {
    get_ticket: {"ticket": int},
    list_tickets: {"customer": str},
    close_ticket: {"ticket": int, "resolution": str},
    delete_ticket: {"ticket": int},
    get_customer: {"customer": str},
    update_customer: {"customer": str, "email": str},
    list_charges: {"customer": str},
    refund_charge: {"charge": str, "cents": int, "reason": str},
}


def parser():
    commands = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    tools = commands.add_subparsers(dest="tool", required=True, metavar="TOOL")
    for function, arguments in ARGUMENTS.items():
        tool = tools.add_parser(function.__name__)
        tool.set_defaults(function=function)
        for name, kind in arguments.items():
            tool.add_argument(f"--{name}", type=kind, required=True)
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
    try:
        answer, code = function(database, **options), 0
    except Refused as refused:
        answer, code = {"error": str(refused)}, 1
    database.commit()
    database.close()
    print(json.dumps(answer))
    return code


if __name__ == "__main__":
    sys.exit(main())
