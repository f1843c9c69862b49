"""Tries: the change replaces the suites folder by a link to one with easy graders.

Must come: FAIL by the folder of the target branch.
"""

from tests.attacks.conftest import TASK, WORDS, Attacked


def test_suites_that_are_a_link(attacked: Attacked) -> None:
    attacked.git("mv", "suites", "easy")
    attacked.write("easy/golden/a.yaml", TASK.format(name="a", graders=WORDS.format(name="a", expect='matches: "."')))
    (attacked.path / "suites").symlink_to("easy")
    attacked.commit("Link")
    outcome = attacked.gate()
    assert outcome.code == 1, outcome.printed
