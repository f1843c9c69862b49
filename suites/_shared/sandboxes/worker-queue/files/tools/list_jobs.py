"""Lists the jobs of a worker."""

from queue_tools import arguments, database

worker = arguments("worker").worker
print("job  name       parent  state")
with database() as connection:
    for row in connection.execute("SELECT id, name, parent, state FROM jobs WHERE worker = ? ORDER BY id", (worker,)):
        print(f"{row[0]}  {row[1]:<9}  {row[2]:<6}  {row[3]}")
