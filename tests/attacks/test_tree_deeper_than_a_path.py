"""Tries: the agent leaves folders deeper than any path can name.

Must come: FAIL, and no error; nothing is left behind.
"""

from tests.attacks.conftest import Attacked


def test_tree_deeper_than_a_path(attacked: Attacked) -> None:
    attacked.agent("i=0; while [ $i -lt 2200 ]; do mkdir d && cd d || exit 0; i=$((i+1)); done\n")
    outcome = attacked.gate()
    assert outcome.code == 1, outcome.printed
