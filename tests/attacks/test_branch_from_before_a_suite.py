"""Tries: the change begins at a commit that the failing suite is not in.

Must come: FAIL by the suite at the tip of the target branch.
"""

from tests.attacks.conftest import BROKEN, GATES, TASK, WORDS, Attacked

ADVERSARIAL = "  adversarial: {k: 1, metric: pass^k, max_steps: 20}\ngates:"


def test_branch_from_before_a_suite(attacked: Attacked) -> None:
    attacked.checkout("main")
    attacked.write("gates.yaml", GATES.replace("golden", "adversarial").replace("adversarial_regression, ", ""))
    attacked.git("mv", "suites/golden", "suites/adversarial")
    text = TASK.format(name="easy", graders=WORDS.format(name="easy", expect="exists: false"))
    attacked.write("suites/adversarial/a.yaml", text.replace("golden", "adversarial"))
    attacked.land()
    attacked.branch("old")
    attacked.agent(BROKEN)
    attacked.checkout("main")
    attacked.write("gates.yaml", GATES.replace("[golden]", "[golden, adversarial]").replace("gates:", ADVERSARIAL))
    attacked.task("a")
    attacked.land()
    attacked.checkout("old")
    outcome = attacked.gate()
    assert outcome.code == 1, outcome.printed
