"""Forwards a mail as it is."""

from room import arguments, mail, send

forward = arguments("mail", "to")
send("forward", forward.to, mail(forward.mail)[1])
