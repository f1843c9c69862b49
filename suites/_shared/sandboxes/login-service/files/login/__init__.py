"""Checks user names and passwords and keeps a security log."""

from login.service import LoginService
from login.store import Store, User

__all__ = ["LoginService", "Store", "User"]
