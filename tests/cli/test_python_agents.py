"""Python agents under the real command: whatever they do to their process, the verdict is the gate's."""

import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.builders import write_task
from tests.cli.commands import exits
from tests.gates import agent_file, finished_trials, gate_of, verdict_of
from tests.processes import marked_processes
from tests.project import Project
from tests.waiting import wait_until

AGENT = ("--agent", "python:agent:agent")
TRY = ("try", "suites/golden/a.yaml", *AGENT)


@pytest.fixture(autouse=True)
def _wants_yes(gate: Project) -> None:
    write_task(gate.path / "suites/golden/a.yaml")


def transcripts(project: Project) -> list[dict[str, Any]]:
    """Those of the trials, by their numbers."""
    trials = sorted(finished_trials(project), key=lambda line: int(line["trial"]["trial"]))
    return [trial["transcript"] for trial in trials]


ENDS = {
    "os._exit(0)": "exited with code 0 before it answered",
    "sys.exit(0)": "SystemExit(0)",
    "ctypes.string_at(0)": "ended by SIGSEGV",
    "os.kill(os.getppid(), 9)": "its process was ended",
    "os.kill(SERVER, 9)": "",
    "refused(os.environ['DESK_TOKEN'])": "ValueError: 401 for ",
}
ENDING = f"""
import ctypes, os, sys, time
SERVER = os.getpid()
def refused(token):
    raise ValueError("401 for " + token)
def agent(attempt):
    eval({list(ENDS)}[attempt.trial])
    time.sleep(600)
"""


def test_whatever_ends_an_agents_process_the_verdict_is_fail(gate: Project) -> None:
    """Its transcript says what it was, and holds no secret."""
    gate_of(gate, k=len(ENDS))
    policy = (gate.path / "gates.yaml").read_text().replace("ci_merge:", "ci_merge:\n    curtailment: false")
    gate.write("gates.yaml", f"{policy}secrets: [DESK_TOKEN]\nconcurrency: {{trials: 1}}\n")
    agent_file(gate, ENDING)
    exits(gate, 1, "run", "ci_merge", *AGENT, DESK_TOKEN="tok-8d1f7c2e9a")
    assert verdict_of(gate)["decision"] == "FAIL"
    kept = transcripts(gate)
    assert [one["end"] for one in kept] == ["crashed"] * len(ENDS)
    for one, detail in zip(kept, ENDS.values(), strict=True):
        assert detail in one["detail"]
    assert kept[-1]["detail"].index(", in agent\n") < kept[-1]["detail"].index(", in refused\n")
    written = b"".join(file.read_bytes() for file in (gate.path / ".passgate").rglob("*") if file.is_file())
    assert b"tok-8d1f7c2e9a" not in written


@pytest.mark.cold
@pytest.mark.slow
@pytest.mark.parametrize(
    "variables",
    [{"PYTHONIOENCODING": "latin-1"}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}],
)
def test_an_output_that_knows_few_characters_costs_no_verdict(gate: Project, variables: dict[str, str]) -> None:
    agent_file(gate, "def agent(attempt):\n    print('żółw ✓')\n    return 'yes żółw ✓'\n")
    write_task(gate.path / "suites/golden/a.yaml", inputs={"prompt": "Say yes ✓ żółw."})
    command = ["sh", "-c", 'exec "$@" > output 2>&1', "sh", *gate.command("run", "ci_merge", *AGENT)]
    result = gate.run(command, **variables)
    assert (result.returncode, verdict_of(gate)["decision"]) == (0, "PASS"), (gate.path / "output").read_bytes()
    assert [(one["printed"], one["output"]) for one in transcripts(gate)] == [("żółw ✓\n", "yes żółw ✓")]


HANGS = """
import os, subprocess, time
subprocess.Popen(["sleep", "4243.{mark}1"], start_new_session=True)
def agent(attempt):
    subprocess.Popen(["sleep", "4243.{mark}2"], start_new_session=True, env={{"PATH": os.environ["PATH"]}})
    subprocess.Popen(["sh", "-c", "sleep 4243.{mark}3 & sleep 4243.{mark}4"])
    if os.fork() == 0:
        os.execvp("sleep", ["sleep", "4243.{mark}5"])
    time.sleep(600)
"""


@pytest.mark.parametrize("kind", [signal.SIGKILL, signal.SIGTERM])
def test_a_gate_that_is_ended_leaves_no_process_of_its_agents(gate: Project, kind: signal.Signals) -> None:
    mark = os.getpid() * 100 + kind
    agent_file(gate, HANGS.format(mark=mark))
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with gate.started(gate.command(*TRY), start_new_session=True, **silent) as process:
        # One of the import, and four of the trial beside the shell that starts two of them.
        wait_until(lambda: len(marked_processes(f"4243.{mark}")) >= 6)
        process.send_signal(kind)
        process.wait()
    wait_until(lambda: marked_processes(f"4243.{mark}") == [])
    wait_until(lambda: servers_in(gate.path) == [])


def servers_in(folder: Path) -> list[int]:
    """The fork servers of agents whose working folder this is, their keepers and processes among them."""
    found = []
    for process_id in marked_processes("agents.processes.fork_server"):
        with suppress(OSError):
            if Path(f"/proc/{process_id}/cwd").resolve() == folder.resolve():
                found.append(process_id)
    return found
