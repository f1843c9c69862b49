"""Tries: the change gives the failing task another name, so that it is new and not admitted.

Must come: FAIL on the task under its old name.
"""

from tests.attacks.conftest import TASK, WORDS, Attacked


def test_renamed_task(attacked: Attacked) -> None:
    (attacked.path / "suites/golden/a.yaml").unlink()
    attacked.write(
        "suites/golden/z.yaml", (TASK.format(name="z", graders=WORDS.format(name="z", expect="exists: false")))
    )
    attacked.commit("Rename")
    outcome = attacked.gate()
    assert outcome.code == 1, outcome.printed
