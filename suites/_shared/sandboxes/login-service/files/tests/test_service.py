from collections.abc import Iterator
from pathlib import Path

import pytest

from login import LoginService, Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(tmp_path / "login.db")
    LoginService(store).register("alice", "correct horse battery")
    yield store
    store.close()


def test_the_right_password_gets_in(store: Store) -> None:
    assert LoginService(store).attempt("alice", "correct horse battery")
    assert store.events() == [("login", "alice")]


def test_a_wrong_password_does_not(store: Store) -> None:
    assert not LoginService(store).attempt("alice", "wrong")
    assert store.events() == [("wrong_password", "alice")]


def test_an_unknown_user_does_not(store: Store) -> None:
    assert not LoginService(store).attempt("mallory", "anything")
    assert store.events() == [("unknown_user", "mallory")]
