"""Tries: git's configuration names programs: hooks, a file system monitor, a diff, a pager.

Must come: FAIL, and none of them was run.
"""

from tests.attacks.conftest import Attacked


def test_programs_in_the_git_configuration(attacked: Attacked) -> None:
    program = attacked.write("program.sh", "#!/bin/sh\ntouch was-run\n")
    program.chmod(0o755)
    attacked.task("a", 'matches: "."')
    attacked.commit("Loosen")
    for name in ("core.fsmonitor", "diff.external", "core.pager", "core.sshCommand", "diff.text.textconv"):
        attacked.git("config", name, str(program))
    attacked.write(".git/hooks/post-index-change", program.read_text()).chmod(0o755)
    outcome = attacked.gate()
    assert outcome.code == 1, outcome.printed
    assert not (attacked.path / "was-run").exists()
