"""The sign-off of a release through Prefect: the flow pauses until somebody has decided, in its UI or on a shell."""

import asyncio
import math
import time
from typing import Literal

from prefect.flow_runs import apause_flow_run
from prefect.input import RunInput
from pydantic import Field

from passgate.tasks.commands.sign_off import sign_off
from passgate.tasks.errors import PassgateError
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.model.verdict import Verdict, verdict_digest
from passgate.tasks.reports.escape import markdown

_POLL_SECONDS = 5
_LONGEST = 1000
_GRACE_SECONDS = 3600
"""By how much Prefect's pause is longer than ours: a flow run whose pause is over takes no state from us any more."""


class SignOffInput(RunInput):
    """What a person decides on a verdict."""

    by: str = Field(min_length=1, description="Who decides.")
    decision: Literal["approve", "reject"] = Field(description="PASS or FAIL.")
    reason: str = Field(min_length=1, description="Why.")


async def wait_for_sign_off(verdict: Verdict, seconds: float) -> Verdict:
    """Pause the flow run while its verdict awaits a sign-off, for at most so many seconds; gives the verdict then.

    Whoever resumes it is asked for a `SignOffInput`. A sign-off that is refused pauses the run again and says why; one
    by the command `passgate sign-off` ends the pause too.
    """
    store, why = RunStore.of(verdict.run_id), ""
    deadline = time.monotonic() + seconds
    while verdict.awaiting_sign_off and (left := deadline - time.monotonic()) > 0:
        said = await _said(store, _described(verdict, why), left)
        if said is not None:
            try:
                sign_off(verdict.run_id, by=said.by, decision=said.decision, reason=said.reason)
            except PassgateError as error:
                why = str(error)
        verdict = store.read_verdict() or verdict
    return verdict


async def _said(store: RunStore, description: str, seconds: float) -> SignOffInput | None:
    """What somebody says who resumes the run within so many seconds; nothing when it is signed off meanwhile."""
    ways = (asyncio.create_task(_resumed(description, seconds)), asyncio.create_task(_signed_elsewhere(store)))
    try:
        await asyncio.wait(ways, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        return ways[0].result() if ways[0].done() else None
    finally:
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)


async def _resumed(description: str, seconds: float) -> SignOffInput | None:
    """Pause the flow run; gives what it is resumed with."""
    wanted = SignOffInput.with_initial_data(description=description)
    poll = max(1, min(_POLL_SECONDS, int(seconds / 10)))
    return await apause_flow_run(wanted, timeout=math.ceil(seconds) + _GRACE_SECONDS, poll_interval=poll)


async def _signed_elsewhere(store: RunStore) -> None:
    """Wait until the verdict awaits no sign-off any more."""
    while True:
        verdict = store.read_verdict()
        if verdict is not None and not verdict.awaiting_sign_off:
            return
        await asyncio.sleep(_POLL_SECONDS)


def _described(verdict: Verdict, why: str) -> str:
    """What the one who decides is shown, in Markdown."""
    refused = f"The last sign-off was refused: {markdown(why, _LONGEST)}\n\n" if why else ""
    return (
        f"{refused}{markdown(verdict.headline)}\n\nRun {markdown(verdict.run_id)}, agent {markdown(verdict.agent)}, "
        f"commit {verdict.revision.commit or 'none'}\n\nDigest of the verdict: {verdict_digest(verdict)}"
    )
