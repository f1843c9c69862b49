"""Tries: the change brings a `.env` with variables that lead git to another repository and name programs for it.

Must come: FAIL: passgate takes no such variable from it, and runs no such program.
"""

from tests.attacks.conftest import Attacked


def test_git_variables_in_a_file(attacked: Attacked) -> None:
    program = attacked.write("program.sh", "#!/bin/sh\ntouch was-run\n")
    program.chmod(0o755)
    attacked.write(
        ".env",
        "GIT_DIR=/nowhere\nGIT_WORK_TREE=/tmp\nGIT_CONFIG_COUNT=1\nGIT_CONFIG_KEY_0=core.fsmonitor\n"
        f"GIT_CONFIG_VALUE_0={program}\nGIT_EXTERNAL_DIFF={program}\nGIT_SSH_COMMAND={program}\n",
    )
    attacked.task("a", 'matches: "."')
    attacked.commit("Set")
    outcome = attacked.gate()
    assert outcome.code == 1, outcome.printed
    assert "suites/golden/a.yaml" in outcome.edits
    assert not (attacked.path / "was-run").exists()
