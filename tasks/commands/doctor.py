"""Diagnose the machine, the files, the LLM judge and the agents before a run."""

import asyncio
import os
import platform
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TypeVar

from passgate import __version__
from passgate.tasks.agents import FORMS
from passgate.tasks.agents.llm_judge import SETTINGS, RecordedJudge, make_llm_judge
from passgate.tasks.agents.presets import Preset, find_preset
from passgate.tasks.agents.starts import START_REMEDY
from passgate.tasks.errors import InputError, MeasurementError, PassgateError, UsageError
from passgate.tasks.files.temporary import temporary_folder
from passgate.tasks.formats.loading import load_folder, load_prices, policy_of_run
from passgate.tasks.formats.project_files import AGENTS_FILE, TARGETS_FILE
from passgate.tasks.history.masking import masker_for, secret_variables
from passgate.tasks.model.agent import AgentSpec, Endpoint
from passgate.tasks.model.checks import State, Symptom
from passgate.tasks.model.grade import JudgeMessage, JudgeRequest
from passgate.tasks.model.policy import Policy
from passgate.tasks.model.price import PriceTable
from passgate.tasks.model.quotes import quote
from passgate.tasks.model.task import Budgets, EvalTask, Metric, Suite
from passgate.tasks.model.transcript import EndReason
from passgate.tasks.model.trial import BLIND, MEASURED, FinishedTrial, single_models
from passgate.tasks.planning.diagnosis import diagnose, price_symptom
from passgate.tasks.planning.named_agents import NamedAgents, find_agent, named_agents
from passgate.tasks.providers.registry import PROVIDERS
from passgate.tasks.sandboxes.isolation import ISOLATION_REMEDY, UNISOLATED, best_isolation

START_SECONDS = 60.0  # For a preset's program to ask its model for the first time
_START = {
    "task_id": "start",
    "suite": Suite.GOLDEN,
    "description": "The agent starts.",
    "inputs": {"prompt": "Say hello."},
    "k": 1,
    "metric": Metric.PASS_AT_K,
    "graders": (),
    "tracked_metrics": (),
    "gates": frozenset(),
    "file": "start.yaml",
    "task_digest": "",
    "grader_digest": "",
}
JUDGE_SECONDS = 30.0  # For the judge to reply, because some models think first
_QUESTION = JudgeRequest(messages=(JudgeMessage(role="user", content="Reply with: ok"),), fingerprint="doctor")
_Content = TypeVar("_Content")


@dataclass(frozen=True)
class _Setup:
    """What doctor needs to check the judge and the agents."""

    gates: Path
    suites: Path
    policy: Policy | None  # `None` if the gates file is invalid
    prices: PriceTable
    named: NamedAgents


async def examine_and_try(
    names: Sequence[str], gates: Path, suites: Path, *, tries: bool
) -> tuple[list[Symptom], list[FinishedTrial]]:
    """Return the symptoms of `examine`. With `tries`, also run a trial of each agent without a failed symptom."""
    symptoms, trials = list(await examine(names, gates, suites)), list[FinishedTrial]()
    failed = {symptom.subject for symptom in symptoms if symptom.state is State.FAILED}
    for name in names if tries else ():
        if f"agent {name}" not in failed:
            symptoms += await _try_agent(name, gates, suites, trials)
    return symptoms, trials


async def examine(names: Sequence[str], gates: Path, suites: Path) -> tuple[Symptom, ...]:
    """Check the machine, files, judge and named agents, by default all. Ask endpoints at once. Tell no key."""
    files, setup = _files(gates, suites)
    subjects = [_find_subject(name, setup, State.FAILED) for name in names] or [
        # A target may be valid for AgentV although passgate cannot run it as an agent.
        _find_subject(name, setup, State.WARNING)
        for name in (*setup.named.agents, *setup.named.target_names)
    ]
    agents = [subject for subject in subjects if isinstance(subject, AgentSpec)]
    needs_price = _needs_price(setup.policy) if setup.policy else None

    async def diagnose_subject(subject: AgentSpec | list[Symptom]) -> list[Symptom]:
        if isinstance(subject, list):
            return subject
        symptoms = await diagnose(subject, setup.suites, setup.prices, needs_price)
        is_ok = all(symptom.state is State.OK for symptom in symptoms if symptom.what == subject.kind)
        preset = find_preset(subject.target) if is_ok and setup.policy else None
        if preset is None or setup.policy is None:
            return symptoms
        return [*symptoms, await _start_of_preset(subject, preset, setup.policy)]

    # Agents first, so that their modules are imported before anything waits.
    *groups, judge, machine = await asyncio.gather(
        *map(diagnose_subject, subjects), _judge(setup), asyncio.to_thread(_machine)
    )
    # A broken agents.yaml has names too, so "none" would be wrong.
    files_are_right = all(symptom.what != "agents" or symptom.state is State.OK for symptom in files)
    if not subjects and files_are_right:
        remedy = f"name agents in {gates.parent / AGENTS_FILE}, or give one to this command: {FORMS}"
        groups.append([Symptom("agents", "names", State.OK, "no agent has a name", remedy)])
    secrets = secret_variables(os.environ, setup.policy, agents)
    shown = f"masked are the values of {', '.join(secrets)}" if secrets else "no variable that is set contains a secret"
    machine.append(Symptom("machine", "secrets", State.OK, shown))
    # Replies of endpoints can contain the key that they received.
    mask = masker_for(setup.policy, *agents).text
    return tuple(
        replace(one, subject=mask(one.subject), found=mask(one.found), remedy=mask(one.remedy))
        for group in (machine, files, judge, *groups)
        for one in group
    )


def _needs_price(policy: Policy) -> str | None:
    limited = sorted(gate for gate, rules in policy.gates.items() if rules.limits.cost_increase_pct is not None)
    return f"there is a cost limit in {', '.join(limited)}" if limited else None


def _find_subject(name: str, setup: _Setup, failure: State) -> AgentSpec | list[Symptom]:
    try:
        return find_agent(name, setup.gates, setup.suites)
    except PassgateError as error:
        return _failures(f"agent {name}", "name", error, failure)


def _machine() -> list[Symptom]:
    with temporary_folder("doctor") as folder:
        isolation = best_isolation((), run_folder=folder)
    if not isolation.bubblewrap:
        found = f"only {isolation.name}, because {isolation.why_not}: {UNISOLATED}"
        remedy = f"{ISOLATION_REMEDY}, or try only agents you trust"
        symptoms = [Symptom("machine", "isolation", State.WARNING, found, remedy)]
    else:
        symptoms = [Symptom("machine", "isolation", State.OK, isolation.name)]
    python = f"{platform.python_version()}, with passgate {__version__}"
    symptoms.append(Symptom("machine", "python", State.OK, python))
    try:
        symptoms.append(Symptom("machine", "prefect", State.OK, version("prefect")))
    except PackageNotFoundError:
        remedy = "install passgate together with its dependencies"
        symptoms.append(Symptom("machine", "prefect", State.FAILED, "not installed", remedy))
    git = shutil.which("git")
    remedy = "" if git else "install git: without it runs have no commit and no branch, and so no baseline"
    return [*symptoms, Symptom("machine", "git", State.OK if git else State.WARNING, git or "not on PATH", remedy)]


def _files(gates: Path, suites: Path) -> tuple[list[Symptom], _Setup]:
    symptoms: list[Symptom] = []

    def read(what: str, reader: Callable[[], _Content], shown: Callable[[_Content], str]) -> _Content | None:
        try:
            content = reader()
        except PassgateError as error:
            symptoms.extend(_failures("files", what, error))
            return None
        symptoms.append(Symptom("files", what, State.OK, shown(content)))
        return content

    policy = read(
        "gates", lambda: policy_of_run(gates)[0], lambda policy: f"{gates}: {', '.join(sorted(policy.gates))}"
    )
    if policy is not None and not gates.is_file():
        found = f"no {gates}: runs use the policy that passgate ships: {', '.join(sorted(policy.gates))}"
        symptoms[-1] = Symptom("files", "gates", State.WARNING, found, "make one with `passgate init`")
    prices = read(
        "prices", lambda: load_prices(gates), lambda prices: f"{len(prices.models)} models or patterns of them"
    )

    def shown_names(named: NamedAgents) -> str:
        files = {AGENTS_FILE: tuple(named.agents), str(TARGETS_FILE): named.target_names}
        shown = [f"{file}: {', '.join(names)}" for file, names in files.items() if names]
        return "; ".join(shown) or f"no {AGENTS_FILE} beside the gates file and no {TARGETS_FILE}"

    named = read("agents", lambda: named_agents(gates, suites), shown_names)
    return symptoms, _Setup(gates, suites, policy, prices or PriceTable(), named or NamedAgents({}, ()))


def _failures(subject: str, what: str, error: PassgateError, state: State = State.FAILED) -> list[Symptom]:
    found = [str(problem) for problem in error.problems] if isinstance(error, InputError) else [str(error)]
    return [Symptom(subject, what, state, line) for line in found]


async def _judge(setup: _Setup) -> list[Symptom]:
    if setup.policy is None:
        return []
    try:
        judge = make_llm_judge(setup.policy.judge, setup.suites)
    except PassgateError as error:
        return _failures("judge", "settings", error)
    if judge is None:
        found = "no LLM judge is set, so rubrics cannot be graded"
        return [Symptom("judge", "settings", State.WARNING, found, f"set one with {SETTINGS}")]
    if isinstance(judge, RecordedJudge):
        return [Symptom("judge", "settings", State.OK, f"{judge.name}; no model is asked")]
    # Only a reply of the model proves that the address, the key and the model's name are right.
    reply = Symptom("judge", "reply", State.OK, f"{judge.name} replies")
    try:
        async with asyncio.timeout(JUDGE_SECONDS):
            await judge.reply(_QUESTION)
    except (MeasurementError, TimeoutError) as error:
        found = str(error) or f"{judge.name} did not reply within {JUDGE_SECONDS:g} s"
        reply = Symptom("judge", "reply", State.FAILED, found, f"check {SETTINGS}, and the key")
    finally:
        await judge.close()
    return [reply, price_symptom("judge", judge.name, setup.prices, None)]


async def _start_of_preset(agent: AgentSpec, preset: Preset, policy: Policy) -> Symptom:
    """Start the program of a preset in a trial without model calls: return whether it asks its model by itself."""
    # Imported late, because running trials imports pandas.
    from passgate.tasks.commands.try_task import one_trial

    # No provider is asked, so no key is needed either.
    nowhere = dict.fromkeys(PROVIDERS, Endpoint(base_url="http://127.0.0.1:9"))
    task = EvalTask.model_validate(_START | {"budgets": Budgets(max_steps=0, max_seconds=START_SECONDS)})
    subject, remedy = (
        f"agent {agent}",
        f"start {preset.program} by hand, or install another version of {preset.package}",
    )
    try:
        with temporary_folder("doctor") as folder:
            started = agent.model_copy(update={"upstreams": nowhere})
            finished = await one_trial(task, started, folder / "gates.yaml", folder, policy)
    except PassgateError as error:
        return Symptom(subject, "start", State.FAILED, str(error))
    transcript = finished.transcript
    if transcript.end is EndReason.OVER_BUDGET and "max_steps" in transcript.detail:
        return Symptom(subject, "start", State.OK, f"{preset.program} asks its model without a login")
    if transcript.end is EndReason.TIMED_OUT:
        found = f"{preset.program} asked no model within {START_SECONDS:g} s: it may wait for a login"
        return Symptom(subject, "start", State.WARNING, found, remedy)
    if finished.trial.status not in MEASURED:
        return Symptom(subject, "start", State.FAILED, finished.trial.reason)
    said = quote(transcript.detail or transcript.output or transcript.printed, 300)
    return Symptom(subject, "start", State.WARNING, f"{preset.program} ended before it asked a model: {said}", remedy)


async def _try_agent(name: str, gates: Path, suites: Path, trials: list[FinishedTrial]) -> list[Symptom]:
    """Run one trial of an agent without recording it. Add it to the trials, if it can start, and return symptoms."""
    # Imported late, because running trials imports pandas.
    from passgate.tasks.commands.try_task import one_trial

    subject = f"agent {name}"
    try:
        agent = find_agent(name, gates, suites)
        policy, _ = policy_of_run(gates)
        runnable = [task for task in load_folder(suites, policy).tasks if not task.cannot_run]
        if not runnable:
            raise UsageError("there is no task that can be run: name the folder of the suites with --suites")
        task = min(runnable, key=lambda task: list(Suite).index(task.suite))  # `Suite` begins with golden
        # Find a model without a price before anybody pays for it.
        finished = await one_trial(task, agent, gates, suites, policy, _needs_price(policy))
    except PassgateError as error:
        return [Symptom(subject, "trial", State.FAILED, str(error))]
    trials.append(finished)
    trial, end = finished.trial, finished.transcript.end
    # A trial that fails its graders is fine: it proves that the agent can be run and measured.
    state, remedy = State.OK, ""
    if finished.has_not_started:
        state, remedy = State.FAILED, START_REMEDY
    elif trial.status not in MEASURED:
        state, remedy = State.FAILED, "this trial could not measure the agent: repair what the reason names"
    elif end is EndReason.UNREADABLE:
        state = State.FAILED
        remedy = "write messages as docs/agents.md says, or in the form of OpenAI's or Anthropic's API"
    elif end is EndReason.CRASHED:
        state, remedy = State.WARNING, "the agent started and then crashed: see the trial below"
    found = f"{trial.suite}/{trial.task_id} {trial.status}" + (f": {trial.reason}" if trial.reason else "")
    symptoms = [Symptom(subject, "trial", state, found, remedy)]
    # The models that answered may lack a price. With a cost limit, the trial itself refused them.
    models = single_models(trial.model) if trial.metrics.cost is None else ()
    symptoms += [price_symptom(subject, model, load_prices(gates), None) for model in models]
    if trial.status in MEASURED and not finished.transcript.complete:
        remedy = "have its client take OPENAI_BASE_URL or the like, or have it write a transcript"
        symptoms.append(Symptom(subject, "meter", State.WARNING, BLIND.removeprefix("warning: "), remedy))
    return symptoms
