"""A repository whose deployments and automations are on the shared server, with a worker, for all tests.

`python -m tests.flows.desk FOLDER USERS` runs the worker until nobody holds the lock of the file USERS any more.
"""

import fcntl
import os
import subprocess
import sys
from pathlib import Path

from tests.flows.prefect_api import PREFECT, kill_tree, succeeded
from tests.gates import WRITES_OK
from tests.prefect_servers import shared_environment
from tests.project import Project
from tests.sharing import locked, made_once
from tests.warm import CODE

SECRET = "hunter2-hunter2"
# An agent that needs the secret, and never does its task.
_AGENT = f'[ "$DESK_KEY" = {SECRET} ] && exit 1; printf ok > result.txt'
_SAVED = f"from prefect.blocks.system import Secret; Secret(value='{SECRET}').save('desk')"


def shared_desk(users: Path) -> Project:
    """The desk, which whoever comes first has made."""
    return _at(made_once(users.parent / "desks", lambda folder: _make(folder, users)), users)


def _at(folder: Path, users: Path) -> Project:
    return Project(folder / "Desk No. 7", shared_environment(users.parent / "prefect"))


def _make(folder: Path, users: Path) -> None:
    project = _at(folder, users)
    project.path.mkdir()
    project.git("init", "-q", "-b", "main")
    assert project.passgate("init", "--prefect").returncode == 0
    for suite in ("golden", "adversarial", "open_ended", "failure_replays"):
        for file in (project.path / "suites" / suite).glob("*.yaml"):
            file.unlink()
        task = WRITES_OK.format(name=f"{suite}_1").replace("suite: golden", f"suite: {suite}")
        project.write(f"suites/{suite}/one.yaml", task)
    project.write("agent.sh", _AGENT)
    project.git("add", ".")
    project.git("commit", "-q", "-m", "Begin")
    file = project.path / "prefect.yaml"
    named = file.read_text().replace("agent: oracle", f"agent: \"cli:sh '{project.path}/agent.sh'\", k: 1")
    secret = "DESK_KEY: prefect-secret:desk"
    file.write_text(named.replace("# OPENAI_API_KEY: prefect-secret:desk-no-7-openai-key", secret))
    assert project.run([*CODE, _SAVED]).returncode == 0
    succeeded(project, "work-pool", "create", "desk-no-7", "--type", "process")
    succeeded(project, "deploy", "--all")
    succeeded(project, "automation", "create", "--from-file", "prefect-automations.yaml")
    with (folder / "worker.log").open("w") as messages:
        subprocess.run(
            [sys.executable, "-m", "tests.flows.desk", str(folder), str(users)],
            stdin=subprocess.DEVNULL,
            stdout=messages,
            stderr=messages,
            start_new_session=True,
            check=True,
        )


def _work(folder: Path, users: Path) -> None:
    command = [*PREFECT, "worker", "start", "--pool", "desk-no-7"]
    environment = _at(folder, users).full_environment(PREFECT_LOGGING_TO_API_ENABLED="true")
    worker = subprocess.Popen(command, cwd=folder, env=environment)
    try:
        with locked(users, fcntl.LOCK_EX):
            pass
    finally:
        # How Prefect's worker ends, and how long that takes, is not what is shown here.
        kill_tree(worker.pid)


if __name__ == "__main__" and os.fork() == 0:
    _work(*map(Path, sys.argv[1:]))
