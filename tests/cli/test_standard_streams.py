"""Standard streams that are closed, broken or full: a command ends as it would have, or says what it could not do."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from tests.gates import agent_file, gate_of, verdict_of
from tests.project import Project
from tests.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.cold]

NO_SPACE = "passgate: cannot write to standard output: No space left on device\n"
AGENT = ("--agent", "python:agent:agent")
COMMANDS = [
    ("--version",),
    ("run", "--help"),
    ("validate", "suites"),
    ("forecast", "ci_merge", "--assume", "0.99", "--runs", "100", "--json"),
]


def with_broken_output(project: Project, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command whose reader has gone, as that of `| head`."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        return project.run(project.command(*arguments), stdout=writing)
    finally:
        os.close(writing)


def redirected(project: Project, redirections: str, *command: str) -> subprocess.CompletedProcess[str]:
    """A command line under redirections of the shell."""
    return project.run(["sh", "-c", f'exec "$@" {redirections}', "sh", *command])


def passes_unless_bad(project: Project) -> None:
    """Write a gate whose one task the agent passes, or fails where BAD is set."""
    gate_of(project, "a", k=1)
    agent_file(
        project,
        """
        import os
        def agent(attempt):
            (attempt.workspace / "result.txt").write_text("bad" if "BAD" in os.environ else "ok")
            return "done"
        """,
    )


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_a_reader_that_has_gone_changes_no_exit_code(gate: Project, arguments: tuple[str, ...]) -> None:
    ended = with_broken_output(gate, *arguments)
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
@pytest.mark.parametrize(
    ("redirections", "end"), [(">/dev/full", (3, NO_SPACE)), (">&-", (0, ""))], ids=["full", "closed"]
)
def test_a_full_disk_is_said_and_is_no_bug_and_a_closed_output_is_as_good_as_dev_null(
    gate: Project, arguments: tuple[str, ...], redirections: str, end: tuple[int, str]
) -> None:
    ended = redirected(gate, redirections, *gate.command(*arguments))
    assert (ended.returncode, ended.stderr) == end


@pytest.mark.parametrize("redirections", ["2>&-", "2>/dev/full", ">/dev/full"])
def test_an_error_that_cannot_be_said_or_stands_beside_a_full_disk_keeps_its_exit_code(
    gate: Project, redirections: str
) -> None:
    gate.write("suites/golden/b.yaml", "task_id: 5\n")
    assert redirected(gate, redirections, *gate.command("validate", "suites")).returncode == 2
    ended = redirected(gate, redirections, *gate.command("trend"))
    assert (ended.returncode, "no runs yet" in ended.stderr) == (2, redirections == ">/dev/full")


def test_a_verdict_stands_whatever_the_streams_are(project: Project) -> None:
    passes_unless_bad(project)
    ended = redirected(project, "<&- 2>&-", *project.command("run", "ci_merge", *AGENT))
    assert ended.returncode == 0
    assert "PASS" in ended.stdout
    assert verdict_of(project)["decision"] == "PASS"
    assert with_broken_output(project, "judge", "last").returncode == 0
    full = redirected(project, ">/dev/full", *project.command("judge", "last"))
    assert (full.returncode, full.stderr) == (0, NO_SPACE)


def test_a_run_whose_output_is_lost_has_the_exit_code_of_its_verdict(gate: Project) -> None:
    passes_unless_bad(gate)
    assert with_broken_output(gate, "run", "ci_merge", *AGENT).returncode == 0
    gate.environment["BAD"] = "1"
    full = redirected(gate, ">/dev/full", *gate.command("run", "ci_merge", *AGENT))
    assert full.returncode == 1
    assert full.stderr.endswith(NO_SPACE)
    assert verdict_of(gate)["decision"] == "FAIL"


def test_nothing_that_is_opened_later_gets_the_number_of_a_closed_stream(gate: Project, tmp_path: Path) -> None:
    code = f"""if True:
        import json, os, sys
        from passgate.flows.cli import main
        sys.argv = ["passgate", "validate", "suites"]
        code = main()
        links = [os.readlink(f"/proc/self/fd/{{number}}") for number in range(3)]
        inherited = [os.get_inheritable(number) for number in range(3)]
        print("nobody hears this")
        sys.stderr.write(sys.stdin.read())
        with open({str(tmp_path / "seen.json")!r}, "w") as file:
            json.dump([code, links, inherited], file)
        """
    redirected(gate, "<&- >&- 2>&-", sys.executable, "-c", code)
    assert json.loads((tmp_path / "seen.json").read_text()) == [0, ["/dev/null"] * 3, [True] * 3]


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_message_is_there_as_soon_as_it_is_said(bare_project: Project, unbuffered: str) -> None:
    code = (
        "import sys; from passgate.flows.cli.output import take_standard_streams; take_standard_streams(); "
        "from passgate.tasks.reports.messages import warn; warn('it waits'); sys.stdin.read()"
    )
    environment = bare_project.full_environment(PYTHONUNBUFFERED=unbuffered)
    with bare_project.started([sys.executable, "-c", code], stdin=subprocess.PIPE, env=environment) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "passgate: it waits\n"


SAYS_MORE_THAN_A_PIPE_HAS_ROOM_FOR = """
import os
from passgate.flows.cli.output import say, take_standard_streams
take_standard_streams()
os.write(1, bytes(60_000))
say("".join(f"{number:04}\\n" for number in range(1600)))
"""


def test_what_is_interrupted_while_it_is_written_is_not_written_twice(bare_project: Project) -> None:
    command = [sys.executable, "-c", SAYS_MORE_THAN_A_PIPE_HAS_ROOM_FOR]
    with bare_project.started(command, stderr=subprocess.DEVNULL, text=False) as process:
        output = process.stdout
        assert output is not None
        wait_until(lambda: int.from_bytes(fcntl.ioctl(output, termios.FIONREAD, bytes(4)), sys.byteorder) > 60_000)
        process.send_signal(signal.SIGINT)
        lines = output.read()[60_000:].decode().splitlines()
    assert lines
    assert lines[:-1] == [f"{number:04}" for number in range(len(lines) - 1)]
