"""The agent's part of a trial: one turn, or a conversation with a user."""

import asyncio
import secrets
import time
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from passgate.tasks.agents.conversation.turns import Turn, merged, messages_of
from passgate.tasks.agents.conversation.users import SilentUser, User, user_of
from passgate.tasks.agents.interface import Agent, AgentSandbox, Attempt
from passgate.tasks.agents.oracle import NopAgent, OracleAgent
from passgate.tasks.agents.replay import ReplayAgent
from passgate.tasks.errors import MeasurementError
from passgate.tasks.metering.access import ModelAccess, TrialTranscript
from passgate.tasks.model.grade import LlmJudge
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.transcript import EndReason, Message, Transcript

_ALONE: Final = (OracleAgent, NopAgent, ReplayAgent)
"""Agents whose first turn is the whole conversation: what the user says is recorded, or of no use to them."""
_BY_THE_METER: Final = frozenset({EndReason.OVER_BUDGET, EndReason.FORBIDDEN_CALL})


async def converse(
    agent: Agent,
    task: EvalTask,
    trial: int,
    sandbox: AgentSandbox,
    access: ModelAccess,
    user: LlmJudge | None,
    *,
    seconds: float,
    grace: float = 5.0,
) -> TrialTranscript:
    """Let the agent do its part of a trial; its transcript, with the seconds that the agent took.

    Its turns take at most `seconds` together; the time of a played user is not the agent's. Once the meter says that
    the trial is over the agent has `grace` seconds more, then it is ended. `user` plays the user of a task that asks
    for one. The error is that of the meter, else that of the agent or the user. Raises `MeasurementError` when nobody
    can play the user.
    """
    person = SilentUser() if isinstance(agent, _ALONE) else user_of(task, user)
    place = _Place(task, trial, sandbox, access, secrets.token_hex(16))
    over = asyncio.ensure_future(access.over())
    try:
        played = await _all_turns(agent, person, place, _Limits(seconds, grace, over))
    finally:
        over.cancel()
        await agent.end_session(place.session)
    known = await access.transcript(merged(played.turns))
    update: dict[str, Any] = {"wall_time_seconds": played.seconds}
    if known.transcript.end is EndReason.NOT_STARTED and known.transcript.steps:
        update["end"] = EndReason.CRASHED
    # An agent may well break when the meter refuses it its models: then that is how the trial has ended.
    error = None if known.transcript.end in _BY_THE_METER else known.error or played.error
    return TrialTranscript(known.transcript.model_copy(update=update), error)


@dataclass(frozen=True)
class _Place:
    """Whose conversation it is and where."""

    task: EvalTask
    trial: int
    sandbox: AgentSandbox
    access: ModelAccess
    session: str

    def attempt(self, said: Message, turns: Sequence[Turn]) -> Attempt:
        """The next turn as the agent is asked for it."""
        return Attempt(
            task_id=self.task.task_id,
            test_id=self.task.own_id,
            trial=self.trial,
            prompt=said.content,
            inputs=self.task.inputs,
            workspace=self.sandbox.workspace,
            budgets=self.task.budgets,
            turn=len(turns),
            history=messages_of(turns),
            messages=self.task.messages,
            files=self.sandbox.files,
            session=self.session,
            variables=self.access.variables,
        )


@dataclass(frozen=True)
class _Limits:
    seconds: float
    grace: float
    over: asyncio.Future[None]


@dataclass
class _Played:
    """What was said until somebody ended the conversation."""

    turns: list[Turn] = field(default_factory=list)
    seconds: float = 0.0
    """That the agent took for them."""
    error: MeasurementError | None = None
    """Why the agent or the user could not go on."""


async def _all_turns(agent: Agent, person: User, place: _Place, limits: _Limits) -> _Played:
    played = _Played()
    said: Message | None = Message(role="user", content=place.task.prompt)
    while said is not None:
        started = time.monotonic()
        found = await _one_turn(agent, said, played.turns, place, limits, limits.seconds - played.seconds)
        played.seconds += time.monotonic() - started
        played.turns.append(Turn(said, found.transcript))
        played.error = found.error
        if found.error or found.transcript.end is not EndReason.COMPLETED or limits.over.done():
            break
        try:
            said = await person.next(played.turns)
        except MeasurementError as error:
            played.error = error
            break
    return played


async def _one_turn(
    agent: Agent, said: Message, before: Sequence[Turn], place: _Place, limits: _Limits, seconds: float
) -> TrialTranscript:
    if seconds <= 0:
        return TrialTranscript(Transcript(messages=(said,), complete=False, end=EndReason.TIMED_OUT))
    attempt = place.attempt(said, before)
    running = agent.run(place.task, attempt, place.sandbox, place.access, seconds=seconds)
    try:
        answer = await _watched(running, limits)
    except MeasurementError as error:
        return TrialTranscript(_ended(said, str(error)), error)
    return TrialTranscript(answer or _ended(said, f"ended {limits.grace:g} s after the models were closed to it"))


async def _watched(running: Coroutine[Any, Any, Transcript], limits: _Limits) -> Transcript | None:
    """The agent's transcript; `None` when it had to be ended because the trial is over."""
    agent = asyncio.ensure_future(running)
    try:
        waiting: set[asyncio.Future[Any]] = {agent, limits.over}
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait({agent}, timeout=limits.grace)
        return agent.result() if agent.done() else None
    finally:
        if not agent.done():
            agent.cancel()
            await asyncio.wait({agent})


def _ended(said: Message, detail: str) -> Transcript:
    return Transcript(messages=(said,), complete=False, end=EndReason.CRASHED, detail=detail)
