"""Tries: the agent edits the task that grades it, before it is graded.

Must come: FAIL, and the task is as it was.
"""

from tests.attacks.conftest import Attacked


def test_agent_that_edits_its_grader(isolated: Attacked) -> None:
    isolated.agent(f"printf bad > a.txt; sed -i s/ok/bad/ {isolated.path}/suites/golden/a.yaml; exit 0\n")
    outcome = isolated.gate()
    assert outcome.code == 1, outcome.printed
    assert "equals: ok" in (isolated.path / "suites/golden/a.yaml").read_text()
