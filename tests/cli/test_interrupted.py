"""^C and requests to terminate: what is said of them, and when they come too late."""

import signal
import subprocess
import sys
import time

import pytest

from tests.gates import WRITES_OK, gate_of
from tests.processes import how_to_resume, interrupted, marked_processes
from tests.project import Project

pytestmark = pytest.mark.slow

# A stream that presses ^C as soon as a command prints.
PRESSING = """
import io, os, signal, sys
from passgate.flows.cli import main

class Pressing(io.StringIO):
    def write(self, text):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGTERM)
        return sys.__stdout__.write(text)

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.stdout = Pressing()
sys.exit(main())
"""

# The same while the process ends, where Prefect waits for its server and for its threads.
PRESSING_AT_EXIT = """
import atexit, os, signal, sys
from passgate.flows.cli import main

signal.signal(signal.SIGINT, signal.default_int_handler)
atexit.register(os.kill, os.getpid(), {kind})
sys.exit(main())
"""


def python(project: Project, code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return project.run([sys.executable, "-c", code, *arguments])


def ends_when_its_agent_runs(project: Project, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command with an agent that takes long, interrupted in its first trial."""
    mark = str(time.time_ns())
    project.write("agent.sh", f"sleep 4242.{mark}")
    command = project.command(*arguments, "--agent", f"cli:sh {project.path}/agent.sh")
    return interrupted(project, command, signal.SIGINT, lambda: marked_processes(f"sleep\x004242.{mark}") != [])


def test_an_interrupted_run_says_how_to_carry_it_on(project: Project) -> None:
    gate_of(project)
    project.write("suites/golden/a.yaml", WRITES_OK.format(name="a"))
    ended = ends_when_its_agent_runs(project, "run", "ci_merge")
    assert ended.returncode == 130
    said = ended.stderr.splitlines()[-1]
    assert said == f"passgate: interrupted; {how_to_resume(project.path)}"


@pytest.mark.parametrize("command", [("try", "suites/golden/a.yaml"), ("burn-in", "ci_merge", "--runs", "2")])
def test_what_cannot_be_carried_on_is_only_interrupted(bare_project: Project, command: tuple[str, ...]) -> None:
    gate_of(bare_project)
    bare_project.write("suites/golden/a.yaml", WRITES_OK.format(name="a"))
    ended = ends_when_its_agent_runs(bare_project, *command)
    assert ended.returncode == 130
    assert ended.stderr.splitlines()[-1] == "passgate: interrupted"
    assert "resume" not in ended.stderr


def test_an_interrupt_after_the_verdict_changes_nothing(project: Project) -> None:
    gate_of(project, k=1)
    project.write("suites/golden/a.yaml", WRITES_OK.format(name="a"))
    ended = python(project, PRESSING, "run", "ci_merge", "--agent", "nop")
    assert ended.returncode == 1, ended.stderr
    assert "/report.html" in ended.stdout
    assert "interrupted" not in ended.stderr


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(("arguments", "code"), [(("--version",), 0), (("trend",), 2)])
def test_an_interrupt_while_the_process_ends_changes_nothing(
    bare_project: Project, kind: signal.Signals, arguments: tuple[str, ...], code: int
) -> None:
    plain = bare_project.passgate(*arguments)
    ended = python(bare_project, PRESSING_AT_EXIT.format(kind=int(kind)), *arguments)
    assert (ended.returncode, ended.stdout, ended.stderr) == (code, plain.stdout, plain.stderr)
