"""Tries: the change brings `Gates.yaml` and `Suites/`, which a file system may take for the true ones.

Must come: FAIL by the files of the very names.
"""

from tests.attacks.conftest import GATES, TASK, WORDS, Attacked


def test_spellings_of_other_letter_case(attacked: Attacked) -> None:
    attacked.write("GATES.YAML", GATES.replace(", golden_regression, task_failed", ""))
    attacked.write("Suites/golden/a.yaml", TASK.format(name="a", graders=WORDS.format(name="a", expect='matches: "."')))
    attacked.commit("Spell")
    outcome = attacked.gate()
    assert outcome.code == 1, outcome.printed
