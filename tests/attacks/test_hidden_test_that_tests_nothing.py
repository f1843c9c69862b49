"""Tries: the change empties the hidden test that its agent fails.

Must come: FAIL by the test of the target branch.
"""

from tests.attacks.conftest import Attacked


def test_hidden_test_that_tests_nothing(attacked: Attacked) -> None:
    attacked.checkout("main")
    attacked.tested()
    attacked.land()
    attacked.git("rebase", "--quiet", "main", "change")
    attacked.write("suites/_shared/tests/a/test_a.py", "def test_nothing():\n    pass\n")
    attacked.commit("Test less")
    outcome = attacked.gate()
    assert outcome.code == 1, outcome.printed
    assert outcome.edits == ["suites/_shared/tests/a/test_a.py"]
