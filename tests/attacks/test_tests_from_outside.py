"""Tries: a task names hidden tests outside of the suites folder.

Must come: Exit code 2: no path leads out.
"""

from tests.attacks.conftest import Attacked


def test_tests_from_outside(attacked: Attacked) -> None:
    attacked.task("a", graders="  - {type: deterministic_tests, tests: [../../../../etc/passwd]}")
    attacked.commit("Outside")
    outcome = attacked.gate()
    assert outcome.code == 2, outcome.printed
    assert "suites/golden/a.yaml:" in outcome.printed
