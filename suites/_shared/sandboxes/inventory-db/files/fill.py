"""Fills a migrated database: `python fill.py DATABASE`."""

import sqlite3
import sys

ARTICLES = [
    (3, "HC-16", "hose clamp 16 mm", 0.57),
    (7, "GH-25", "garden hose 25 m", 34.9),
    (8, "SP-02", "spade", 19.99),
    (12, "BK-10", "bucket 10 l", 4.35),
    (21, "TP-04", "tap", 1.15),
    (40, "FR-00", "seed catalogue", 0.0),
]
MOVES = [(article[0], f"2025-0{month}-14", month * 3 - 8) for month in range(1, 7) for article in ARTICLES]

with sqlite3.connect(sys.argv[1]) as connection:
    connection.executemany("INSERT INTO articles VALUES (?, ?, ?, ?)", ARTICLES)
    connection.executemany("INSERT INTO stock_moves (article_id, moved_on, pieces) VALUES (?, ?, ?)", MOVES)
connection.close()
