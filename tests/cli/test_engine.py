"""The engine of a run: embedded, none, or one that fails; the verdict is the same."""

import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from contextlib import ExitStack, closing
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from tests.answering import Answer, forwarded, serving
from tests.cli.commands import exits, imported_by, told
from tests.gates import finished_trials, shell_agent, verdict_of
from tests.prefect_servers import free_port, started_server
from tests.processes import how_to_resume, interrupted, marked_processes
from tests.project import Project
from tests.scenarios import Scenario, Scenarios
from tests.scenarios.engine import MANY, an_embedded_run, good_and_bad, note_certificates, prefect_home, stored
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

IMPATIENT = {"PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "3"}  # For what never answers
JSON = {"content-type": "application/json"}
GOES_ON = "the run continues without Prefect"
RUN = ("run", "ci_merge", "--agent", "cli:sh {project}/agent.sh")


@pytest.fixture
def gate(bare_project: Project) -> Project:
    """A gate of two tasks, of which the agent passes one, with an empty home of Prefect."""
    good_and_bad(bare_project)
    return bare_project


@pytest.fixture
def embedded(scenario: Scenarios) -> Scenario:
    return scenario(an_embedded_run)


def decision(project: Project) -> str:
    return str(verdict_of(project)["decision"])


def test_clients_of_the_embedded_server_read_no_certificates_of_the_web(embedded: Scenario) -> None:
    notes = (embedded.path / "notes").read_text(encoding="utf-8")
    assert {Path(file).name for file in notes.splitlines()} == {"no_tls.pem"}


def test_certificates_of_other_machines_are_theirs(gate: Project) -> None:
    gate.environment |= note_certificates(gate)
    notes = gate.path / "notes"
    with gate.started(gate.command(*RUN, "--runner", "dask", "--runner-address", "tcp://127.0.0.1:9")):
        wait_until(lambda: notes.exists() and notes.read_text())
    assert "no_tls.pem" not in notes.read_text(), "other machines do not have this file"


@pytest.mark.slow
def test_an_agent_finds_the_same_environment_with_and_without_an_engine(gate: Project) -> None:
    home = gate.path.parent / "who?" / "prefect"  # for Prefect, options of its database begin there
    gate.environment |= {"DO_NOT_TRACK": "of the job", "PREFECT_LOGGING_LEVEL": "ERROR", "PREFECT_HOME": str(home)}
    agent = ("--agent", "cli:sh -c 'env | cut -d= -f1 | sort; echo $DO_NOT_TRACK'", "--task", "golden/good", "--k", "1")
    seen = []
    for _ in range(2):
        for engine in ("none", "prefect"):
            gate.passgate("run", "ci_merge", "--engine", engine, *agent)
            seen.append(finished_trials(gate)[0]["transcript"]["output"])
        gate.environment.pop("DO_NOT_TRACK", None)
    assert seen[0] == seen[1]
    assert seen[2] == seen[3]
    assert "of the job" in seen[0]
    assert (home / "prefect.db").is_file()
    assert not home.with_name("who").exists()
    assert not [line for output in seen for line in output.splitlines() if "PREFECT" in line]


@pytest.mark.parametrize("option", [{}, {"PASSGATE_ENGINE": "none"}], ids=["option", "variable"])
def test_without_an_engine_prefect_is_not_imported(gate: Project, option: dict[str, str]) -> None:
    gate.environment |= option
    modules = imported_by(gate, *RUN, *([] if option else ["--engine", "none"]))
    assert decision(gate) == "FAIL"
    assert not {name for name in modules if name.partition(".")[0] in {"prefect", "sqlalchemy"}}
    assert not prefect_home(gate).exists()


def test_the_embedded_engine_shows_the_steps_the_failed_tasks_and_the_reasons(embedded: Scenario) -> None:
    ended = embedded.ended()
    assert ended.returncode == 1, ended.stderr
    for noise in ("Traceback", "uvicorn", "WARNING"):
        assert noise not in ended.stderr
    steps = {"load", "baseline", "record", "measure", "judge", "report"}
    failed = {"golden/bad", *(f"golden/t{number}" for number in range(MANY))}
    states = dict(stored(embedded, "SELECT name, state_name FROM task_run WHERE name NOT LIKE '% more'"))
    assert states == dict.fromkeys(steps, "Completed") | dict.fromkeys(failed, "TaskFailed")
    reasons = dict(
        stored(embedded, "SELECT r.name, message FROM task_run r JOIN task_run_state s ON s.id = r.state_id")
    )
    assert all(str(reasons[task]).startswith("0/2 trials passed; state_check: ") for task in failed), reasons
    (run_folder,) = embedded.run_folders()
    ((name, message),) = stored(
        embedded, "SELECT state_name, message FROM flow_run f JOIN flow_run_state s ON s.id = f.state_id"
    )
    assert name == "GateFailed"
    assert f"run {run_folder.name}, kept in {run_folder}" in message
    assert "task_failed, golden/bad: " in message
    assert stored(embedded, "SELECT resource_id FROM event_resources WHERE resource_id LIKE 'passgate.%'")
    logged = "\n".join(row[0] for row in stored(embedded, "SELECT message FROM log"))
    assert all(line in logged for line in message.splitlines())


def test_the_embedded_engine_keeps_artifacts_of_the_run(embedded: Scenario) -> None:
    (run_folder,) = embedded.run_folders()
    kinds = {"": "markdown", "-suites": "table", "-tasks": "table", "-page": "markdown", "-progress": "progress"}
    assert dict(stored(embedded, "SELECT key, type FROM artifact")) == {
        f"gate-ci-merge{what}": kind for what, kind in kinds.items()
    }
    artifacts = {key: json.loads(str(data)) for key, data in stored(embedded, "SELECT key, data FROM artifact")}
    page = (run_folder / "report.html").as_uri()
    assert artifacts["gate-ci-merge-page"] == f"[{run_folder.name}]({page})"
    for said in (run_folder.name, "ci_merge FAIL", "golden/bad"):
        assert said in artifacts["gate-ci-merge"]
    assert json.loads(artifacts["gate-ci-merge-suites"])[0]["trials"] == f"2/{2 * (MANY + 2)}"
    tasks = [row["task"] for row in json.loads(artifacts["gate-ci-merge-tasks"])]
    assert (tasks[0], tasks[-1], len(tasks)) == ("golden/bad", "golden/good", MANY + 2)
    assert artifacts["gate-ci-merge-progress"] == 100


def test_three_runs_at_once_share_a_home_of_prefect(gate: Project) -> None:
    with ExitStack() as stack:
        runs = [
            # With one history, a run that begins when the other has ended finds that the task failed before.
            stack.enter_context(gate.started(gate.command(*RUN, "--history", f"history-{number}")))
            for number in range(3)
        ]
        for run in runs:
            _, stderr = run.communicate()
            assert run.returncode == 1, stderr
            assert "passgate:" not in stderr, "none has been without the engine"
    assert stored(gate, "SELECT state_name FROM flow_run") == [("GateFailed",)] * 3


def test_a_database_in_memory_is_no_file(gate: Project) -> None:
    ended = exits(gate, 1, *RUN, PREFECT_API_DATABASE_CONNECTION_URL="sqlite+aiosqlite:///:memory:")
    assert "passgate:" not in ended.stderr
    assert list(gate.path.glob(":*")) == []


NEVER_STARTS = "import time; time.sleep(4242)"


@pytest.mark.parametrize(
    ("prefect", "environment", "said"),
    [
        ("", {"PREFECT_API_URL": "http://127.0.0.1:9/api"}, "PREFECT_API_URL"),
        ("", IMPATIENT, "within 3 s; "),
        ("raise RuntimeError('not there')", {}, "Prefect cannot start: not there; "),
        (NEVER_STARTS, IMPATIENT, "Prefect did not start within 3 s; "),
    ],
    ids=["cannot be reached", "never answers", "cannot be imported", "takes too long"],
)
def test_an_engine_that_is_not_to_be_had_costs_no_verdict(
    gate: Project, prefect: str, environment: dict[str, str], said: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        gate.environment |= {"PREFECT_API_URL": f"http://127.0.0.1:{silent.getsockname()[1]}/api", **environment}
        if prefect:
            gate.write("site/prefect/__init__.py", prefect)
            gate.environment |= {"PYTHONPATH": str(gate.path / "site"), "PREFECT_API_URL": ""}
        ended = exits(gate, 1, *RUN)
    assert decision(gate) == "FAIL"
    (line,) = [line for line in ended.stderr.splitlines() if line.startswith("passgate:")]
    assert said in line
    assert GOES_ON in line
    assert "starting Prefect\n" in ended.stderr or prefect != NEVER_STARTS


def waiting_agent(project: Project) -> None:
    """Have the agent wait until the file `go` is there."""
    shell_agent(project, f"while [ ! -e {project.path}/go ]; do sleep 0.1; done; printf ok > good")


def journals(project: Project) -> list[Path]:
    return list(project.path.glob(".passgate/runs/*/journal.jsonl"))


def test_a_server_that_answers_503_from_the_first_trial_on_costs_no_verdict(
    gate: Project, prefect_server: dict[str, str]
) -> None:
    waiting_agent(gate)

    def answer(request: BaseHTTPRequestHandler, body: bytes) -> Answer:
        if (gate.path / "go").exists():
            return 503, JSON, b"{}"
        return forwarded(prefect_server["PREFECT_API_URL"], request, body)

    # It speaks no WebSockets, and Prefect's client goes on without.
    with serving(answer) as address:
        gate.environment = {**prefect_server, "PREFECT_API_URL": f"{address}/api", "PASSGATE_PREFECT_SECONDS": "1"}
        with gate.started(gate.command(*RUN)) as run:
            wait_until(lambda: journals(gate))
            gate.write("go", "")
            _, stderr = run.communicate()
    assert (run.returncode, decision(gate)) == (1, "FAIL"), stderr
    for word in ("bug", "Traceback"):
        assert word not in stderr


def test_a_server_that_dies_in_mid_run_costs_no_verdict_and_learns_of_it_all_when_it_is_back(gate: Project) -> None:
    home, port = prefect_home(gate), free_port()
    waiting_agent(gate)
    with ExitStack() as runs:

        def begin(patience: str) -> subprocess.Popen[str]:
            environment = gate.full_environment(PASSGATE_PREFECT_SECONDS=patience)
            command = gate.command(*RUN, "--history", f"history-{patience}")
            return runs.enter_context(gate.started(command, env=environment))

        with started_server(home, port) as server:
            gate.environment |= server.environment
            impatient, patient = begin("1"), begin("240")
            wait_until(lambda: len(journals(gate)) == 2)
            os.killpg(server.process_id, signal.SIGKILL)
        gate.write("go", "")
        _, stderr = impatient.communicate()
        assert impatient.returncode == 1, stderr
        for word in ("bug", "Traceback"):
            assert word not in stderr
        with started_server(home, port):
            _, stderr = patient.communicate()
    assert patient.returncode == 1, stderr
    assert ("GateFailed",) in stored(gate, "SELECT state_name FROM flow_run")
    assert ("gate-ci-merge-tasks",) in stored(gate, "SELECT key FROM artifact")
    shown = set(stored(gate, "SELECT name, state_name FROM task_run"))
    assert {("golden/bad", "TaskFailed"), ("golden/good", "Completed")} <= shown


def test_a_database_that_is_locked_in_mid_run_costs_no_verdict_and_no_state(gate: Project) -> None:
    home = prefect_home(gate)
    waiting_agent(gate)
    with started_server(home) as server, closing(sqlite3.connect(home / "prefect.db", timeout=300)) as database:
        gate.environment |= {**server.environment, "PASSGATE_PREFECT_SECONDS": "240"}
        with gate.started(gate.command(*RUN)) as run:
            wait_until(lambda: journals(gate))
            database.execute("BEGIN EXCLUSIVE")
            gate.write("go", "")
            wait_until(lambda: any(gate.path.glob(".passgate/runs/*/verdict.json")))
            database.rollback()
            _, stderr = run.communicate()
        assert (run.returncode, decision(gate)) == (1, "FAIL"), stderr
    assert stored(gate, "SELECT state_name FROM flow_run") == [("GateFailed",)]


def assert_resumable(project: Project, ended: subprocess.CompletedProcess[str]) -> None:
    assert ended.returncode == 130, ended.stderr
    assert ended.stderr.splitlines()[-1] == f"passgate: interrupted; {how_to_resume(project.path)}"
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    ("mode", "kind"),
    [("none", signal.SIGTERM), ("none", signal.SIGINT), ("embedded", signal.SIGTERM), ("server", signal.SIGINT)],
)
def test_a_signal_in_a_trial_ends_the_run_in_every_mode_leaves_nothing_behind_and_can_be_resumed(
    gate: Project, mode: str, kind: signal.Signals, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    if mode == "server":
        gate.environment |= request.getfixturevalue("prefect_server")
    mark, temporary = f"4242.{time.time_ns()}", tmp_path / "temporary"
    temporary.mkdir()
    gate.environment |= {"TMPDIR": str(temporary), "PASSGATE_ENGINE": "none" if mode == "none" else "prefect"}
    agent = shell_agent(gate, f"[ -e {gate.path}/go ] || sleep {mark}; printf ok > good; printf ok > bad")
    ended = interrupted(
        gate, gate.command("run", "ci_merge", *agent), kind, lambda: marked_processes(f"sleep\x00{mark}") != []
    )
    assert_resumable(gate, ended)
    assert marked_processes(mark) == marked_processes(f"{gate.path}/agent.sh") == []
    assert list(temporary.glob("*/*")) == []
    if mode == "embedded":
        assert stored(gate, "SELECT state_type FROM flow_run") == [("CANCELLED",)]
    gate.write("go", "")
    told(gate, "run", "ci_merge", "--resume", "last")


def test_a_signal_while_the_engine_starts_ends_the_run_with_the_way_to_carry_it_on(gate: Project) -> None:
    gate.write("site/prefect/__init__.py", NEVER_STARTS)
    gate.environment |= {"PYTHONPATH": str(gate.path / "site")}
    plans = gate.path / ".passgate/runs"
    ended = interrupted(gate, gate.command(*RUN), signal.SIGTERM, lambda: any(plans.glob("*/plan.json")))
    assert_resumable(gate, ended)


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


@pytest.mark.parametrize("words", [("try", "golden/good"), ("burn-in", "ci_merge", "--runs", "2")], ids=" ".join)
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
