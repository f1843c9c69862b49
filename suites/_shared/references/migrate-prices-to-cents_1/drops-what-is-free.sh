python migrate.py data/warehouse.db
python - <<'PYTHON'
import sqlite3

with sqlite3.connect("data/warehouse.db") as database:
    database.execute("DELETE FROM articles WHERE price_cents = 0")
PYTHON
