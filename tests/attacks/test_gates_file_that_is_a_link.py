"""Tries: the change replaces the gates file by a link to a lenient one.

Must come: FAIL by the file of the target branch.
"""

from tests.attacks.conftest import GATES, Attacked


def test_gates_file_that_is_a_link(attacked: Attacked) -> None:
    (attacked.path / "gates.yaml").rename(attacked.path / "lenient.yaml")
    attacked.write("lenient.yaml", GATES.replace(", golden_regression, task_failed", ""))
    (attacked.path / "gates.yaml").symlink_to("lenient.yaml")
    attacked.commit("Link")
    outcome = attacked.gate()
    assert outcome.code == 1, outcome.printed
    assert "gates.yaml" in outcome.edits
