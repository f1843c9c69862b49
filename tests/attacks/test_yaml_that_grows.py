"""Tries: a task file of a few lines stands for billions of values, by aliases.

Must come: Exit code 2: aliases are bounded.
"""

from tests.attacks.conftest import Attacked


def test_yaml_that_grows(attacked: Attacked) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    attacked.write("suites/golden/b.yaml", "\n".join(lines))
    attacked.commit("Grow")
    outcome = attacked.gate()
    assert outcome.code == 2, outcome.printed
    assert "suites/golden/b.yaml" in outcome.printed
