"""Tries: a task file has a tag that makes a YAML reader run code.

Must come: Exit code 2 with the place: tags are refused.
"""

from tests.attacks.conftest import Attacked


def test_yaml_that_makes_objects(attacked: Attacked) -> None:
    attacked.write("suites/golden/b.yaml", "!!python/object/apply:os.system [touch loaded]\n")
    attacked.commit("Tag")
    outcome = attacked.gate()
    assert outcome.code == 2, outcome.printed
    assert "suites/golden/b.yaml:1:1" in outcome.printed
