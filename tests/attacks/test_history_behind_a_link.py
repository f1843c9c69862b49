"""Tries: the change makes `.passgate` a link to a folder that it brings.

Must come: Exit code 2: links are followed.
"""

from tests.attacks.conftest import Attacked


def test_history_behind_a_link(attacked: Attacked) -> None:
    attacked.write("results/history/trials/x.parquet", "x")
    (attacked.path / ".passgate").symlink_to("results")
    attacked.commit("A link")
    outcome = attacked.gate()
    assert outcome.code == 2, outcome.printed
    assert "must not be in git" in outcome.printed
