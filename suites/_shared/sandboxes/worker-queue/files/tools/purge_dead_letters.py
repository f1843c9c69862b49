"""Deletes the dead letters of a queue."""

from queue_tools import arguments, database

queue = arguments("queue").queue
with database() as connection:
    count = connection.execute("DELETE FROM dead_letters WHERE queue = ?", (queue,)).rowcount
print(f"{count} dead letters of {queue} are gone")
