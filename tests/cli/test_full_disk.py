"""A run whose records find no room on the disk."""

import sys

from tests.gates import agent_file, gate_of
from tests.processes import how_to_resume
from tests.project import Project

# Files of passgate and of its agents can get no larger than this: the plan does not, but the second transcript does.
FULL = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
os.execv(sys.argv[1], sys.argv[1:])
"""


def test_a_run_whose_disk_is_full_says_how_to_carry_it_on_and_repeats_no_trial(bare_project: Project) -> None:
    gate_of(bare_project, "a")
    agent_file(bare_project, "open('result.txt', 'w').write('ok')\nprint('word ' * 20_000)")
    run = ("run", "ci_merge", "--engine", "none", "--jobs", "1")
    command = bare_project.command(*run, "--agent", f"cli:{sys.executable} {bare_project.path}/agent.py")
    full = bare_project.run([sys.executable, "-c", FULL, *command])
    assert full.returncode == 3
    (said,) = [line for line in full.stderr.splitlines() if "cannot write the journal" in line]
    assert said.endswith(f"File too large; {how_to_resume(bare_project.path)}")
    carried_on = bare_project.passgate(*run, "--resume", "last")
    assert (carried_on.returncode, "3/3" in carried_on.stdout) == (0, True), carried_on.stderr
