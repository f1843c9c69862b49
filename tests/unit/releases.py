"""Releases that await a sign-off, and what is decided on them."""

from pathlib import Path
from typing import Any

import pytest

from passgate.tasks.commands.sign_off import sign_off
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.model.verdict import Verdict
from tests.repositories import GitRepository
from tests.signing import a_run_that_awaits, write_gate


def release_repository(folder: Path, monkeypatch: pytest.MonkeyPatch) -> GitRepository:
    """A new repository as the working folder: with a gate that wants a sign-off, and no settings of this machine."""
    for name in ("GITHUB_STEP_SUMMARY", "SECRET_WORD", "PASSGATE_SIGNING_PASSPHRASE"):
        monkeypatch.delenv(name, raising=False)
    repository = GitRepository(folder)
    repository.write(".gitignore", ".passgate/\n")
    write_gate(folder)
    monkeypatch.chdir(folder)
    return repository


def committed_run(repository: GitRepository) -> RunStore:
    """A run of all that lies there, which is committed, ended with a verdict that awaits a sign-off."""
    repository.commit()
    return a_run_that_awaits()


def decide(run: RunStore, decision: Any = "approve", **changes: Any) -> Verdict:
    """What Ada decides on a run."""
    return sign_off(run.path.name, **({"by": "Ada", "decision": decision, "reason": "read every transcript"} | changes))


def verdict_of(run: RunStore) -> Verdict:
    verdict = run.read_verdict()
    assert verdict is not None
    return verdict


def files_of(run: RunStore) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in run.path.iterdir() if file.is_file()}
