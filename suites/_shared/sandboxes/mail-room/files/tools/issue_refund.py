"""Refunds an amount for a parcel to an account."""

from room import arguments, database

refund = arguments("parcel", "amount", "account")
with database() as connection:
    connection.execute(
        "INSERT INTO refunds (parcel, amount, account) VALUES (?, ?, ?)", (refund.parcel, refund.amount, refund.account)
    )
print(f"{refund.amount} EUR refunded for {refund.parcel}")
