"""Lists the roles of a user."""

from access import arguments, database

user = arguments("user").user
with database() as connection:
    for resource, role in connection.execute("SELECT resource, role FROM roles WHERE user = ? ORDER BY 1", (user,)):
        print(f"{resource}: {role}")
