"""Files a request for a role, which the resource's owner decides."""

from access import arguments, database

wish = arguments("user", "resource", "role", "reason")
with database() as connection:
    number = connection.execute(
        "INSERT INTO requests (user, resource, role, reason) VALUES (?, ?, ?, ?)",
        (wish.user, wish.resource, wish.role, wish.reason),
    ).lastrowid
print(f"request {number} is filed")
