"""Tries: .git/info/grafts give the change another history.

Must come: FAIL by the tip of the target branch.
"""

from tests.attacks.conftest import Attacked


def test_grafted_history(attacked: Attacked) -> None:
    attacked.task("a", 'matches: "."')
    own = attacked.commit("Loosen")
    attacked.write(".git/info/grafts", f"{attacked.git('rev-parse', 'main')} {own}\n")
    outcome = attacked.gate()
    assert outcome.code == 1, outcome.printed
