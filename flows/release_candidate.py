"""The gate of a release: all four suites, strict, and a person's approval.

The flow pauses until somebody decides, in Prefect's UI or in a shell.
"""

import asyncio
import math
import time
from contextlib import suppress
from typing import Literal

from prefect.flow_runs import apause_flow_run
from prefect.input import RunInput
from pydantic import Field

from passgate.flows.prefect_engine import gate_flow
from passgate.tasks.commands.sign_off import sign_off
from passgate.tasks.errors import PassgateError, StorageError
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.model.task import GateName
from passgate.tasks.model.verdict import Verdict, verdict_digest
from passgate.tasks.reports.escape import markdown

_POLL_SECONDS = 5
_LONGEST = 1000
_GRACE_SECONDS = 3600
"""How much longer Prefect pauses than passgate waits: after the pause, Prefect accepts no state of the flow run."""


class SignOffInput(RunInput):
    """A person's decision on a verdict."""

    by: str = Field(min_length=1, description="Who decides.")
    decision: Literal["approve", "reject"] = Field(description="PASS or FAIL.")
    reason: str = Field(min_length=1, description="Why.")


async def wait_for_sign_off(verdict: Verdict, seconds: float) -> Verdict:
    """Pause until the verdict is signed off, here or by the command, at most `seconds`. Return the verdict then."""
    store, why = RunStore.of(verdict.run_id), ""
    deadline = time.monotonic() + seconds
    while verdict.awaiting_sign_off and (left := deadline - time.monotonic()) > 0:
        answer = await _decision(store, _description(verdict, why), left)
        if answer is not None:
            try:
                sign_off(verdict.run_id, by=answer.by, decision=answer.decision, reason=answer.reason)
            except PassgateError as error:
                why = str(error)
        verdict = store.read_verdict() or verdict
    return verdict


async def _decision(store: RunStore, description: str, seconds: float) -> SignOffInput | None:
    """Return the input of the person who resumes the run, or `None` after `seconds` or a sign-off by the command."""
    wanted = SignOffInput.with_initial_data(description=description)
    poll = max(1, min(_POLL_SECONDS, int(seconds / 10)))
    pause = apause_flow_run(wanted, timeout=math.ceil(seconds) + _GRACE_SECONDS, poll_interval=poll)
    ways = (asyncio.ensure_future(pause), asyncio.create_task(_wait_for_command(store)))
    try:
        await asyncio.wait(ways, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        return ways[0].result() if ways[0].done() else None
    finally:
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)


async def _wait_for_command(store: RunStore) -> None:
    """Wait until the verdict needs no sign-off any more, by a command here or on another machine."""
    while True:
        with suppress(StorageError):
            await asyncio.to_thread(store.fetch_sign_off)
        verdict = store.read_verdict()
        if verdict is not None and not verdict.awaiting_sign_off:
            return
        await asyncio.sleep(_POLL_SECONDS)


def _description(verdict: Verdict, why: str) -> str:
    """Return the text that Prefect shows to the person who decides, in Markdown."""
    refused = f"The last sign-off was refused: {markdown(why, _LONGEST)}\n\n" if why else ""
    return (
        f"{refused}{markdown(verdict.headline)}\n\nRun {markdown(verdict.run_id)}, agent {markdown(verdict.agent)}, "
        f"commit {verdict.revision.commit or 'none'}\n\nDigest of the verdict: {verdict_digest(verdict)}"
    )


release_candidate = gate_flow(GateName.RELEASE_CANDIDATE, wait_for_sign_off)
