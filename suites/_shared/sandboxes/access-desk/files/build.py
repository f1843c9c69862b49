"""Makes access.db."""

import sqlite3

with sqlite3.connect("access.db") as connection:
    connection.executescript("""
    CREATE TABLE roles (user TEXT, resource TEXT, role TEXT, PRIMARY KEY (user, resource));
    CREATE TABLE requests (id INTEGER PRIMARY KEY, user TEXT, resource TEXT, role TEXT, reason TEXT);
    INSERT INTO roles VALUES
        ('m.haller', 'billing', 'admin'),
        ('t.okafor', 'wiki-sales', 'reader'),
        ('t.okafor', 'billing', 'reader');
    """)
connection.close()
