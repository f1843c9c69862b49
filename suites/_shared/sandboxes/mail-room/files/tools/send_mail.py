"""Sends a new mail."""

from room import arguments, send

new = arguments("to", "body")
send("mail", new.to, new.body)
