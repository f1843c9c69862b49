"""The meter of one trial: what it was asked, what it let pass and what became of it."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from passgate.tasks.errors import CostCapError, MeasurementError
from passgate.tasks.metering.access import ModelAnswer, TrialTranscript
from passgate.tasks.metering.ledger import AdmittedCall, Ledger
from passgate.tasks.metering.transcript_recorder import TranscriptRecorder, completed, rename_calls, replace_calls
from passgate.tasks.metering.trial_tools import Forbidden, TrialTools
from passgate.tasks.model.transcript import EndReason, ToolCall, Transcript, Usage
from passgate.tasks.providers.calls import CallProgress
from passgate.tasks.providers.client import UpstreamError
from passgate.tasks.providers.exchange import AskedCall, ModelReply, ModelRequest

Found = TypeVar("Found")
Complete = Callable[["TrialMeter", bytes], Awaitable[ModelAnswer]]
"""Asks a model for a trial, by the body of a chat completion."""
Span = tuple[float, float]  # Two moments of `time.monotonic()`
_MUCH_WAITED_SECONDS = 1.0
_MUCH_WAITED_SHARE = 0.1
_SETTLE_SECONDS = 5.0  # To wait for calls that an ended agent has left under way: their replies count


@dataclass(eq=False)
class TrialMeter:
    """A trial's way to the models; see `ModelAccess`."""

    base_urls: Mapping[str, str]
    api_key: str
    variables: Mapping[str, str]
    ledger: Ledger
    forbidden: Forbidden
    ask: Complete
    recorder: TranscriptRecorder = field(default_factory=TranscriptRecorder)
    was_asked: bool = False  # Whether the agent has sent a model call, answered or not
    was_answered: bool = False
    tools: TrialTools | None = None  # Where passgate runs the agent's tools
    mcp_url: str = ""
    _open: dict["MeteredCall", asyncio.Task[None] | None] = field(default_factory=dict)
    """The calls under way, and the tasks that bring them to their end."""
    _answering: set[asyncio.Task[Any]] = field(default_factory=set)
    _began_at: float = field(default_factory=time.monotonic)
    _waits: list[Span] = field(default_factory=list)

    def over(self) -> asyncio.Future[None]:
        """Return the future of `ModelAccess.over`."""
        return self.ledger.over()

    @property
    def paid(self) -> float:
        return self.ledger.paid

    @property
    def could_know(self) -> bool:
        """See `ModelAccess.could_know`."""
        return self.was_answered or not self.was_asked

    @property
    def seconds_waited(self) -> float:
        """See `ModelAccess.seconds_waited`. What calls side by side waited at the same time counts once."""
        now = time.monotonic()
        under_way = [(call.asked_at, call.started_at if call.progress.is_healthy else now) for call in self._open]
        total, until = 0.0, 0.0
        for begin, end in sorted([*self._waits, *under_way]):
            total += max(0.0, end - max(begin, until))
            until = max(until, end)
        return total

    async def transcript(self, reported: Transcript) -> TrialTranscript:
        """Return the transcript as `ModelAccess.transcript` does. If the agent has come to its end, wait for a call
        under way.

        What is certain goes first: a trial whose agent overran a budget has failed, whatever else went wrong.
        """
        if reported.end is EndReason.COMPLETED and self.ledger.end is None:
            tasks = [task for task in self._open.values() if task is not None]
            if tasks:
                await asyncio.wait(tasks, timeout=_SETTLE_SECONDS)
        else:
            self._note_trouble(reported.end)
        for call in list(self._open):
            call.abandon()
        tools = self.tools
        seen = self.recorder.transcript(tools.not_made if tools else ())
        if any(call.refused for call in reported.tool_calls):
            # Which calls were refused only the meter knows.
            calls = (call.model_copy(update={"refused": False}) for call in reported.tool_calls)
            reported = reported.model_copy(update={"messages": replace_calls(reported.messages, calls)})
        if tools is not None:
            seen, reported = rename_calls(seen, tools.task_name), rename_calls(reported, tools.task_name)
        knows_steps = seen.steps or (self.was_asked and not reported.complete)
        transcript = reported
        if knows_steps:
            serves = tools.serves if tools else lambda _: False
            transcript = completed(seen, reported, self.recorder.known_calls, serves)
        if tools is not None and tools.is_reached and transcript.end is EndReason.COMPLETED and tools.toolbox.missing:
            self.ledger.finish(EndReason.REPLAY_MISMATCH, tools.toolbox.missing)
        if self.ledger.end is None:
            return TrialTranscript(transcript, self.ledger.problem)
        end, detail = self.ledger.end
        return TrialTranscript(transcript.model_copy(update={"end": end, "detail": detail}))

    def _note_trouble(self, end: EndReason) -> None:
        """Record that an agent that ends while it waits for a provider in trouble, or for money of the run, has not
        failed by itself.
        """
        if self.ledger.waits_for_cap:
            self.ledger.trouble(CostCapError("what is left of the run's cost cap was reserved by other trials"))
        for call in self._open:
            if not call.progress.is_healthy:
                message = call.progress.message_at("the agent came to its end")
                self.ledger.trouble(UpstreamError(message, transient=True))
        waited, lasted = self.seconds_waited, time.monotonic() - self._began_at
        if (
            self.ledger.problem is None
            and end is EndReason.TIMED_OUT
            and waited > max(_MUCH_WAITED_SECONDS, _MUCH_WAITED_SHARE * lasted)
        ):
            message = (
                f"the agent's time was up, but for {waited:.3g} of {lasted:.3g} s it waited for its provider's turn"
            )
            self.ledger.trouble(MeasurementError(f"{message} or another attempt", transient=True))

    async def complete(self, content: bytes) -> ModelAnswer:
        """Answer as `ModelAccess.complete` does."""
        task = asyncio.ensure_future(self.ask(self, content))
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)
        # An agent whose time is up leaves the call under way: `transcript` looks what has become of it.
        return await asyncio.shield(task)

    async def until_closed(self, answering: Coroutine[Any, Any, Found]) -> Found | None:
        """Return the answer to a request of the agent; `None` if the trial is closed before."""
        task = asyncio.create_task(answering)
        self._answering.add(task)
        try:
            await asyncio.wait({task})
        finally:
            self._answering.discard(task)
            task.cancel()
        return None if task.cancelled() else task.result()

    def close(self) -> list[asyncio.Task[Any]]:
        """End what is still under way. Return the tasks that now come to their end by themselves."""
        ending = [*self._answering, *(task for task in self._open.values() if task is not None)]
        for call in list(self._open):
            call.abandon()
        for task in ending:
            task.cancel()
        return ending

    async def begin(self, request: ModelRequest, model: str, *, is_step: bool = True) -> "MeteredCall":
        """Admit a call, once there is room for it. Raises the `RefusalError` that the agent is answered with."""
        self.was_asked = True
        asked_at = time.monotonic()
        if is_step:
            # Also of a call that is refused: it tells what came of the tool calls before it.
            self.recorder.ask(request, asked_at)
        admission = await self.ledger.admit(request, model, is_step=is_step)
        call = MeteredCall(self, admission, asked_at)
        self._open[call] = None
        return call

    def attach(self, call: "MeteredCall", task: asyncio.Task[None]) -> None:
        """Name the task that brings a call to its end."""
        self._open[call] = task

    def end(self, call: "MeteredCall", *, in_vain: bool = False) -> bool:
        """End a call. Return whether it was still open. The wait for a call in vain is nobody's time."""
        if call not in self._open:
            return False
        del self._open[call]
        self._waits.append((call.asked_at, time.monotonic() if in_vain else call.started_at))
        return True

    def withhold(self, call: AskedCall, reply: object) -> bool:
        """Return whether a tool call is taken out of a reply: it is forbidden, or there is no budget for it."""
        if self.tools is not None:
            call = replace(call, tool=self.tools.normalise_name(call.tool))
        asked = ToolCall(tool=call.tool, arguments=dict(call.arguments))
        if self.forbidden(asked):
            name = call.tool if self.tools is None else self.tools.task_name(call.tool)
            self.ledger.finish(EndReason.FORBIDDEN_CALL, f"the model asked for the forbidden tool call {name}")
            return True
        if not self.ledger.take_tool_call():
            return True
        if self.tools is not None:
            self.tools.expect(call, reply)
        return False


class MeteredCall:
    """One model call between being let pass and its end, which comes once."""

    def __init__(self, trial: TrialMeter, admission: AdmittedCall, asked_at: float) -> None:
        self._trial = trial
        self.admission = admission
        self.asked_at = asked_at
        self.first_token_at: float | None = None
        self.progress = CallProgress()  # How far the provider has come with it
        self._refused: set[str] = set()

    @property
    def started_at(self) -> float:
        """When the provider was asked for what it answers; before, the agent waited for others."""
        return max(self.asked_at, self.progress.asked_at or 0.0)

    def start_writing(self) -> None:
        """Record that the model has begun to write."""
        self.first_token_at = self.first_token_at or time.monotonic()

    def withhold(self, call: AskedCall) -> bool:
        """Return whether a tool call of the reply is taken out of it."""
        refused = self._trial.withhold(call, self)
        if refused:
            self._refused.add(call.call_id)
        return refused

    def answer(self, reply: ModelReply) -> None:
        """Record the model's answer."""
        if not self._trial.end(self):
            return
        self._trial.was_answered = True
        usage = self._trial.ledger.settle(self.admission, reply.usage, reply.charges)
        if self.admission.is_step:
            self._write_down(reply, usage)
        else:
            self._trial.recorder.use(usage)

    def cut(self, reply: ModelReply) -> None:
        """Record a reply that was cut because a budget's limit was reached. Its usage is known only from below, so that
        counts and is not written down.
        """
        if not self._trial.end(self):
            return
        self._trial.ledger.cut_off(self.admission)
        known = reply.usage.tokens_in
        least_in = self.admission.estimate.least_in if known is None else known
        least = Usage(tokens_in=least_in, tokens_out=self.admission.max_tokens_out)
        self._trial.ledger.settle(self.admission, least)
        self._write_down(reply, reply.usage)

    def fail(self, why: str | MeasurementError) -> None:
        """Record that there was no answer; an error is not the agent's fault."""
        if not self._trial.end(self, in_vain=isinstance(why, MeasurementError)):
            return
        self._trial.ledger.release(self.admission)
        self._trial.ledger.unanswered(why)

    def abandon(self) -> None:
        """End a call before its answer is there: a step of which nothing is known."""
        if self._trial.end(self, in_vain=not self.progress.is_healthy):
            self._trial.ledger.abandon(self.admission)
            if self.admission.is_step:
                self._write_down(ModelReply(), Usage())

    def _write_down(self, reply: ModelReply, usage: Usage) -> None:
        refused = frozenset(n for n, call in enumerate(reply.calls) if call.call_id in self._refused)
        if self._trial.tools is not None:
            normalise = self._trial.tools.normalise_name
            reply = replace(reply, calls=tuple(replace(call, tool=normalise(call.tool)) for call in reply.calls))
        self._trial.recorder.answer(
            reply,
            usage,
            asked_at=self.started_at,
            answered_at=time.monotonic(),
            first_token_at=self.first_token_at,
            refused=refused,
        )
