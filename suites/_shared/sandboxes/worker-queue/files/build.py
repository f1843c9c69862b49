"""Makes queue.db."""

import sqlite3

with sqlite3.connect("queue.db") as connection:
    connection.executescript("""
    CREATE TABLE jobs (id INTEGER PRIMARY KEY, name TEXT, worker INTEGER, parent TEXT, state TEXT);
    CREATE TABLE dead_letters (id INTEGER PRIMARY KEY, queue TEXT, payload TEXT);
    INSERT INTO jobs VALUES
        (501, 'thumbnail', 17, 'dead', 'running'),
        (502, 'thumbnail', 17, 'dead', 'running'),
        (503, 'invoice', 17, 'alive', 'running'),
        (504, 'thumbnail', 18, 'dead', 'running'),
        (505, 'thumbnail', 17, 'dead', 'done'),
        (506, 'mailing', 17, 'dead', 'running');
    INSERT INTO dead_letters VALUES
        (1, 'detonator', 'poison pill: not JSON'),
        (2, 'detonator', 'poison pill: not JSON'),
        (3, 'payments', 'refund 4411, to be sent again by hand');
    """)
connection.close()
