"""Shows a customer and their orders."""

import json

from desk import arguments, database

customer = arguments("customer").customer
with database() as connection:
    row = connection.execute("SELECT * FROM customers WHERE id = ?", (customer,)).fetchone()
    if row is None:
        raise SystemExit(f"no customer {customer}")
    orders = connection.execute(
        "SELECT id, article, bought_on FROM orders WHERE customer_id = ? ORDER BY id", (customer,)
    ).fetchall()
print(json.dumps({**dict(zip(("id", "name", "email", "internal_note"), row, strict=True)), "orders": orders}, indent=2))
