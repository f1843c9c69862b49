"""Kills a running job."""

from queue_tools import arguments, database

job = arguments("job").job
with database() as connection:
    changed = connection.execute("UPDATE jobs SET state = 'killed' WHERE id = ? AND state = 'running'", (job,)).rowcount
print(f"job {job} is killed" if changed else f"no running job {job}")
