"""A command that starts warm does as one that starts cold: what the tests of commands rely on."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests import warm
from tests.builders import write_task
from tests.processes import marked_processes
from tests.project import Project
from tests.waiting import wait_until

Start = Callable[..., "subprocess.Popen[Any]"]
COMMANDS = {
    "an answer": ("--version",),
    "bad usage": ("frobnicate",),
    "bad input": ("validate", "nowhere"),
    "a failed trial": ("try", "a.yaml", "--agent", "cli:echo $PWD $HOME $TZ; date +%H"),
}


@pytest.fixture
def task(bare_project: Project) -> Project:
    write_task(bare_project.path / "a.yaml")
    return bare_project


def ended(project: Project, start: Start, arguments: Sequence[str], **environment: str) -> tuple[int, str, str]:
    command = project.command(*arguments)
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with start(command, cwd=project.path, env=project.full_environment(**environment), **options) as process:
        stdout, stderr = process.communicate()
    return process.returncode, stdout, stderr


@pytest.mark.parametrize("arguments", COMMANDS.values(), ids=COMMANDS)
def test_its_exit_code_its_streams_and_its_environment_are_the_same(task: Project, arguments: tuple[str, ...]) -> None:
    changes = {"HOME": str(task.path), "TZ": "Asia/Kolkata", "COLUMNS": "90"}
    (code, *said), (cold_code, *cold_said) = (
        ended(task, start, arguments, **changes) for start in (warm.popen, subprocess.Popen)
    )
    assert (code, [_without_times(text) for text in said]) == (cold_code, [_without_times(text) for text in cold_said])


def _without_times(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if " s" not in line and "seconds" not in line)


@pytest.mark.parametrize(("kind", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 130), (signal.SIGKILL, -9)])
def test_it_hears_signals_and_nothing_is_left_of_it(task: Project, kind: signal.Signals, status: int) -> None:
    mark = f"4242.{os.getpid()}{kind}"
    with task.started(task.command("try", "a.yaml", "--agent", f"cli:sleep {mark}"), start_new_session=True) as process:
        assert isinstance(process, warm.WarmProcess)
        wait_until(lambda: "sleep" in _programs(mark))
        assert os.getsid(process.pid) == os.getpgid(process.pid) == process.pid
        assert process.poll() is None
        process.send_signal(kind)
        assert process.wait() == status
    wait_until(lambda: marked_processes(mark) == [])


def _programs(mark: str) -> set[str]:
    """The names of the programs that carry a mark in their command line."""
    names = set()
    for process in marked_processes(mark):
        with suppress(OSError):
            names.add(Path(f"/proc/{process}/comm").read_text().strip())
    return names


@pytest.mark.parametrize("variable", ["PYTHONPATH", "PYTHONWARNINGS", "LC_ALL"])
def test_what_an_interpreter_reads_when_it_starts_starts_one(task: Project, variable: str) -> None:
    with task.started(task.command("--version"), env=task.full_environment(**{variable: "C"})) as process:
        assert not isinstance(process, warm.WarmProcess)
        assert process.communicate()[0].startswith("passgate ")


@pytest.mark.cold
def test_a_test_can_ask_for_cold_commands(task: Project) -> None:
    with task.started(task.command("--version")) as process:
        assert not isinstance(process, warm.WarmProcess)
        process.communicate()


def test_code_that_asks_for_it_and_prefect_start_warm_too(project: Project) -> None:
    code = "import os, sys; print(__name__, sys.argv[1:], os.getcwd()); raise SystemExit(7)"
    with project.started([*warm.CODE, code, "a"]) as process:
        assert isinstance(process, warm.WarmProcess)
        assert (process.communicate()[0], process.returncode) == (f"__main__ ['a'] {project.path}\n", 7)
    with project.started([sys.executable, "-m", "prefect", "work-pool", "inspect", str(project.path)]) as process:
        assert isinstance(process, warm.WarmProcess)
        stdout, stderr = process.communicate()
    assert (process.returncode, "not found" in stdout + stderr) == (1, True), stdout + stderr


def test_other_commands_are_what_they_are(task: Project) -> None:
    result = task.run([sys.executable, "-c", "import os; print(os.getcwd()); raise SystemExit(7)"])
    assert (result.returncode, result.stdout) == (7, f"{task.path}\n")
