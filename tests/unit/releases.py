"""What is decided on releases, and what is left of it."""

from typing import Any

from passgate.tasks.commands.sign_off import sign_off
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.model.verdict import Verdict


def decide(run: RunStore, decision: Any = "approve", **changes: Any) -> Verdict:
    """What Ada decides on a run."""
    return sign_off(run.here.name, **({"by": "Ada", "decision": decision, "reason": "read every transcript"} | changes))


def verdict_of(run: RunStore) -> Verdict:
    verdict = run.read_verdict()
    assert verdict is not None
    return verdict


def files_of(run: RunStore) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in run.here.iterdir() if file.is_file()}
