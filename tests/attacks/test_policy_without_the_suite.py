"""Tries: the change takes the suite out of the gate and puts an easy one of its own in.

Must come: FAIL on the suite of the target branch.
"""

from tests.attacks.conftest import GATES, TASK, WORDS, Attacked

ADVERSARIAL = "  adversarial: {k: 1, metric: pass^k, max_steps: 20}\ngates:"


def test_policy_without_the_suite(attacked: Attacked) -> None:
    attacked.write("gates.yaml", GATES.replace("[golden]", "[adversarial]").replace("gates:", ADVERSARIAL))
    text = TASK.format(name="easy", graders=WORDS.format(name="easy", expect="exists: false"))
    attacked.write("suites/adversarial/easy.yaml", text.replace("golden", "adversarial"))
    attacked.commit("Another suite")
    outcome = attacked.gate()
    assert outcome.code == 1, outcome.printed
