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
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.cli.commands import imported_by
from tests.gates import WRITES_OK, gate_of
from tests.prefect_servers import PATIENT, free_port, started_server
from tests.processes import how_to_resume, interrupted, marked_processes
from tests.project import Project
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

IMPATIENT = {"PASSGATE_PREFECT_SECONDS": "5"}  # For a server that does not come back
GOES_ON = "the run continues without Prefect"


@pytest.fixture
def gate(bare_project: Project, tmp_path: Path) -> Project:
    """A gate of two tasks, of which the agent passes one, with an empty home of Prefect."""
    gate_of(bare_project, k=2, seconds=600)
    for name in ("good", "bad"):
        bare_project.write(f"suites/golden/{name}.yaml", WRITES_OK.format(name=name).replace("result.txt", name))
    bare_project.write("agent.sh", "printf ok > good")
    bare_project.environment["PREFECT_HOME"] = str(tmp_path / "prefect")
    return bare_project


def run_of(project: Project) -> tuple[str, ...]:
    return ("run", "ci_merge", "--agent", f"cli:sh {project.path}/agent.sh")


def decision(project: Project) -> str:
    return str(json.loads((project.run_folders()[-1] / "verdict.json").read_text())["decision"])


def stored(project: Project, query: str) -> list[tuple[str, ...]]:
    """Rows of the embedded engine's database."""
    with closing(sqlite3.connect(Path(project.environment["PREFECT_HOME"]) / "prefect.db")) as database:
        return database.execute(query).fetchall()


NOTES_CERTIFICATES = """
import os, ssl, sys
make = ssl.create_default_context
def noted(*args, **named):
    if sys._getframe(1).f_globals["__name__"].startswith("prefect.client"):
        with open(os.environ["NOTES"], "a") as notes:
            notes.write(f"{named.get('cafile')}\\n")
    return make(*args, **named)
ssl.create_default_context = noted
"""


def test_clients_of_the_embedded_server_read_no_certificates_of_the_web(gate: Project, tmp_path: Path) -> None:
    site, notes = tmp_path / "site", tmp_path / "notes"
    site.mkdir()
    (site / "sitecustomize.py").write_text(NOTES_CERTIFICATES, encoding="utf-8")
    given = {"PYTHONPATH": str(site), "NOTES": str(notes)}
    gate.passgate(*run_of(gate), **given)
    assert {Path(file).name for file in notes.read_text(encoding="utf-8").splitlines()} == {"no_tls.pem"}
    notes.unlink()
    elsewhere = ("--runner", "dask", "--runner-address", "tcp://127.0.0.1:9")
    gate.passgate(*run_of(gate), *elsewhere, **given)
    assert "no_tls.pem" not in notes.read_text(encoding="utf-8"), "other machines do not have this file"


@pytest.mark.parametrize("option", [{}, {"PASSGATE_ENGINE": "none"}], ids=["option", "variable"])
def test_without_an_engine_prefect_is_not_imported(gate: Project, option: dict[str, str]) -> None:
    gate.environment |= option
    modules = imported_by(gate, *run_of(gate), *([] if option else ["--engine", "none"]))
    assert decision(gate) == "FAIL"
    assert not {name for name in modules if name.partition(".")[0] in {"prefect", "sqlalchemy"}}
    assert not Path(gate.environment["PREFECT_HOME"]).exists()


def test_the_embedded_engine_shows_the_steps_the_failed_task_and_the_reasons(gate: Project) -> None:
    ended = gate.passgate(*run_of(gate), timeout=280, **PATIENT)
    assert ended.returncode == 1, ended.stderr
    for noise in ("Traceback", "uvicorn", "WARNING"):
        assert noise not in ended.stderr
    states = dict(stored(gate, "SELECT name, state_name FROM task_run"))
    steps = {"load", "baseline", "golden/good", "golden/bad", "record", "measure", "judge", "report"}
    assert states == {step: "TaskFailed" if step == "golden/bad" else "Completed" for step in steps}
    (run_folder,) = gate.run_folders()
    ((name, message),) = stored(
        gate, "SELECT state_name, message FROM flow_run f JOIN flow_run_state s ON s.id = f.state_id"
    )
    assert name == "GateFailed"
    assert f"run {run_folder.name}, kept in {run_folder}" in message
    assert "task_failed, golden/bad: " in message.splitlines()[-1]
    ((why,),) = stored(gate, "SELECT message FROM task_run_state WHERE name = 'TaskFailed'")
    assert why.startswith("0/2 trials passed; state_check: ")
    assert stored(gate, "SELECT resource_id FROM event_resources WHERE resource_id LIKE 'passgate.%'")
    logged = "\n".join(row[0] for row in stored(gate, "SELECT message FROM log"))
    assert all(line in logged for line in message.splitlines())
    artifacts = {key: json.loads(str(data)) for key, data in stored(gate, "SELECT key, data FROM artifact")}
    kinds = {"": "markdown", "-suites": "table", "-tasks": "table", "-page": "markdown", "-progress": "progress"}
    assert dict(stored(gate, "SELECT key, type FROM artifact")) == {
        f"gate-ci-merge{what}": kind for what, kind in kinds.items()
    }
    page = (run_folder / "report.html").as_uri()
    assert artifacts["gate-ci-merge-page"] == f"[{run_folder.name}]({page})"
    for told in (run_folder.name, "ci_merge FAIL", "golden/bad"):
        assert told in artifacts["gate-ci-merge"]
    assert json.loads(artifacts["gate-ci-merge-suites"])[0]["trials"] == "2/4"
    assert [row["task"] for row in json.loads(artifacts["gate-ci-merge-tasks"])] == ["golden/bad", "golden/good"]
    assert artifacts["gate-ci-merge-progress"] == 100


def test_every_failed_task_has_a_failed_task_run_where_tasks_share_batches(gate: Project) -> None:
    for number in range(33):
        gate.write(f"suites/golden/t{number}.yaml", WRITES_OK.format(name=f"t{number}"))
    gate.passgate("run", "ci_merge", "--agent", "nop", timeout=280, **PATIENT)
    failed = dict(stored(gate, "SELECT r.name, message FROM task_run r JOIN task_run_state s ON s.id = r.state_id"))
    assert all(str(failed[f"golden/t{number}"]).startswith("0/2 trials passed") for number in range(33)), failed


def test_three_runs_at_once_share_a_home_of_prefect(gate: Project) -> None:
    runs = [
        subprocess.Popen(
            # With one history, a run that begins when the other has ended finds that the task failed before.
            gate.command(*run_of(gate), "--history", f"history-{number}"),
            cwd=gate.path,
            env=gate.full_environment(**PATIENT),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(3)
    ]
    for run in runs:
        _, stderr = run.communicate(timeout=280)
        assert run.returncode == 1, stderr
        assert "passgate:" not in stderr, "none has been without the engine"
    assert stored(gate, "SELECT state_name FROM flow_run") == [("GateFailed",)] * 3


def test_an_engine_that_cannot_be_reached_costs_no_verdict(gate: Project) -> None:
    ended = gate.passgate(*run_of(gate), PREFECT_API_URL="http://127.0.0.1:9/api")
    assert (ended.returncode, decision(gate)) == (1, "FAIL")
    (told,) = [line for line in ended.stderr.splitlines() if line.startswith("passgate:")]
    assert "PREFECT_API_URL" in told
    assert GOES_ON in told


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
        ended = gate.passgate(*run_of(gate), *pool, PREFECT_API_URL=f"http://127.0.0.1:{port}/api", timeout=200)
        unauthorized.shutdown()
    assert ended.returncode == 3, ended.stderr
    (told,) = [line for line in ended.stderr.splitlines() if line.startswith("passgate:")]
    assert (f"127.0.0.1:{port}/api (PREFECT_API_URL)" in told, GOES_ON in told) == (True, False), told
    assert told.endswith(f"the work pool trials needs Prefect; {how_to_resume(gate.path)}")
    assert "401" in told or server == "dead"


def test_an_engine_that_never_answers_costs_no_verdict(gate: Project) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/api"
        ended = gate.passgate(*run_of(gate), PREFECT_API_URL=url, timeout=100)
    assert (ended.returncode, decision(gate)) == (1, "FAIL")
    assert GOES_ON in ended.stderr


def test_a_prefect_that_cannot_be_imported_costs_no_verdict(gate: Project) -> None:
    gate.write("site/prefect/__init__.py", "raise RuntimeError('not installed as it should be')")
    ended = gate.passgate(*run_of(gate), PYTHONPATH=str(gate.path / "site"))
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
        with closing(HTTPConnection(urlsplit(self.server_url).netloc, timeout=60)) as connection:
            connection.request(self.command, self.path, body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            return response.status, response.read()

    def log_message(self, *_: object) -> None: ...


@contextmanager
def breakable(server_url: str, broken: Path) -> Iterator[str]:
    """The URL of an API that works until a file is there, and answers 503 from then on."""
    handler = type("Handler", (_Breakable,), {"server_url": server_url, "broken": broken})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as proxy:
        thread = threading.Thread(target=proxy.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{proxy.server_address[1]}/api"
        finally:
            proxy.shutdown()
            thread.join()


def test_a_server_that_answers_503_from_the_first_trial_on_costs_no_verdict(
    gate: Project, prefect_server: dict[str, str], tmp_path: Path
) -> None:
    broken = tmp_path / "broken"
    gate.write("agent.sh", "sleep 3; printf ok > good")
    with breakable(prefect_server["PREFECT_API_URL"], broken) as url:
        gate.environment |= {**prefect_server, "PREFECT_API_URL": url, **IMPATIENT}
        threading.Thread(target=_break_at_the_first_trial, args=(gate, broken), daemon=True).start()
        ended = gate.passgate(*run_of(gate), timeout=200)
    assert broken.exists()
    assert (ended.returncode, decision(gate)) == (1, "FAIL"), ended.stderr
    assert "bug" not in ended.stderr
    assert "Traceback" not in ended.stderr


def _break_at_the_first_trial(project: Project, broken: Path) -> None:
    wait_until(lambda: any(project.path.glob(".passgate/runs/*/journal.jsonl")))
    broken.touch()


def test_a_server_that_is_killed_in_mid_run_costs_no_verdict(
    gate: Project, tmp_path_factory: pytest.TempPathFactory
) -> None:
    gate.write("agent.sh", "sleep 3; printf ok > good")
    with started_server(tmp_path_factory.mktemp("own")) as server:
        gate.environment |= server.environment | IMPATIENT
        run = subprocess.Popen(
            gate.command(*run_of(gate)), cwd=gate.path, env=gate.full_environment(), stderr=subprocess.PIPE, text=True
        )
        wait_until(lambda: any(gate.path.glob(".passgate/runs/*/journal.jsonl")))
        os.killpg(server.process_id, signal.SIGKILL)
        _, stderr = run.communicate(timeout=200)
    assert (run.returncode, decision(gate)) == (1, "FAIL"), stderr
    assert "a bug" not in stderr
    assert "Traceback" not in stderr


def test_a_server_that_is_down_and_locked_in_mid_run_learns_of_it_all_when_it_is_back(
    gate: Project, tmp_path: Path
) -> None:
    home, port = tmp_path / "own", free_port()
    gate.write("agent.sh", f"while [ ! -e {gate.path}/go ]; do sleep 0.1; done; printf ok > good")
    with started_server(home, port) as server:
        gate.environment |= {**server.environment, "PASSGATE_PREFECT_SECONDS": "200"}
        run = subprocess.Popen(
            gate.command(*run_of(gate)), cwd=gate.path, env=gate.full_environment(), stderr=subprocess.PIPE, text=True
        )
        wait_until(lambda: any(gate.path.glob(".passgate/runs/*/journal.jsonl")))
    time.sleep(10)
    gate.write("go", "")
    wait_until(lambda: any(gate.path.glob(".passgate/runs/*/verdict.json")))
    time.sleep(10)
    with started_server(home, port), closing(sqlite3.connect(home / "prefect.db", timeout=60)) as database:
        database.execute("BEGIN EXCLUSIVE")
        time.sleep(5)
        database.rollback()
        _, stderr = run.communicate(timeout=200)
        assert (run.returncode, decision(gate)) == (1, "FAIL"), stderr
        gate.environment["PREFECT_HOME"] = str(home)
        assert stored(gate, "SELECT state_name FROM flow_run") == [("GateFailed",)]
        assert ("gate-ci-merge-tasks",) in stored(gate, "SELECT key FROM artifact")
        shown = dict(stored(gate, "SELECT name, state_name FROM task_run"))
        assert (shown["golden/bad"], shown["golden/good"]) == ("TaskFailed", "Completed")


def test_a_database_that_is_locked_in_mid_run_costs_no_verdict_and_no_state(gate: Project, tmp_path: Path) -> None:
    home = tmp_path / "own"
    gate.write("agent.sh", f"while [ ! -e {gate.path}/go ]; do sleep 0.1; done; printf ok > good")
    with started_server(home) as server, closing(sqlite3.connect(home / "prefect.db", timeout=60)) as database:
        gate.environment |= {**server.environment, "PASSGATE_PREFECT_SECONDS": "200"}
        run = subprocess.Popen(
            gate.command(*run_of(gate)), cwd=gate.path, env=gate.full_environment(), stderr=subprocess.PIPE, text=True
        )
        with run:
            wait_until(lambda: any(gate.path.glob(".passgate/runs/*/journal.jsonl")))
            database.execute("BEGIN EXCLUSIVE")
            gate.write("go", "")
            wait_until(lambda: any(gate.path.glob(".passgate/runs/*/verdict.json")))
            database.rollback()
            _, stderr = run.communicate(timeout=300)
        assert (run.returncode, decision(gate)) == (1, "FAIL"), stderr
        gate.environment["PREFECT_HOME"] = str(home)
        assert stored(gate, "SELECT state_name FROM flow_run") == [("GateFailed",)]


@pytest.mark.parametrize("mode", ["none", "embedded", "server"])
def test_a_signal_in_a_trial_ends_the_run_in_every_mode_and_leaves_nothing_behind(
    gate: Project, mode: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    if mode == "server":
        gate.environment |= request.getfixturevalue("prefect_server")
    mark, temporary = f"4242.{time.time_ns()}", tmp_path / "temporary"
    temporary.mkdir()
    gate.environment["TMPDIR"] = str(temporary)
    gate.write("agent.sh", f"sleep {mark}")
    engine = "none" if mode == "none" else "prefect"
    command = gate.command(*run_of(gate), "--engine", engine)
    gate.environment |= PATIENT
    begun = f"sleep\x00{mark}"
    ended = interrupted(gate, command, signal.SIGTERM, lambda: marked_processes(begun) != [], 240, ends_within=10)
    assert ended.returncode == 130, ended.stderr
    assert ended.stderr.splitlines()[-1].endswith(how_to_resume(gate.path))
    assert "Traceback" not in ended.stderr
    assert marked_processes(mark) == marked_processes(f"{gate.path}/agent.sh") == []
    assert list(temporary.glob("*/*")) == []
    if mode == "embedded":
        assert stored(gate, "SELECT state_type FROM flow_run") == [("CANCELLED",)]


def test_a_signal_while_the_engine_starts_ends_the_run_with_the_way_to_carry_it_on(gate: Project) -> None:
    gate.write("site/prefect/__init__.py", "import time; time.sleep(4242)")
    run = subprocess.Popen(
        gate.command(*run_of(gate)),
        cwd=gate.path,
        env=gate.full_environment(PYTHONPATH=str(gate.path / "site")),
        stderr=subprocess.PIPE,
        text=True,
    )
    with run:
        wait_until(lambda: any(gate.path.glob(".passgate/runs/*/plan.json")))
        run.send_signal(signal.SIGTERM)
        _, stderr = run.communicate(timeout=60)
    assert run.returncode == 130
    assert "interrupted" in stderr
    assert "Traceback" not in stderr


def test_an_engine_that_takes_too_long_is_done_without(gate: Project) -> None:
    gate.write("site/prefect/__init__.py", "import time; time.sleep(4242)")
    ended = gate.passgate(*run_of(gate), PYTHONPATH=str(gate.path / "site"))
    assert (ended.returncode, decision(gate)) == (1, "FAIL")
    assert "starting Prefect\n" in ended.stderr
    assert f"Prefect did not start within 20 s; {GOES_ON}" in ended.stderr


def test_an_engine_of_another_name_is_bad_usage(gate: Project) -> None:
    ended = gate.passgate(*run_of(gate), "--engine", "dagster")
    assert ended.returncode == 2
    assert "--engine" in ended.stderr
