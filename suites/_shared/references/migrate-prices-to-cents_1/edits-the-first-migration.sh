set -e
python - <<'PYTHON'
import sqlite3

with sqlite3.connect("data/warehouse.db") as connection:
    connection.executescript("""
        ALTER TABLE articles ADD COLUMN price_cents INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE articles ADD COLUMN currency TEXT NOT NULL DEFAULT 'EUR';
        UPDATE articles SET price_cents = CAST(round(price * 100) AS INTEGER);
        ALTER TABLE articles DROP COLUMN price;
    """)
PYTHON
