"""The progress of a run as an artifact in Prefect, from the run's journal."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from uuid import UUID

from prefect.artifacts import acreate_progress_artifact, aupdate_progress_artifact

from passgate.flows.cli.progress import JournalFollower
from passgate.flows.display.artifacts import artifact_key
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.model.run import Plan

_SECONDS = 5.0  # Between two looks
_SECONDS_TO_END = 5.0


@asynccontextmanager
async def progress_artifact(plan: Plan) -> AsyncIterator[None]:
    """Show how many trials of a plan have ended while the context lasts, as far as Prefect lets."""
    progress = _JournalProgress(plan)
    showing = asyncio.create_task(progress.show())
    try:
        yield
    finally:
        showing.cancel()
        await asyncio.gather(showing, return_exceptions=True)
        with suppress(Exception):
            await asyncio.wait_for(progress.update(), _SECONDS_TO_END)


class _JournalProgress:
    def __init__(self, plan: Plan) -> None:
        self._totals = sum((Counter({str(task.suite): task.k}) for task in plan.tasks), Counter[str]())
        self._key = artifact_key(plan.gate, "progress")
        self._follower = JournalFollower(RunStore.of(plan.run_id))
        self._artifact: UUID | None = None
        self._shown = ""

    async def show(self) -> None:
        while True:
            # The next look shows what this one could not.
            with suppress(Exception):
                await self.update()
            await asyncio.sleep(_SECONDS)

    async def update(self) -> None:
        # A long journal can take seconds to read.
        counts = await asyncio.to_thread(self._follower.counts)
        done = {suite: min(counts.get(suite, Counter()).total(), total) for suite, total in self._totals.items()}
        shown = "; ".join(f"{suite}: {done[suite]}/{total} trials" for suite, total in self._totals.items())
        percent = 100 * sum(done.values()) / max(1, self._totals.total())
        if self._artifact is None:
            self._artifact = await acreate_progress_artifact(percent, self._key, shown)
        elif shown != self._shown:
            await aupdate_progress_artifact(self._artifact, percent, shown)
        self._shown = shown
