"""prefect.yaml as shipped: it deploys, and a worker's gate that fails fails the command that waits for it."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY, clean_environment

pytestmark = pytest.mark.slow
PREFECT = (sys.executable, "-m", "prefect", "--no-prompt")


def prefect(
    environment: dict[str, str], *arguments: str, folder: Path = REPOSITORY
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PREFECT, *arguments],
        cwd=folder,
        env={**clean_environment(), **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )


def test_the_gates_deploy_and_a_failed_gate_fails_who_watches_it(
    prefect_server: dict[str, str], tmp_path: Path
) -> None:
    assert prefect(prefect_server, "work-pool", "create", "passgate", "--type", "process").returncode == 0
    deployed = prefect(prefect_server, "deploy", "--all")
    assert deployed.returncode == 0, deployed.stdout + deployed.stderr
    listed = prefect(prefect_server, "deployment", "ls").stdout
    for name in ("ci_merge/ci-merge", "nightly/nightly", "release_candidate/re"):
        assert name in listed
    worker = subprocess.Popen(
        [*PREFECT, "worker", "start", "--pool", "passgate"],
        cwd=tmp_path,
        env={**clean_environment(), **prefect_server},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    folders = {"suites": f"{REPOSITORY}/suites", "history": f"{tmp_path}/history"}
    request = f"request={json.dumps({'agent': 'nop', 'task': '*retries*', **folders})}"
    try:
        watched = prefect(prefect_server, "deployment", "run", "ci_merge/ci-merge", "--param", request, "--watch")
    finally:
        # How Prefect's worker ends, and how long that takes, is not what is shown here.
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()
    assert "GateFailed" in watched.stdout, watched.stdout + watched.stderr
    assert watched.returncode == 1
