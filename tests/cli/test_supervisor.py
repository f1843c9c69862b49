"""The exit code of a command whatever becomes of the process that does its work, and what such a process leaves."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from passgate.flows.process.supervision import BegunRun
from tests.cli.commands import exits, told
from tests.gates import WRITE_OK
from tests.processes import how_to_resume, interrupted, marked_processes, parent_of, supervisor_of, worker_of
from tests.project import Project
from tests.waiting import LIMIT, wait_until
from tests.warm import CODE

pytestmark = pytest.mark.slow


@pytest.fixture
def mark() -> str:
    return str(time.time_ns())


@pytest.fixture(autouse=True)
def _agents(gate: Project, mark: str) -> None:
    """An agent that takes long, and one that is quick."""
    gate.write("slow.sh", f"setsid sleep 4242.{mark} & sleep 4242.{mark}")
    gate.write("good.sh", WRITE_OK)


def run_with(agent: str) -> tuple[str, ...]:
    return "run", "ci_merge", "--agent", f"cli:sh {{project}}/{agent}"


def in_the_worker(project: Project, code: str, forks: int = 2) -> None:
    """Have the process that does the work, or the one after so many forks, run some code as soon as it is there."""
    project.write(
        "site/sitecustomize.py",
        f"import os\ndef begin():\n{textwrap.indent(textwrap.dedent(code), '    ')}\n"
        "forks = []\n"
        "def count():\n"
        "    forks.append(1)\n"
        f"    if len(forks) == {forks}:\n"  # The command forks the supervisor, and that the worker
        "        begin()\n"
        "os.register_at_fork(after_in_child=count) if os.environ.pop('ONCE', '') else None\n",
    )
    project.environment |= {"PYTHONPATH": str(project.path / "site"), "ONCE": "1"}


def exits_0_once_there_is(file: str) -> str:
    """Code for the worker. The file is one of the run's folder."""
    return f"""
        import glob, threading, time
        def exit_early():
            while not glob.glob(".passgate/runs/*/{file}"):
                time.sleep(0.001)
            os._exit(0)
        threading.Thread(target=exit_early, daemon=True).start()
        """


def wait_for_agent(mark: str) -> None:
    wait_until(lambda: len(marked_processes(f"sleep\x004242.{mark}")) == 2)


def test_a_worker_that_exits_0_in_mid_run_is_no_pass(gate: Project) -> None:
    in_the_worker(gate, exits_0_once_there_is("journal.jsonl"))
    ended = exits(gate, 3, *run_with("slow.sh"))
    said = f"passgate: the process that did the work exited 0 before there was a verdict; {how_to_resume(gate.path)}"
    assert ended.stderr.splitlines()[-1] == said
    assert not list(gate.path.glob(".passgate/runs/*/verdict.json"))


def test_the_verdict_decides_when_the_worker_dies_after_it(gate: Project) -> None:
    in_the_worker(gate, exits_0_once_there_is("verdict.json"))
    gate.write("bad.sh", "printf bad > result.txt")
    exits(gate, 1, *run_with("bad.sh"))


@pytest.mark.parametrize("arguments", [("validate", "suites"), ("burn-in", "ci_merge")], ids=lambda words: words[0])
def test_no_command_succeeds_whose_worker_exits_0_before_its_end(gate: Project, arguments: tuple[str, ...]) -> None:
    in_the_worker(gate, "os._exit(0)")
    said = "passgate: the process that did the work exited 0 before there was an answer\n"
    assert exits(gate, 3, *arguments).stderr == said


def test_a_worker_that_is_killed_leaves_no_process_and_no_folder_and_its_run_can_be_carried_on(
    gate: Project, mark: str, tmp_path: Path
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    gate.environment["TMPDIR"] = str(temporary)
    with gate.started(gate.command(*run_with("slow.sh"))) as process:
        wait_for_agent(mark)
        os.kill(worker_of(process.pid), signal.SIGSEGV)
        _, stderr = process.communicate()
    assert process.returncode == 3
    assert "was killed (Segmentation fault) before there was a verdict" in stderr
    assert how_to_resume(gate.path) in stderr
    assert marked_processes(mark) == []
    assert list(temporary.glob("*/*")) == []
    gate.write("slow.sh", WRITE_OK)
    told(gate, "run", "ci_merge", "--resume", "last")


def test_a_process_that_does_not_end_does_not_keep_the_verdict(gate: Project) -> None:
    in_the_worker(gate, "import atexit, signal, time\natexit.register(time.sleep, 4242)")
    assert "ci_merge PASS" in told(gate, *run_with("good.sh"))


IN_NO_HURRY = """
import sys
from passgate.flows.process import supervision
from passgate.flows.process.supervisor import main
supervision.SECONDS_TO_EXIT = supervision.SECONDS_TO_INTERRUPT = 4242.0
sys.exit(main())
"""


def test_an_interrupt_ends_a_command_at_once_that_has_its_answer(gate: Project) -> None:
    in_the_worker(
        gate, "import atexit, time\natexit.register(lambda: (open('answered', 'w').close(), time.sleep(4242)))"
    )
    with gate.started([*CODE, IN_NO_HURRY, *run_with("good.sh")]) as process:
        wait_until((gate.path / "answered").exists)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=LIMIT) == 0


def test_nobody_waits_long_for_the_end_of_an_interrupted_worker(gate: Project, mark: str) -> None:
    in_the_worker(gate, "import atexit, time\natexit.register(time.sleep, 4242)")
    with gate.started([*CODE, IN_NO_HURRY, *run_with("slow.sh")]) as process:
        wait_for_agent(mark)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=LIMIT) == 130


HOLDS_AN_IMPORT = """
    import signal, sys, time
    class Held:
        def find_spec(name, path, target=None):
            if name == "passgate.flows.cli.output":
                try:
                    open("importing", "w").close()
                    time.sleep(4242)
                except KeyboardInterrupt:
                    raise RuntimeError("the library is broken")
    sys.meta_path.insert(0, Held)
    """


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_while_the_command_starts_ends_it_whatever_an_import_would_make_of_it(
    gate: Project, kind: signal.Signals
) -> None:
    in_the_worker(gate, HOLDS_AN_IMPORT)
    ended = interrupted(gate, gate.command(*run_with("good.sh")), kind, (gate.path / "importing").exists)
    assert (ended.returncode, ended.stderr) == (130, "passgate: interrupted\n")


def test_an_interrupt_that_comes_before_anybody_can_hear_it_waits(gate: Project) -> None:
    in_the_worker(gate, "import signal\nos.kill(os.getppid(), signal.SIGTERM)")
    assert exits(gate, 130, *run_with("slow.sh")).stderr.startswith("passgate: interrupted")


def test_a_worker_that_hears_nothing_is_ended_in_time(gate: Project, mark: str) -> None:
    with gate.started(gate.command(*run_with("slow.sh"))) as process:
        wait_for_agent(mark)
        os.kill(worker_of(process.pid), signal.SIGSTOP)
        process.send_signal(signal.SIGTERM)
        _, stderr = process.communicate()
    assert process.returncode == 130
    assert stderr.splitlines()[-1] == f"passgate: interrupted; {how_to_resume(gate.path)}"
    assert marked_processes(mark) == []


def test_interrupts_that_are_ignored_when_the_command_starts_stay_so(gate: Project) -> None:
    agent = gate.write("waits.sh", f"while [ ! -e {gate.path}/go ]; do sleep 0.1; done; {WRITE_OK}")
    command = ["/bin/sh", "-c", 'trap "" INT HUP; exec "$@"', "sh", *gate.command(*run_with("waits.sh"))]
    with gate.started(command) as process:
        wait_until(lambda: marked_processes(f"sh\x00{agent}"))
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGHUP)
        gate.write("go", "")
        assert process.wait() == 0


@pytest.mark.parametrize(
    "who", [lambda command: command, supervisor_of, worker_of], ids=["command", "supervisor", "worker"]
)
def test_whichever_process_is_killed_nothing_of_the_command_is_left(
    gate: Project, mark: str, tmp_path: Path, who: Callable[[int], int]
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    gate.environment["TMPDIR"] = str(temporary)
    with gate.started(gate.command(*run_with("slow.sh"))) as process:
        wait_for_agent(mark)
        started = [process.pid, supervisor_of(process.pid), worker_of(process.pid)]
        os.kill(who(process.pid), signal.SIGKILL)
        wait_until(lambda: marked_processes(mark) == [])
        assert process.wait() in {-signal.SIGKILL, 3}
        wait_until(lambda: [one for one in started if parent_of(one) is not None] == [])
    assert list(temporary.glob("*/*")) == []


def test_a_signal_to_the_process_group_interrupts_the_command_whatever_hears_it_first(gate: Project) -> None:
    in_the_worker(gate, HOLDS_AN_IMPORT)
    with gate.started(gate.command(*run_with("good.sh")), start_new_session=True) as process:
        wait_until((gate.path / "importing").exists)
        os.killpg(process.pid, signal.SIGTERM)
        _, stderr = process.communicate()
    assert (process.returncode, stderr) == (130, "passgate: interrupted\n")


def test_an_interrupt_while_the_supervisor_exits_does_not_change_the_exit_code(gate: Project) -> None:
    in_the_worker(
        gate,
        """
        class Late:
            def __init__(self):
                import os, signal
                self.process, self.getpid, self.kill, self.signal = os.getpid(), os.getpid, os.kill, signal.SIGTERM
            def __del__(self):
                if self.process == self.getpid():
                    self.kill(self.process, self.signal)
        global late
        late = Late()
        """,
        forks=1,
    )
    assert "ci_merge PASS" in told(gate, *run_with("good.sh"))


def test_the_supervisor_imports_little_before_the_worker_starts() -> None:
    code = """
        import os, sys
        before = set(sys.modules)
        def fork():
            print(*sorted(set(sys.modules) - before))
            raise SystemExit
        os.fork = fork
        from passgate.flows.process.supervisor import main
        main()
        """
    ended = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    imported = set(ended.stdout.split())
    assert "passgate.flows.process.supervisor" in imported
    assert imported.isdisjoint({"typer", "json", "re", "asyncio", "threading", "prefect", "pydantic"})


def test_what_a_worker_has_reported_counts_also_where_it_is_read_after_its_end() -> None:
    code = """
        import os, sys
        from passgate.flows.process.supervision import Supervision, WorkerReport
        reading, writing = os.pipe()
        worker = os.fork()
        if worker == 0:
            WorkerReport(writing).report_exit(1)
            os._exit(0)
        os.close(writing)
        os.waitid(os.P_PID, worker, os.WEXITED | os.WNOWAIT)
        command_ends, held = os.pipe()
        sys.exit(Supervision(worker, reading, command_ends, set()).exit_code())
        """
    ended = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=False)
    assert ended.returncode == 1


def test_a_verdict_of_another_run_or_half_of_one_is_none(tmp_path: Path) -> None:
    file = tmp_path / "verdict.json"
    run = BegunRun(run_id="r", gate="ci_merge", verdict_file=str(file))
    assert run.read_decision() is None
    whole = json.dumps({"run_id": "r", "decision": "PASS"})
    for text in ("", "[]", whole[:-1], json.dumps({"run_id": "s", "decision": "PASS"}), '{"run_id": "r"}'):
        file.write_text(text)
        assert run.read_decision() is None, text
    file.write_text(whole)
    assert run.read_decision() == "PASS"
