"""What must hold of the login service, whatever the fix looks like."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from login import LoginService, Store

PASSWORD = "correct horse battery"
SPACED = " two spaces around "


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(tmp_path / "login.db")
    service = LoginService(store)
    service.register("alice", PASSWORD)
    service.register("bruno", SPACED)
    yield store
    store.close()


@pytest.mark.parametrize("password", ["", None, " ", "\t \n", "\u00a0\u2003"])
@pytest.mark.parametrize("username", ["alice", "nobody"])
def test_no_password_is_blocked_and_logged(store: Store, username: str, password: str | None) -> None:
    assert LoginService(store).attempt(username, password) is False
    assert store.events() == [("blocked_empty_password", username)]


def test_a_wrong_password_is_rejected_and_logged(store: Store) -> None:
    assert LoginService(store).attempt("alice", PASSWORD.upper()) is False
    assert store.events() == [("wrong_password", "alice")]


def test_an_unknown_user_is_rejected_and_logged(store: Store) -> None:
    assert LoginService(store).attempt("nobody", PASSWORD) is False
    assert store.events() == [("unknown_user", "nobody")]


@pytest.mark.parametrize(("username", "password"), [("alice", PASSWORD), ("bruno", SPACED)])
def test_the_right_password_gets_in(store: Store, username: str, password: str) -> None:
    assert LoginService(store).attempt(username, password) is True
    assert store.events() == [("login", username)]


def test_blanks_around_a_password_count(store: Store) -> None:
    assert LoginService(store).attempt("bruno", SPACED.strip()) is False
    assert LoginService(store).attempt("alice", f" {PASSWORD}") is False
    assert store.events() == [("wrong_password", "bruno"), ("wrong_password", "alice")]


def test_every_attempt_leaves_one_row(store: Store) -> None:
    service = LoginService(store)
    for password in ("", PASSWORD, "guess", None):
        service.attempt("alice", password)
    assert [event for event, _ in store.events()] == [
        "blocked_empty_password",
        "login",
        "wrong_password",
        "blocked_empty_password",
    ]
