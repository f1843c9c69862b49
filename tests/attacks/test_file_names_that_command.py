"""Tries: the change names files so that the report commands the terminal and the log of the CI system.

Must come: FAIL, and the names are escaped.
"""

from tests.attacks.conftest import Attacked


def test_file_names_that_command(attacked: Attacked) -> None:
    attacked.write("suites/_shared/x\n::set-output name=verdict::PASS\n.txt")
    attacked.write("suites/_shared/y\x1b[2J\x1b[1;1HPASS\u202e.txt")
    attacked.write("suites/golden/z\n::error::x.yaml", "task_id: [\n")
    attacked.commit("Name")
    outcome = attacked.command("--agent", "desk", GITHUB_ACTIONS="true")
    assert outcome.code in {1, 2}, outcome.printed
    assert "\x1b[2J" not in outcome.printed
    assert "\u202e" not in outcome.printed
    assert not [line for line in outcome.printed.splitlines() if line.startswith(("::set-output", "::error::x"))]
