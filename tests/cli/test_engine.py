"""The engine of a run: embedded, none, or one that fails; the verdict is the same."""

import json
import os
import signal
import socket
import sqlite3
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.cli.commands import imported_by, told
from tests.gates import shell_agent, verdict_of
from tests.prefect_servers import free_port, started_server
from tests.processes import how_to_resume, interrupted, marked_processes
from tests.project import Project
from tests.scenarios import Scenario, Scenarios
from tests.scenarios.engine import MANY, an_embedded_run, good_and_bad, note_certificates, prefect_home, stored
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

IMPATIENT = {"PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "3"}  # For what never answers
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


def test_every_failed_task_has_a_failed_task_run_that_says_why_where_tasks_share_batches(embedded: Scenario) -> None:
    query = "SELECT r.name, message FROM task_run r JOIN task_run_state s ON s.id = r.state_id"
    reasons = dict(stored(embedded, query))
    for task in ("bad", *(f"t{number}" for number in range(MANY))):
        assert str(reasons[f"golden/{task}"]).startswith("0/2 trials passed; state_check: "), reasons


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


def test_an_engine_that_cannot_be_reached_costs_no_verdict(gate: Project) -> None:
    ended = gate.passgate(*RUN, PREFECT_API_URL="http://127.0.0.1:9/api")
    assert (ended.returncode, decision(gate)) == (1, "FAIL")
    (line,) = [line for line in ended.stderr.splitlines() if line.startswith("passgate:")]
    assert "PREFECT_API_URL" in line
    assert GOES_ON in line


class _Unauthorized(BaseHTTPRequestHandler):
    """A server that wants another key."""

    def _handle(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(401)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_POST = _handle  # noqa: N815

    def log_message(self, *_: object) -> None: ...


@pytest.mark.parametrize("server", ["dead", "unauthorized"])
def test_a_work_pool_whose_server_does_not_let_us_in_ends_the_run_and_says_nothing_else(
    gate: Project, tmp_path: Path, server: str
) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Unauthorized) as unauthorized:
        threading.Thread(target=unauthorized.serve_forever, daemon=True).start()
        port = free_port() if server == "dead" else unauthorized.server_address[1]
        pool = ("--work-pool", "trials", "--run-store", f"file://{tmp_path}/runs")
        ended = gate.passgate(*RUN, *pool, PREFECT_API_URL=f"http://127.0.0.1:{port}/api")
        unauthorized.shutdown()
    assert ended.returncode == 3, ended.stderr
    (line,) = [line for line in ended.stderr.splitlines() if line.startswith("passgate:")]
    assert (f"127.0.0.1:{port}/api (PREFECT_API_URL)" in line, GOES_ON in line) == (True, False), line
    assert line.endswith(f"the work pool trials needs Prefect; {how_to_resume(gate.path)}")
    assert "401" in line or server == "dead"


def test_an_engine_that_never_answers_costs_no_verdict(gate: Project) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/api"
        ended = gate.passgate(*RUN, PREFECT_API_URL=url, **IMPATIENT)
    assert (ended.returncode, decision(gate)) == (1, "FAIL")
    assert GOES_ON in ended.stderr


def test_a_prefect_that_cannot_be_imported_costs_no_verdict(gate: Project) -> None:
    gate.write("site/prefect/__init__.py", "raise RuntimeError('not installed as it should be')")
    ended = gate.passgate(*RUN, PYTHONPATH=str(gate.path / "site"))
    assert (ended.returncode, decision(gate)) == (1, "FAIL")
    assert f"Prefect cannot start: not installed as it should be; {GOES_ON}" in ended.stderr


class _Breakable(BaseHTTPRequestHandler):
    """Hands requests on to a server, and answers 503 once something is there. Prefect's client goes on without its
    WebSockets, which this does not speak."""

    server_url: str
    broken: Path

    def _handle(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        status, answer = (503, b"{}") if self.broken.exists() else self._answered(body)
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_GET = do_POST = do_PATCH = do_DELETE = do_PUT = _handle  # noqa: N815

    def _answered(self, body: bytes) -> tuple[int, bytes]:
        with closing(HTTPConnection(urlsplit(self.server_url).netloc, timeout=300)) as connection:
            connection.request(self.command, self.path, body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            return response.status, response.read()

    def log_message(self, *_: object) -> None: ...


@contextmanager
def proxy_of(server_url: str, broken: Path) -> Iterator[ThreadingHTTPServer]:
    """A server like another one until a file is there. It answers 503 from then on."""
    handler = type("Handler", (_Breakable,), {"server_url": server_url, "broken": broken})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as proxy:
        threading.Thread(target=proxy.serve_forever).start()
        try:
            yield proxy
        finally:
            proxy.shutdown()


def waiting_agent(project: Project) -> None:
    """Have the agent wait until the file `go` is there."""
    shell_agent(project, f"while [ ! -e {project.path}/go ]; do sleep 0.1; done; printf ok > good")


def journals(project: Project) -> list[Path]:
    return list(project.path.glob(".passgate/runs/*/journal.jsonl"))


def test_a_server_that_answers_503_from_the_first_trial_on_costs_no_verdict(
    gate: Project, prefect_server: dict[str, str]
) -> None:
    waiting_agent(gate)
    with proxy_of(prefect_server["PREFECT_API_URL"], gate.path / "go") as proxy:
        url = f"http://127.0.0.1:{proxy.server_address[1]}/api"
        gate.environment = {**prefect_server, "PREFECT_API_URL": url, "PASSGATE_PREFECT_SECONDS": "1"}
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
    assert ended.returncode == 130, ended.stderr
    assert ended.stderr.splitlines()[-1] == f"passgate: interrupted; {how_to_resume(gate.path)}"
    assert "Traceback" not in ended.stderr
    assert marked_processes(mark) == marked_processes(f"{gate.path}/agent.sh") == []
    assert list(temporary.glob("*/*")) == []
    if mode == "embedded":
        assert stored(gate, "SELECT state_type FROM flow_run") == [("CANCELLED",)]
    gate.write("go", "")
    told(gate, "run", "ci_merge", "--resume", "last")


def test_a_signal_while_the_engine_starts_ends_the_run_with_the_way_to_carry_it_on(gate: Project) -> None:
    gate.write("site/prefect/__init__.py", "import time; time.sleep(4242)")
    gate.environment |= {"PYTHONPATH": str(gate.path / "site")}
    plans = gate.path / ".passgate/runs"
    ended = interrupted(gate, gate.command(*RUN), signal.SIGTERM, lambda: any(plans.glob("*/plan.json")))
    assert ended.returncode == 130
    assert ended.stderr.splitlines()[-1] == f"passgate: interrupted; {how_to_resume(gate.path)}"
    assert "Traceback" not in ended.stderr


def test_an_engine_that_takes_too_long_is_done_without(gate: Project) -> None:
    gate.write("site/prefect/__init__.py", "import time; time.sleep(4242)")
    ended = gate.passgate(*RUN, PYTHONPATH=str(gate.path / "site"), **IMPATIENT)
    assert (ended.returncode, decision(gate)) == (1, "FAIL")
    assert "starting Prefect\n" in ended.stderr
    assert f"Prefect did not start within 3 s; {GOES_ON}" in ended.stderr
