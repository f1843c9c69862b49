"""Tries: a sparse checkout leaves the failing task out of the working folder, and git reports no change.

Must come: FAIL on the task of the target branch.
"""

from tests.attacks.conftest import Attacked


def test_sparse_checkout(attacked: Attacked) -> None:
    attacked.checkout("main")
    attacked.task("b")
    attacked.write("agent.sh", "printf ok > a.txt; printf ok > b.txt\n")
    attacked.land()
    attacked.branch("sparse")
    attacked.agent("printf ok > b.txt\n")
    attacked.git("sparse-checkout", "set", "--no-cone", "/*", "!/suites/golden/a.yaml")
    assert not (attacked.path / "suites/golden/a.yaml").exists()
    outcome = attacked.gate()
    assert outcome.code == 1, outcome.printed
    assert "golden/a" in outcome.printed
