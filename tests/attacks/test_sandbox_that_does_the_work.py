"""Tries: the change puts the result into the files that the sandbox begins with.

Must come: FAIL by the sandbox of the target branch.
"""

from tests.attacks.conftest import TASK, WORDS, Attacked


def test_sandbox_that_does_the_work(attacked: Attacked) -> None:
    attacked.checkout("main")
    attacked.write("suites/_shared/sandboxes/box/files/notes.txt", "nothing here\n")
    attacked.write(
        "suites/golden/a.yaml",
        TASK.format(name="a", graders=WORDS.format(name="a", expect="equals: ok")) + "environment: {sandbox: box}\n",
    )
    attacked.land()
    attacked.git("rebase", "--quiet", "main", "change")
    attacked.write("suites/_shared/sandboxes/box/files/a.txt", "ok")
    attacked.agent("true\n")
    outcome = attacked.gate()
    assert outcome.code == 1, outcome.printed
    assert outcome.edits == ["suites/_shared/sandboxes/box/files/a.txt"]
