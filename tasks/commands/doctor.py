"""Doctor: the machine, the files, the judge and the agents in, what is well with them and what is not out."""

import asyncio
import platform
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final, TypeVar

from passgate import __version__
from passgate.tasks.agents import FORMS
from passgate.tasks.agents.llm_judge import SETTINGS, RecordedJudge, make_llm_judge
from passgate.tasks.agents.starts import START_REMEDY
from passgate.tasks.errors import InputError, MeasurementError, PassgateError, UsageError
from passgate.tasks.files.temporary import temporary_folder
from passgate.tasks.formats.agents_file import AGENTS_FILE
from passgate.tasks.formats.loading import load_folder, load_prices, policy_of_run
from passgate.tasks.formats.targets_file import TARGETS_FILE
from passgate.tasks.history.masking import Masker
from passgate.tasks.model.agent import AgentSpec
from passgate.tasks.model.checks import State, Symptom
from passgate.tasks.model.grade import JudgeMessage, JudgeRequest, LlmJudge
from passgate.tasks.model.policy import Policy
from passgate.tasks.model.price import PriceTable
from passgate.tasks.model.task import EvalTask, Suite
from passgate.tasks.model.transcript import EndReason
from passgate.tasks.model.trial import MEASURED, FinishedTrial
from passgate.tasks.planning.diagnosis import USUAL_KEYS, diagnose, price_symptom
from passgate.tasks.planning.named_agents import NamedAgents, find_agent, named_agents
from passgate.tasks.sandboxes.isolation import best_isolation

JUDGE_SECONDS = 30.0
"""For the judge's reply: some models think before it."""
_QUESTION = JudgeRequest(messages=(JudgeMessage(role="user", content="Reply with: ok"),), fingerprint="doctor")
_NOT_MEASURED: Final = "this trial says nothing of the agent: mend what the reason names"
_CRASHED: Final = "the agent starts and does not come to its end: look at the trial below"
_Content = TypeVar("_Content")


@dataclass(frozen=True)
class _Setup:
    """What the judge and the agents are looked at with."""

    gates: Path
    suites: Path
    policy: Policy | None
    """`None` when the gates file cannot be used."""
    prices: PriceTable
    named: NamedAgents

    @property
    def needs_price(self) -> str | None:
        """What makes an unknown price an error."""
        gates = self.policy.gates.items() if self.policy else ()
        limited = sorted(gate for gate, rules in gates if rules.limits.cost_increase_pct is not None)
        return f"there is a cost limit in {', '.join(limited)}" if limited else None


async def examine_and_try(
    names: Sequence[str], gates: Path, suites: Path, *, tries: bool
) -> tuple[list[Symptom], list[FinishedTrial]]:
    """What `examine` finds; where `tries` is set also a trial of each agent that nothing keeps from one."""
    symptoms = list(await examine(names, gates, suites))
    failed = {symptom.subject for symptom in symptoms if symptom.state is State.FAILED}
    trials: list[FinishedTrial] = []
    for name in names if tries else ():
        if f"agent {name}" not in failed:
            symptom, trial = await _try_agent(name, gates, suites)
            symptoms.append(symptom)
            trials += [trial] if trial else []
    return symptoms, trials


async def examine(names: Sequence[str], gates: Path, suites: Path) -> tuple[Symptom, ...]:
    """Look at the machine, the files, the judge and the agents: those named, else all that have names.

    No symptom holds a key. What has to be asked over the network is asked at the same time.
    """
    files, setup = _files(gates, suites)
    subjects = [_found(name, setup, asked_for=True) for name in names] or [
        _found(name, setup, asked_for=False) for name in (*setup.named.agents, *setup.named.target_names)
    ]
    # The agents first: what they import is there before anything is waited for.
    *agents, judge, machine = await asyncio.gather(
        *(_agent(subject, setup) for subject in subjects), _judge(setup), asyncio.to_thread(_machine)
    )
    files_are_right = all(symptom.what != "agents" or symptom.state is State.OK for symptom in files)
    if not subjects and files_are_right:
        remedy = f"name agents in {gates.parent / AGENTS_FILE}, or give one to this command: {FORMS}"
        agents.append([_symptom("agents", "names", State.OK, "there are none", remedy)])
    masker = _masker(setup, [subject for subject in subjects if isinstance(subject, AgentSpec)])
    found = [symptom for group in (machine, files, judge, *agents) for symptom in group]
    return tuple(_masked(symptom, masker) for symptom in found)


def _found(name: str, setup: _Setup, *, asked_for: bool) -> AgentSpec | list[Symptom]:
    try:
        return find_agent(name, setup.gates, setup.suites)
    except PassgateError as error:
        # A target may be no agent of ours and still be right for AgentV.
        return _failures(f"agent {name}", "name", error, State.FAILED if asked_for else State.WARNING)


def _masked(symptom: Symptom, masker: Masker) -> Symptom:
    texts = {key: masker.text(getattr(symptom, key)) for key in ("subject", "found", "remedy")}
    return symptom.model_copy(update=texts)


async def _agent(subject: AgentSpec | list[Symptom], setup: _Setup) -> list[Symptom]:
    if isinstance(subject, list):
        return subject
    return await diagnose(subject, setup.suites, setup.prices, setup.needs_price)


def _symptom(subject: str, what: str, state: State, found: str, remedy: str = "") -> Symptom:
    return Symptom(subject=subject, what=what, state=state, found=found, remedy=remedy)


def _masker(setup: _Setup, agents: Sequence[AgentSpec]) -> Masker:
    declared = (*setup.policy.secrets, setup.policy.judge.api_key_variable) if setup.policy else ()
    endpoints = [endpoint for agent in agents for endpoint in (agent.upstreams.openai, agent.upstreams.anthropic)]
    named = [endpoint.api_key_variable for endpoint in endpoints if endpoint.api_key_variable]
    return Masker.of_environment([*declared, *named, *USUAL_KEYS])


def _machine() -> list[Symptom]:
    git = shutil.which("git")
    without_git = "install git: without it runs have no commit and no branch, and so no baseline"
    python = f"{platform.python_version()}, with passgate {__version__}"
    return [
        _isolation(),
        _symptom("machine", "python", State.OK, python),
        _prefect(),
        _symptom(
            "machine", "git", State.OK if git else State.WARNING, git or "not on PATH", "" if git else without_git
        ),
    ]


def _prefect() -> Symptom:
    try:
        return _symptom("machine", "prefect", State.OK, version("prefect"))
    except PackageNotFoundError:
        remedy = "install passgate together with its dependencies"
        return _symptom("machine", "prefect", State.FAILED, "not installed", remedy)


def _isolation() -> Symptom:
    with temporary_folder("doctor") as folder:
        name = best_isolation((), run_folder=folder).name
    if name == "bubblewrap":
        return _symptom("machine", "isolation", State.OK, name)
    installed = shutil.which("bwrap") is not None
    why = "bubblewrap does not work here" if installed else "bubblewrap is not installed"
    remedy = "allow it unprivileged user namespaces" if installed else "install it (the program bwrap)"
    found = f"{name}, for {why}: agents can read the tests, use the network and write where you can"
    return _symptom("machine", "isolation", State.WARNING, found, f"{remedy}, or try only agents that you trust")


def _files(gates: Path, suites: Path) -> tuple[list[Symptom], _Setup]:
    symptoms: list[Symptom] = []

    def read(what: str, reader: Callable[[], _Content], shown: Callable[[_Content], str]) -> _Content | None:
        try:
            content = reader()
        except PassgateError as error:
            symptoms.extend(_failures("files", what, error))
            return None
        symptoms.append(_symptom("files", what, State.OK, shown(content)))
        return content

    policy = read("gates", lambda: policy_of_run(gates)[0], lambda policy: f"{gates}: {_gates(policy)}")
    if policy is not None and not gates.is_file():
        found = f"no {gates}: runs go by the policy that passgate ships: {_gates(policy)}"
        symptoms[-1] = _symptom("files", "gates", State.WARNING, found, "make one with `passgate init`")
    prices = read("prices", lambda: load_prices(gates), lambda prices: f"of {len(prices.models)} patterns of models")
    named = read("agents", lambda: named_agents(gates, suites), _names)
    return symptoms, _Setup(gates, suites, policy, prices or PriceTable(), named or NamedAgents({}, ()))


def _gates(policy: Policy) -> str:
    return ", ".join(sorted(policy.gates))


def _names(named: NamedAgents) -> str:
    files = {AGENTS_FILE: tuple(named.agents), str(TARGETS_FILE): named.target_names}
    shown = [f"{file}: {', '.join(names)}" for file, names in files.items() if names]
    return "; ".join(shown) or f"no {AGENTS_FILE} beside the gates file and no {TARGETS_FILE}"


def _failures(subject: str, what: str, error: PassgateError, state: State = State.FAILED) -> list[Symptom]:
    found = [str(problem) for problem in error.problems] if isinstance(error, InputError) else [str(error)]
    return [_symptom(subject, what, state, line) for line in found]


async def _judge(setup: _Setup) -> list[Symptom]:
    if setup.policy is None:
        return []
    try:
        judge = make_llm_judge(setup.policy.judge, setup.suites)
    except PassgateError as error:
        return _failures("judge", "settings", error)
    if judge is None:
        found = "there is none: rubrics cannot be marked"
        return [_symptom("judge", "settings", State.WARNING, found, f"name one with {SETTINGS}")]
    if isinstance(judge, RecordedJudge):
        return [_symptom("judge", "settings", State.OK, f"{judge.name}, and no model")]
    return [await _reply(judge), price_symptom("judge", judge.name, setup.prices, None)]


async def _reply(judge: LlmJudge) -> Symptom:
    try:
        async with asyncio.timeout(JUDGE_SECONDS):
            await judge.reply(_QUESTION)
    except (MeasurementError, TimeoutError) as error:
        found = str(error) or f"{judge.name} has not replied in {JUDGE_SECONDS:g} s"
        return _symptom("judge", "reply", State.FAILED, found, f"check {SETTINGS}, and the key")
    finally:
        await judge.close()
    return _symptom("judge", "reply", State.OK, f"{judge.name} replies")


async def _try_agent(name: str, gates: Path, suites: Path) -> tuple[Symptom, FinishedTrial | None]:
    """Run one trial of an agent, of a golden task where there is one. Nothing is recorded.

    Gives what is to be said of the trial, and the trial; `None` when there could be none.
    """
    try:
        finished = await _trial_of(name, gates, suites)
    except PassgateError as error:
        return _symptom(f"agent {name}", "trial", State.FAILED, str(error)), None
    trial = finished.trial
    found = f"{trial.suite}/{trial.task_id} {trial.status}" + (f": {trial.reason}" if trial.reason else "")
    state, remedy = _judged(finished)
    return _symptom(f"agent {name}", "trial", state, found, remedy), finished


async def _trial_of(name: str, gates: Path, suites: Path) -> FinishedTrial:
    # Running trials imports pandas, which the other checks need not wait for.
    from passgate.tasks.commands.try_task import one_trial

    agent = find_agent(name, gates, suites)
    policy, _ = policy_of_run(gates)
    return await one_trial(_first_to_run(load_folder(suites, policy).tasks), agent, gates, suites, policy)


def _first_to_run(tasks: Sequence[EvalTask]) -> EvalTask:
    runnable = [task for task in tasks if not task.cannot_run]
    if not runnable:
        raise UsageError("there is no task that can be run: name the folder of the suites with --suites")
    return min(runnable, key=lambda task: list(Suite).index(task.suite))


def _judged(finished: FinishedTrial) -> tuple[State, str]:
    """How well it is with an agent that had this trial, and what to do."""
    if finished.has_not_started:
        return State.FAILED, START_REMEDY
    if finished.trial.status not in MEASURED:
        return State.FAILED, _NOT_MEASURED
    if finished.transcript.end is EndReason.CRASHED:
        return State.WARNING, _CRASHED
    return State.OK, ""
