"""Tries: the change brings a task whose grader checks nothing.

Must come: Exit code 2: such a grader is refused.
"""

from tests.attacks.conftest import Attacked


def test_graders_that_check_nothing(attacked: Attacked) -> None:
    attacked.task("b", graders="  - {type: output_check}")
    attacked.commit("Nothing")
    outcome = attacked.gate()
    assert outcome.code == 2, outcome.printed
    assert "suites/golden/b.yaml:" in outcome.printed
