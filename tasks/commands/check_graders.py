"""Check graders by running them on good and bad trials of their tasks.

The reference solution or the expected output of a task must pass. Doing nothing and every counterexample must fail. Bad
mutants of the transcript that passed are graded in the sandbox that it left behind. `probes` has these
transcripts, and `faults` says what is a fault.
"""

import asyncio
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeVar

from passgate.tasks.agents.conversation import converse
from passgate.tasks.agents.interface import Agent, AgentSandbox, Attempt
from passgate.tasks.agents.oracle import NopAgent, OracleAgent
from passgate.tasks.agents.replay import ReplayAgent
from passgate.tasks.errors import MeasurementError
from passgate.tasks.execution.resources import TrialResources, open_resources
from passgate.tasks.execution.trial import DEFAULT_SECONDS, run_trial
from passgate.tasks.formats.loading import grader_problem
from passgate.tasks.graders import TrialResult, grade, grade_trial, trial_result
from passgate.tasks.graders.evidence import Evidence
from passgate.tasks.graders.faults import Proof, Tried, grader_check
from passgate.tasks.graders.probes import Mutant, derived_transcript, is_regraded, mutants, refusals
from passgate.tasks.metering.access import ModelAccess, Unmetered
from passgate.tasks.metering.cost_cap import CostCap
from passgate.tasks.metering.usage import trial_metrics
from passgate.tasks.model.agent import AgentKind, AgentSpec
from passgate.tasks.model.checks import GraderCheck
from passgate.tasks.model.grade import Grade
from passgate.tasks.model.policy import Policy
from passgate.tasks.model.price import PriceTable
from passgate.tasks.model.task import Budgets, EvalTask
from passgate.tasks.model.transcript import Transcript
from passgate.tasks.model.trial import TrialStatus

T = TypeVar("T")

_ORACLE: Final = AgentSpec(kind=AgentKind.ORACLE)


async def check_graders(
    tasks: Mapping[Path, Sequence[EvalTask]], policy: Policy, prices: PriceTable
) -> list[GraderCheck]:
    """Return the check of every task, by their suites folders. Judges cost as in a run. Raises `UsageError`."""
    limit = asyncio.Semaphore(policy.concurrency.trials)
    checks: list[GraderCheck] = []
    for folder, of_folder in tasks.items():
        opened = open_resources(_ORACLE, folder, policy, prices=prices, cost_cap=CostCap(), tasks=of_folder)
        async with opened as resources:
            proofs = await _together(_prove(task, resources, limit) for task in of_folder)
        # A check quotes transcripts, so it may contain secrets.
        texts = (resources.masker.json(grader_check(proof).model_dump_json()) for proof in proofs)
        checks += map(GraderCheck.model_validate_json, texts)
    return checks


async def _together(works: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    # A task group: when one fails or all are cancelled, none goes on after the resources are closed.
    async with asyncio.TaskGroup() as group:
        running = [group.create_task(work) for work in works]
    return [one.result() for one in running]


async def _prove(task: EvalTask, resources: TrialResources, limit: asyncio.Semaphore) -> Proof:
    folder = resources.suites_folder
    if task.cannot_run:
        return Proof(task, grader_problem)
    examples = task.reference.counterexamples if task.reference else ()

    async def try_bad(what: str, agent: Agent) -> Tried:
        async with limit:
            finished = await run_trial(task, 0, replace(resources, agent=agent))
        trial = finished.trial
        return Tried(what, trial.status, trial.reason, trial.grades, finished.transcript)

    wrong = [try_bad(f"the counterexample {one.name!r}", OracleAgent(folder, one.name)) for one in examples]
    bad = await _together([try_bad("doing nothing", NopAgent()), *wrong])
    proof = Proof(task, grader_problem, bad=tuple(bad))
    derived = None
    if task.reference is not None or task.expected_messages or task.expected_output is not None:
        agent: Agent = OracleAgent(folder, None)
    elif task.replay is not None:
        agent = ReplayAgent(None, folder)
    elif (derived := derived_transcript(task)) is not None:
        agent = _TranscriptAgent(derived)
    else:
        return proof
    async with limit:
        tried = await _try_good(proof, agent, resources)
    # A derived transcript that fails proves nothing: nobody has said that it must pass.
    if derived is not None and (tried.good is None or tried.good.status is not TrialStatus.PASSED):
        return proof
    return replace(tried, derived=derived is not None)


class _TranscriptAgent(Agent):
    """An agent that says and does what a transcript holds."""

    def __init__(self, transcript: Transcript) -> None:
        self._transcript = transcript

    async def run(
        self, task: EvalTask, attempt: Attempt, sandbox: AgentSandbox, access: ModelAccess, *, seconds: float
    ) -> Transcript:
        """See `Agent.run`."""
        return self._transcript


async def _try_good(proof: Proof, agent: Agent, resources: TrialResources) -> Proof:
    """Return the proof with the good trial and, if it passes, with its mutants and the refusals."""
    task, what = proof.task, "the known-good"
    seconds = task.budgets.max_seconds or DEFAULT_SECONDS
    try:
        # Not by `run_trial`, which removes the sandbox: the mutants are graded in it.
        async with resources.workbench.sandbox(task) as sandbox:
            conversed = await converse(
                agent, task, 0, sandbox.for_the_agent, Unmetered(), resources.judge, seconds=seconds
            )
            transcript = conversed.result()
            evidence = Evidence(
                task=task,
                transcript=transcript,
                metrics=trial_metrics(transcript),
                sandbox=sandbox,
                suites_folder=resources.suites_folder,
                masker=resources.masker,
                judge=resources.judge,
            )
            good = _trial_record(what, evidence, await grade_trial(evidence))
            proof = replace(proof, good=good)
            return proof if good.status is not TrialStatus.PASSED else await _try_mutants(proof, good, evidence)
    except (MeasurementError, OSError) as error:
        message = error.message if isinstance(error, MeasurementError) else str(error)
        return replace(proof, good=Tried(what, TrialStatus.ERROR, resources.masker.render(message)))


async def _try_mutants(proof: Proof, good: Tried, evidence: Evidence) -> Proof:
    # Without budgets: a grader has to notice what is bad, not the limit of its steps.
    lifted = proof.task.model_copy(update={"budgets": Budgets()})

    async def regrade(mutant: Mutant) -> Tried:
        changed = replace(evidence, task=lifted, transcript=mutant.transcript, metrics=trial_metrics(mutant.transcript))
        grades = [
            await grade(options, changed) if is_regraded(options, mutant) else known
            for options, known in zip(lifted.graders, good.grades, strict=True)
        ]
        return _trial_record(mutant.what, changed, tuple(grades))

    tried = [await regrade(mutant) for mutant in mutants(good.transcript)]
    bad_calls = [call.tool for bad in proof.bad for call in bad.transcript.tool_calls]
    refused = refusals(lifted, bad_calls, [call.tool for call in good.transcript.tool_calls])
    proof = replace(proof, mutants=tuple(tried), refusals=refused)
    if refused is None:
        return proof
    naming, plain = (Mutant("a refusal", said) for said in (refused.naming, refused.plain))
    return replace(proof, refused=(await regrade(naming), await regrade(plain)))


def _trial_record(what: str, evidence: Evidence, grades: tuple[Grade, ...]) -> Tried:
    try:
        result = trial_result(evidence.task, evidence.transcript, evidence.metrics, grades)
    except MeasurementError as error:
        result = TrialResult(TrialStatus.ERROR, error.message, None)
    return Tried(what, result.status, evidence.masker.render(result.reason), grades, evidence.transcript)
