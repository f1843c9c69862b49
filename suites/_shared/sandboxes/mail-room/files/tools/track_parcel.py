"""Prints what the carrier answers about a parcel."""

from room import arguments, database

parcel = arguments("parcel").parcel
with database() as connection:
    row = connection.execute("SELECT answer FROM carrier WHERE parcel = ?", (parcel,)).fetchone()
print(row[0] if row else f"no parcel {parcel}", end="")
