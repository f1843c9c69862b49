"""A Dask cluster of its own processes, which tests kill."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.flows.prefect_api import descendants
from tests.project import clean_environment
from tests.waiting import LIMIT, wait_until


def with_mark(processes: list[int], mark: str, file: str = "cmdline") -> list[int]:
    """Those of some processes that carry a mark in their command line or in another file of /proc."""
    found = []
    for one in processes:
        with suppress(OSError):
            found += [one] if mark.encode() in Path(f"/proc/{one}/{file}").read_bytes() else []
    return sorted(found)


@dataclass(frozen=True)
class DaskCluster:
    """A scheduler and two workers, each a process that its nanny starts again when it is killed."""

    address: str
    nannies: list["subprocess.Popen[bytes]"]

    def workers(self) -> list[int]:
        return with_mark([one for nanny in self.nannies for one in descendants(nanny.pid)], "spawn_main")


@contextmanager
def running_dask(folder: Path) -> Iterator[DaskCluster]:
    environment = {**clean_environment(), "PREFECT_HOME": str(folder / "prefect"), "OMP_NUM_THREADS": "1"}

    def started(*arguments: str) -> "subprocess.Popen[bytes]":
        with (folder / "messages.txt").open("a") as messages:
            command = [sys.executable, "-m", "distributed.cli." + arguments[0], *arguments[1:]]
            return subprocess.Popen(command, cwd=folder, env=environment, stdout=messages, stderr=messages)

    file = folder / "scheduler.json"
    at = ["--scheduler-file", str(file), "--no-dashboard"]
    processes = [started("dask_scheduler", *at, "--host", "127.0.0.1", "--port", "0")]
    try:
        wait_until(lambda: file.exists() and "address" in file.read_text())
        one = ["--nworkers", "1", "--nthreads", "1", "--memory-limit", "0"]
        processes += [started("dask_worker", *at, *one) for _ in range(2)]
        cluster = DaskCluster(json.loads(file.read_text())["address"], processes[1:])
        wait_until(lambda: len(cluster.workers()) == 2)
        yield cluster
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(timeout=LIMIT)
