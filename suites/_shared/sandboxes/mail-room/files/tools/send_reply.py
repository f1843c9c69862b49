"""Replies to the sender of a mail."""

from room import arguments, mail, send

reply = arguments("mail", "body")
send("reply", mail(reply.mail)[0], reply.body)
