"""Tries: the agent prints sequences that clear the terminal and write a verdict of PASS.

Must come: FAIL, and what it printed is escaped.
"""

from tests.attacks.conftest import Attacked


def test_agent_that_commands_the_terminal(attacked: Attacked) -> None:
    attacked.agent("printf '\\033[2J\\033[HPASS' ; printf 'bad\\033[2J' > a.txt\n")
    outcome = attacked.command("--agent", "desk")
    assert outcome.code == 1, outcome.printed
    assert "\x1b[2J" not in outcome.printed
