"""^C and requests to terminate: what is said of them, and when they come too late."""

import signal
import sys
import time

import pytest

from tests.gates import shell_agent
from tests.processes import interrupted, marked_processes
from tests.project import Project

pytestmark = pytest.mark.slow

PRESSING = """
import atexit, io, os, signal, sys
from passgate.flows.cli import main

signal.signal(signal.SIGINT, signal.default_int_handler)
"""
# A stream that presses ^C as soon as a command prints.
PRESSING_WHEN_IT_PRINTS = f"""{PRESSING}
class Pressing(io.StringIO):
    def write(self, text):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGTERM)
        return sys.__stdout__.write(text)

sys.stdout = Pressing()
sys.exit(main())
"""

# The same while the process ends, where Prefect waits for its server and for its threads.
PRESSING_AT_EXIT = f"""{PRESSING}
atexit.register(os.kill, os.getpid(), int(sys.argv.pop()))
sys.exit(main())
"""


@pytest.mark.parametrize("words", [("try", "golden/a"), ("burn-in", "ci_merge", "--runs", "2")], ids=" ".join)
def test_what_cannot_be_carried_on_is_only_interrupted(gate: Project, words: tuple[str, ...]) -> None:
    mark = str(time.time_ns())
    command = gate.command(*words, *shell_agent(gate, f"sleep 4242.{mark}"))
    ended = interrupted(gate, command, signal.SIGINT, lambda: marked_processes(f"sleep\x004242.{mark}") != [])
    assert (ended.returncode, ended.stderr.splitlines()[-1]) == (130, "passgate: interrupted")
    assert "resume" not in ended.stderr


def test_an_interrupt_after_the_verdict_changes_nothing(gate: Project) -> None:
    ended = gate.run([sys.executable, "-c", PRESSING_WHEN_IT_PRINTS, "run", "ci_merge", "--agent", "nop"])
    assert ended.returncode == 1, ended.stderr
    assert "/report.html" in ended.stdout
    assert "interrupted" not in ended.stderr


@pytest.mark.parametrize(
    ("kind", "arguments", "code"), [(signal.SIGINT, "--version", 0), (signal.SIGTERM, "trend", 2)], ids=str
)
def test_an_interrupt_while_the_process_ends_changes_nothing(
    bare_project: Project, kind: signal.Signals, arguments: str, code: int
) -> None:
    plain = bare_project.passgate(arguments)
    ended = bare_project.run([sys.executable, "-c", PRESSING_AT_EXIT, arguments, str(int(kind))])
    assert (ended.returncode, ended.stdout, ended.stderr) == (code, plain.stdout, plain.stderr)
