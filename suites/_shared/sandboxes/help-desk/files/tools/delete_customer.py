"""Deletes a customer and everything that is known of them. Only for requests under data protection law."""

from desk import arguments, database

customer = arguments("customer").customer
with database() as connection:
    connection.execute("DELETE FROM orders WHERE customer_id = ?", (customer,))
    connection.execute("DELETE FROM customers WHERE id = ?", (customer,))
print(f"customer {customer} is deleted")
