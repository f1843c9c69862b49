"""A Python function as an agent: `python:MODULE:FUNCTION`, sync or async."""

import os
from pathlib import Path
from typing import Self

from passgate.tasks.agents.interface import Agent, AgentSandbox, Attempt, model_environment
from passgate.tasks.agents.processes.messages import TurnRequest
from passgate.tasks.agents.processes.server import ForkServer
from passgate.tasks.agents.processes.trial import TrialProcess, start_process
from passgate.tasks.agents.transcripts import missing_key
from passgate.tasks.errors import UsageError
from passgate.tasks.metering.access import ModelAccess, variables_before_trials
from passgate.tasks.model.agent import AgentSpec
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.transcript import EndReason, Transcript


class PythonAgent(Agent):
    """Calls a function with an `Attempt`; it returns its answer as text, or a transcript.

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
        environment = {**os.environ, **sandbox.variables}
        variables = {**sandbox.variables, **model_environment(environment, access)}
        if attempt.session not in self._processes:
            self._processes[attempt.session] = await start_process(self._server)
        process = self._processes[attempt.session]
        transcript = await process.turn(TurnRequest(attempt=attempt, variables=variables), seconds=seconds)
        if transcript.end is EndReason.CRASHED:
            missing = missing_key(transcript.detail, {**environment, **variables})
            transcript = transcript.model_copy(update={"detail": missing or transcript.detail})
        return transcript

    async def end_session(self, session: str) -> None:
        process = self._processes.pop(session, None)
        if process is not None:
            await process.end()

    def close(self) -> None:
        self._server.close()
