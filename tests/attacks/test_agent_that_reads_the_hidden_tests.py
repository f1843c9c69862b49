"""Tries: the agent looks for the tests and the solution in the suites folder.

Must come: It finds nothing there.
"""

from tests.attacks.conftest import Attacked


def test_agent_that_reads_the_hidden_tests(isolated: Attacked) -> None:
    isolated.agent(
        f"ls -R {isolated.path}/suites > seen.txt 2>&1; grep -q golden seen.txt && printf ok > a.txt; exit 0\n"
    )
    outcome = isolated.gate()
    assert outcome.code == 1, outcome.printed
