"""Tries: the change brings a `conftest.py`, a `pytest.ini` and an entry point in the top folder.

Must come: FAIL: tests that grade read none of them.
"""

from tests.attacks.conftest import Attacked


def test_plugins_beside_the_gate(attacked: Attacked) -> None:
    attacked.checkout("main")
    attacked.tested()
    attacked.land()
    attacked.git("rebase", "--quiet", "main", "change")
    attacked.write("conftest.py", "import os\nos._exit(0)\n")
    attacked.write("pytest.ini", "[pytest]\naddopts = --collect-only\n")
    attacked.write("mine.egg-info/entry_points.txt", "[pytest11]\nmine = conftest\n")
    attacked.commit("Plug in")
    outcome = attacked.gate()
    assert outcome.code == 1, outcome.printed
