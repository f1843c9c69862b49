"""Tries: an earlier step leaves git's locks behind, so that git can write nothing.

Must come: FAIL: passgate only reads.
"""

from tests.attacks.conftest import Attacked


def test_lock_of_git(attacked: Attacked) -> None:
    attacked.task("a", 'matches: "."')
    attacked.commit("Loosen")
    for name in ("index.lock", "HEAD.lock", "config.lock", "packed-refs.lock"):
        attacked.write(f".git/{name}", "")
    outcome = attacked.gate()
    assert outcome.code == 1, outcome.printed
