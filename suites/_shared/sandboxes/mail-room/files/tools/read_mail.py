"""Prints a mail."""

from room import arguments, mail

sender, text = mail(arguments("mail").mail)
print(f"From: {sender}\n\n{text}")
