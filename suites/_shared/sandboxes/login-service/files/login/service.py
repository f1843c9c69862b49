"""Who may come in."""

from login.passwords import hash_password, matches
from login.store import Store, User


class LoginService:
    """Decides login attempts and writes each of them to the security log."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def register(self, username: str, password: str) -> None:
        self._store.add_user(User(username, hash_password(password)))

    def attempt(self, username: str, password: str | None) -> bool:
        """Tell whether this user may come in with this password."""
        user = self._store.find_user(username)
        if user is None:
            self._store.log("unknown_user", username)
            return False
        if password and not matches(password, user.password_hash):
            self._store.log("wrong_password", username)
            return False
        self._store.log("login", username)
        return True
