"""A Python function as an agent: `python:MODULE:FUNCTION`, sync or async."""

import os
from pathlib import Path
from typing import Self

from passgate.tasks.agents.interface import Agent, AgentSandbox, Attempt, leading_to_models
from passgate.tasks.agents.missing_keys import without_key
from passgate.tasks.agents.processes.messages import (
    TurnAnswered,
    TurnCrashed,
    TurnRequest,
    TurnUnmeasurable,
    TurnUnreadable,
)
from passgate.tasks.agents.processes.server import ForkServer
from passgate.tasks.agents.processes.trial import NoReply, TrialProcess, start_process
from passgate.tasks.agents.transcripts import ended, transcript_of
from passgate.tasks.errors import MeasurementError, UsageError
from passgate.tasks.metering.access import ModelAccess
from passgate.tasks.metering.agent_variables import variables_before_trials
from passgate.tasks.model.agent import AgentSpec
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.transcript import EndReason, Message, Transcript


class PythonAgent(Agent):
    """Calls a function with an `Attempt`; it gives its answer as text, or a transcript.

    Every trial has a process of its own, which answers all its turns and ends with it. The module is imported once,
    before the first trial, and each process begins as a copy of that state. A module that reads at its import where its
    models are is imported anew in each process, once they can be reached.
    """

    def __init__(self, server: ForkServer) -> None:
        self._server = server
        self._processes: dict[str, TrialProcess] = {}

    @classmethod
    def from_spec(cls, spec: AgentSpec, suites_folder: Path) -> Self:
        """Import `MODULE:FUNCTION`, also from the working folder, in a process of its own. Raises `UsageError`."""
        module_name, _, function_name = spec.target.partition(":")
        if not module_name or not function_name:
            raise UsageError(f"the agent python:{spec.target} needs the form python:MODULE:FUNCTION")
        return cls(ForkServer(spec.target, variables_before_trials(spec)))

    async def run(
        self, task: EvalTask, attempt: Attempt, sandbox: AgentSandbox, access: ModelAccess, *, seconds: float
    ) -> Transcript:
        wanted = {**os.environ, **sandbox.variables}
        variables = {**sandbox.variables, **leading_to_models(wanted, access)}
        if attempt.session not in self._processes:
            self._processes[attempt.session] = await start_process(self._server)
        process = self._processes[attempt.session]
        reply = await process.turn(TurnRequest(attempt=attempt, variables=variables), seconds=seconds)
        printed = process.printed()
        asked = (Message(role="user", content=attempt.prompt),)
        match reply:
            case TurnAnswered():
                transcript = _recorded(reply, asked)
            case TurnUnmeasurable():
                raise MeasurementError(reply.message, transient=reply.transient)
            case TurnCrashed():
                transcript = ended(EndReason.CRASHED, without_key(reply.detail, {**wanted, **variables}), asked)
            case TurnUnreadable():
                transcript = ended(EndReason.UNREADABLE, reply.detail, asked)
            case NoReply():
                transcript = ended(reply.end, reply.detail, asked)
        return transcript.model_copy(update={"printed": printed}) if printed else transcript

    async def end_session(self, session: str) -> None:
        process = self._processes.pop(session, None)
        if process is not None:
            await process.end()

    def close(self) -> None:
        self._server.close()


def _recorded(reply: TurnAnswered, asked: tuple[Message, ...]) -> Transcript:
    """The transcript of a reply, once more looked at: what says it may be code of the agent's."""
    try:
        return transcript_of(reply.transcript)
    except MeasurementError as error:
        return ended(EndReason.UNREADABLE, str(error), asked)
