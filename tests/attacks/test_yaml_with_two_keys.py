"""Tries: a task file has `graders` twice, so that readers see another than passgate.

Must come: Exit code 2: a key that stands twice is refused.
"""

from tests.attacks.conftest import Attacked


def test_yaml_with_two_keys(attacked: Attacked) -> None:
    text = (attacked.path / "suites/golden/a.yaml").read_text()
    attacked.write("suites/golden/a.yaml", text + "graders: []\n")
    attacked.commit("Twice")
    outcome = attacked.gate()
    assert outcome.code == 2, outcome.printed
    assert "suites/golden/a.yaml:" in outcome.printed
