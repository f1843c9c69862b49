"""Tries: the agent writes a verdict of PASS into the folders of all runs.

Must come: FAIL: an isolated agent does not see them.
"""

from tests.attacks.conftest import Attacked


def test_agent_that_forges_a_verdict(isolated: Attacked) -> None:
    isolated.agent(
        f"printf bad > a.txt; cd {isolated.path}/.passgate/runs; for run in *; do echo > $run/verdict.json; done\n"
    )
    outcome = isolated.gate()
    assert outcome.code == 1, outcome.printed
    assert outcome.verdict["decision"] == "FAIL"
