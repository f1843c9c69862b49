"""Check: tasks in, what their graders let pass and what they refuse out.

Each task is tried with what must pass, its reference solution or expected output, with what must fail, doing nothing
and every counterexample, and with mutants of the transcript that passed, which are graded in the sandbox that it left
behind. The package `passgate.tasks.graders.grader_checks` has the rules of mutants and of faults.
"""

import asyncio
from collections.abc import Coroutine, Iterable, Iterator, Mapping, Sequence
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
from passgate.tasks.grade import grade as grade_evidence
from passgate.tasks.graders import grade
from passgate.tasks.graders.grader_checks.faults import Mutated, Proof, Tried, check_of, must_be_killed
from passgate.tasks.graders.grader_checks.transcripts import (
    Mutant,
    Refusals,
    derived_transcript,
    is_cheap,
    is_judged,
    mutants_of,
    parts_of,
    refusals_of,
    sees_only_the_state,
)
from passgate.tasks.graders.grading import grade_trial, trial_result
from passgate.tasks.graders.interface import Evidence
from passgate.tasks.metering.access import ModelAccess, Unmetered
from passgate.tasks.metering.cost_cap import CostCap
from passgate.tasks.metering.usage import trial_metrics
from passgate.tasks.model.agent import AgentKind, AgentSpec
from passgate.tasks.model.checks import GraderCheck
from passgate.tasks.model.grade import Grade
from passgate.tasks.model.graders import Grader
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
    """What the graders of tasks, by their suites folders, are worth. As many trials at once as the policy says.

    Judges are asked as in a run, and cost the same. Raises `UsageError` for a judge that cannot be used.
    """
    limit = asyncio.Semaphore(policy.concurrency.trials)
    checks: list[GraderCheck] = []
    for folder, of_folder in tasks.items():
        async with open_resources(
            _ORACLE, folder, policy, grade=grade_evidence, prices=prices, cost_cap=CostCap()
        ) as resources:
            checks += await _together(_check_task(task, resources, limit) for task in of_folder)
    return checks


async def _together(works: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """What comes of each of several works. When one fails or all are called off, none goes on behind this."""
    async with asyncio.TaskGroup() as group:
        running = [group.create_task(work) for work in works]
    return [one.result() for one in running]


async def _check_task(task: EvalTask, resources: TrialResources, limit: asyncio.Semaphore) -> GraderCheck:
    proof = Proof(task, grader_problem) if task.cannot_run else await _proof(task, resources, limit)
    check = check_of(proof)
    # What is said of the trials is written somewhere.
    return GraderCheck.model_validate_json(resources.masker.json(check.model_dump_json()))


async def _proof(task: EvalTask, resources: TrialResources, limit: asyncio.Semaphore) -> Proof:
    async def try_bad(what: str, agent: Agent) -> Tried:
        async with limit:
            return await _tried(what, agent, task, resources)

    bad = await _together(try_bad(what, agent) for what, agent in _bad_agents(task, resources.suites_folder))
    proof = Proof(task, grader_problem, bad=tuple(bad))
    agent = _good_agent(task, resources.suites_folder)
    async with limit:
        return await (_derived(proof, resources) if agent is None else _with_mutants(proof, agent, resources))


async def _derived(proof: Proof, resources: TrialResources) -> Proof:
    """The proof with a good transcript that is derived; without one where none can be, or the graders refuse it."""
    transcript = derived_transcript(proof.task)
    if transcript is None:
        return proof
    tried = await _with_mutants(proof, _TranscriptAgent(transcript), resources)
    passed = tried.good is not None and tried.good.status is TrialStatus.PASSED
    return replace(tried, derived=True) if passed else proof


class _TranscriptAgent(Agent):
    """An agent that says and does what a transcript holds."""

    def __init__(self, transcript: Transcript) -> None:
        self._transcript = transcript

    async def run(
        self, task: EvalTask, attempt: Attempt, sandbox: AgentSandbox, access: ModelAccess, *, seconds: float
    ) -> Transcript:
        """See `Agent.run`."""
        return self._transcript


def _bad_agents(task: EvalTask, suites_folder: Path) -> Iterator[tuple[str, Agent]]:
    yield "doing nothing", NopAgent()
    for example in task.reference.counterexamples if task.reference else ():
        yield f"the counterexample {example.name!r}", OracleAgent(suites_folder, example.name)


def _good_agent(task: EvalTask, suites_folder: Path) -> Agent | None:
    """Who shows what must pass: the reference solution, else the expected output, else the task's recording."""
    if task.reference is not None or task.expected_messages or task.expected_output is not None:
        return OracleAgent(suites_folder, None)
    return ReplayAgent(None, suites_folder) if task.replay is not None else None


async def _tried(what: str, agent: Agent, task: EvalTask, resources: TrialResources) -> Tried:
    finished = await run_trial(task, 0, replace(resources, agent=agent))
    trial = finished.trial
    return Tried(what, trial.status, trial.reason, trial.grades, finished.transcript)


async def _with_mutants(proof: Proof, agent: Agent, resources: TrialResources) -> Proof:
    """The proof with the good trial, the mutants of its transcript and the refusals."""
    task = proof.task
    seconds = task.budgets.max_seconds or DEFAULT_SECONDS
    try:
        async with resources.workbench.sandbox(task) as sandbox:
            conversed = await converse(
                agent, task, 0, sandbox.for_the_agent, Unmetered(), resources.judge, seconds=seconds
            )
            transcript = conversed.checked()
            evidence = Evidence(
                task=task,
                transcript=transcript,
                metrics=trial_metrics(transcript),
                sandbox=sandbox,
                suites_folder=resources.suites_folder,
                judge=resources.judge,
            )
            good = _outcome("the known-good", task, evidence, await grade_trial(evidence))
            proof = replace(proof, good=good)
            return proof if good.status is not TrialStatus.PASSED else await _mutated(proof, good, evidence)
    except (MeasurementError, OSError) as error:
        return replace(proof, good=Tried("the known-good", TrialStatus.ERROR, str(error)))


async def _mutated(proof: Proof, good: Tried, evidence: Evidence) -> Proof:
    lifted = proof.task.model_copy(update={"budgets": Budgets()})
    mutated = []
    for mutant in mutants_of(lifted, good.transcript):
        counts = must_be_killed(lifted, mutant, good)
        if counts or _is_free(lifted, mutant):
            tried = await _again(mutant.what, lifted, mutant.transcript, good, evidence, mutant)
            mutated.append(Mutated(mutant, tried, counts))
    bad_calls = [call.tool for tried in proof.bad for call in tried.transcript.tool_calls]
    refusals = refusals_of(lifted, bad_calls, [call.tool for call in good.transcript.tool_calls])
    refused = await _refused(lifted, refusals, good, evidence) if refusals else None
    return replace(proof, mutated=tuple(mutated), refusals=refusals, refused=refused)


def _is_free(task: EvalTask, mutant: Mutant) -> bool:
    """Whether grading a mutant takes neither a judge nor a program."""
    asked_again = [list(parts_of(grader)) for grader in task.graders if _is_asked(grader, mutant)]
    return all(is_cheap(part) for parts in asked_again for part in parts)


def _is_asked(grader: Grader, mutant: Mutant) -> bool:
    return any(mutant.looks(part) for part in parts_of(grader))


async def _again(
    what: str, task: EvalTask, transcript: Transcript, good: Tried, evidence: Evidence, mutant: Mutant
) -> Tried:
    """What comes of another transcript in the sandbox of the good one."""
    changed = replace(evidence, task=task, transcript=transcript, metrics=trial_metrics(transcript))
    grades = [
        await grade(options, changed) if _is_asked(options, mutant) else known
        for options, known in zip(task.graders, good.grades, strict=True)
    ]
    return _outcome(what, task, changed, tuple(grades))


async def _refused(task: EvalTask, refusals: Refusals, good: Tried, evidence: Evidence) -> tuple[Tried, Tried]:
    def looks(part: Grader) -> bool:
        return not sees_only_the_state(part) and not is_judged(part)

    def refusal(transcript: Transcript) -> Mutant:
        return Mutant(kind="refusal", what="a refusal", transcript=transcript, hits=lambda _: False, looks=looks)

    naming, plain = refusal(refusals.naming), refusal(refusals.plain)
    return (
        await _again("a refusal", task, naming.transcript, good, evidence, naming),
        await _again("a refusal", task, plain.transcript, good, evidence, plain),
    )


def _outcome(what: str, task: EvalTask, evidence: Evidence, grades: tuple[Grade, ...]) -> Tried:
    try:
        result = trial_result(task, evidence.transcript, evidence.metrics, grades)
    except MeasurementError as error:
        return Tried(what, TrialStatus.ERROR, str(error), grades, evidence.transcript)
    return Tried(what, result.status, result.reason, grades, evidence.transcript)
