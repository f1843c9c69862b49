"""The agent's part of a trial: one turn, or a conversation with a user."""

import asyncio
import secrets
import time
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Final

from passgate.tasks.agents.conversation.turns import Turn, merged, messages_of
from passgate.tasks.agents.conversation.users import SilentUser, User, user_of
from passgate.tasks.agents.interface import Agent, AgentSandbox, Attempt
from passgate.tasks.agents.oracle import NopAgent, OracleAgent
from passgate.tasks.agents.replay import ReplayAgent
from passgate.tasks.budgets.access import ModelAccess
from passgate.tasks.errors import MeasurementError
from passgate.tasks.model.judge import Judge
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
    user: Judge | None,
    *,
    seconds: float,
    grace: float = 5.0,
) -> Transcript:
    """Let the agent do its part of a trial; its transcript, with the seconds that the agent took.

    Its turns take at most `seconds` together; the time of a played user is not the agent's. Once the meter says that
    the trial is over the agent has `grace` seconds more, then it is ended. `user` plays the user of a task that asks
    for one. Raises `MeasurementError` when nobody can, and as the agent and the meter do.
    """
    person = SilentUser() if isinstance(agent, _ALONE) else user_of(task, user)
    place = _Place(task, trial, sandbox, access, secrets.token_hex(16))
    over = asyncio.ensure_future(access.over())
    try:
        turns, spent = await _all_turns(agent, person, place, _Limits(seconds, grace, over))
    finally:
        over.cancel()
    transcript = await access.transcript(merged(turns))
    update: dict[str, Any] = {"wall_time_seconds": spent}
    if transcript.end is EndReason.NOT_STARTED and transcript.steps:
        update["end"] = EndReason.CRASHED
    return transcript.model_copy(update=update)


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


async def _all_turns(agent: Agent, person: User, place: _Place, limits: _Limits) -> tuple[list[Turn], float]:
    """The turns until somebody ends the conversation, and the seconds that the agent took for them."""
    turns: list[Turn] = []
    spent = 0.0
    said: Message | None = Message(role="user", content=place.task.prompt)
    while said is not None:
        started = time.monotonic()
        transcript = await _one_turn(agent, said, turns, place, limits, limits.seconds - spent)
        spent += time.monotonic() - started
        turns.append(Turn(said, transcript))
        if transcript.end is not EndReason.COMPLETED or limits.over.done():
            break
        said = await person.next(turns)
    return turns, spent


async def _one_turn(
    agent: Agent, said: Message, before: Sequence[Turn], place: _Place, limits: _Limits, seconds: float
) -> Transcript:
    if seconds <= 0:
        return Transcript(messages=(said,), complete=False, end=EndReason.TIMED_OUT)
    attempt = place.attempt(said, before)
    running = agent.run(place.task, attempt, place.sandbox, place.access, seconds=seconds)
    try:
        answer = await _watched(running, limits)
    except MeasurementError as error:
        # An agent may well break when the meter refuses it its models: then that is how the trial has ended.
        ended = _ended(said, str(error))
        known = await place.access.transcript(merged([*before, Turn(said, ended)]))
        if known.end not in _BY_THE_METER:
            raise
        return ended
    return answer or _ended(said, f"ended {limits.grace:g} s after the models were closed to it")


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
