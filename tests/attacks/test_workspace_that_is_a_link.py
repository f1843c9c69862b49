"""Tries: the agent replaces its workspace by a link to a folder that it has filled as it should be.

Must come: FAIL: links out of the workspace are not followed.
"""

from tests.attacks.conftest import Attacked


def test_workspace_that_is_a_link(attacked: Attacked) -> None:
    attacked.agent(
        'here="$PWD"; mkdir -p "$HOME/other"; printf ok > "$HOME/other/a.txt"; cd /\n'
        'mv "$here" "$here.old" && ln -s "$HOME/other" "$here"; rm -rf "$here"; ln -s "$HOME/other" "$here"; exit 0\n'
    )
    outcome = attacked.gate()
    assert outcome.code == 1, outcome.printed
