"""Write the log of a day, the same every time."""

import random
import sqlite3
from datetime import datetime, timedelta
from pathlib import Path

LINES = 12_000
DEPLOYS = {900: "2026.04.20-1", 4100: "2026.04.20-2", 7350: "2026.04.20-3", 10480: "2026.04.20-4"}
FIRST_MISMATCH = 7612
CALLS = ("GET /slots", "POST /bookings", "GET /bookings", "DELETE /bookings", "GET /prices")

draw = random.Random(20260420)
clock = datetime(2026, 4, 20, 5, 0)
Path("var").mkdir()
with Path("var/booking.log").open("w", encoding="utf-8") as log:
    for number in range(1, LINES + 1):
        clock += timedelta(seconds=draw.choice((3, 4, 5, 6)))
        request = f"r-{48000 + number * 3}"
        if number in DEPLOYS:
            text = f"INFO deploy finished version={DEPLOYS[number]}"
        elif number == FIRST_MISMATCH or (number > FIRST_MISMATCH and draw.random() < 0.01):
            text = f"ERROR {request} POST /bookings ledger mismatch booked=2 paid=1"
        else:
            text = f"INFO {request} {draw.choice(CALLS)} 200 in {draw.randint(4, 180)} ms"
        log.write(f"{clock:%H:%M:%S} {text}\n")
with sqlite3.connect("var/served.db") as database:
    database.execute("CREATE TABLE served (seq INTEGER PRIMARY KEY, tool TEXT, characters INTEGER)")
database.close()
