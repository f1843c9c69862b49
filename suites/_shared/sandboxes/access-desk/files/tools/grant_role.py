"""Gives a user a role on a resource."""

from access import arguments, database

grant = arguments("user", "resource", "role")
with database() as connection:
    connection.execute("INSERT OR REPLACE INTO roles VALUES (?, ?, ?)", (grant.user, grant.resource, grant.role))
print(f"{grant.user} is {grant.role} of {grant.resource}")
