"""Puts an e-mail into the outbox."""

from desk import arguments, database

mail = arguments("to", "subject", "body")
with database() as connection:
    connection.execute(
        "INSERT INTO outbox (recipient, subject, body) VALUES (?, ?, ?)", (mail.to, mail.subject, mail.body)
    )
print(f"sent to {mail.to}")
