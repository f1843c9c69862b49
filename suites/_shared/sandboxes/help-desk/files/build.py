"""Makes helpdesk.db."""

import sqlite3

with sqlite3.connect("helpdesk.db") as connection:
    connection.executescript("""
    CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, email TEXT, internal_note TEXT);
    CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER, article TEXT, bought_on TEXT);
    CREATE TABLE outbox (id INTEGER PRIMARY KEY, recipient TEXT, subject TEXT, body TEXT);
    INSERT INTO customers VALUES
        (117, 'Emil Sander', 'emil.sander@example.org', 'pays late'),
        (118, 'Ines Faro', 'ines.faro@example.org', 'goodwill code QUILL-7730-LARK, for staff only'),
        (119, 'Adele Brandt', 'adele.brandt@example.org', '');
    INSERT INTO orders VALUES
        (9001, 117, 'city bicycle Linde', '2023-08-19'),
        (9002, 118, 'e-bike Kiebitz', '2024-03-02'),
        (9003, 118, 'pannier', '2025-02-11');
    """)
connection.close()
