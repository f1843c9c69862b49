"""Tries: the agent prints commands of GitHub's log, which would set outputs and hide lines.

Must come: FAIL, and no line begins with such a command of the agent's.
"""

from tests.attacks.conftest import Attacked


def test_agent_that_commands_the_ci_log(attacked: Attacked) -> None:
    attacked.agent("printf '\\n::set-output name=x::1\\n::stop-commands::x\\n' >&2; exit 3\n")
    outcome = attacked.command("--agent", "desk", GITHUB_ACTIONS="true")
    assert outcome.code == 1, outcome.printed
    starts = [line.split(" ")[0].split("::")[1] for line in outcome.printed.splitlines() if line.startswith("::")]
    assert set(starts) <= {"error", "warning", "notice"}
