"""Doctor: the machine, the files, the judge and the agents in, what is well with them and what is not out."""

import asyncio
import platform
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TypeVar

from passgate import __version__
from passgate.tasks.agents import FORMS
from passgate.tasks.agents.llm_judge import SETTINGS, RecordedJudge, make_llm_judge
from passgate.tasks.errors import InputError, MeasurementError, PassgateError
from passgate.tasks.files.temporary import temporary_folder
from passgate.tasks.formats.agents_file import AGENTS_FILE
from passgate.tasks.formats.loading import load_prices, policy_of_run
from passgate.tasks.formats.targets_file import TARGETS_FILE
from passgate.tasks.history.masking import Masker
from passgate.tasks.model.agent import AgentSpec
from passgate.tasks.model.checks import State, Symptom
from passgate.tasks.model.grade import JudgeMessage, JudgeRequest, LlmJudge
from passgate.tasks.model.policy import Policy
from passgate.tasks.model.price import PriceTable
from passgate.tasks.planning.diagnosis import USUAL_KEYS, diagnose, price_symptom
from passgate.tasks.planning.named_agents import NamedAgents, find_agent, named_agents
from passgate.tasks.sandboxes.isolation import best_isolation

JUDGE_SECONDS = 30.0
"""For the judge's reply: some models think before it."""
_QUESTION = JudgeRequest(messages=(JudgeMessage(role="user", content="Reply with: ok"),), fingerprint="doctor")
_Content = TypeVar("_Content")


@dataclass(frozen=True)
class _Case:
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


async def examine(names: Sequence[str], gates: Path, suites: Path) -> tuple[Symptom, ...]:
    """Look at the machine, the files, the judge and the agents: those named, else all that have names.

    No symptom holds a key. What has to be asked over the network is asked at the same time.
    """
    files, case = _files(gates, suites)
    subjects = [_found(name, case, asked_for=True) for name in names] or [
        _found(name, case, asked_for=False) for name in (*case.named.agents, *case.named.target_names)
    ]
    # The agents first: what they import is there before anything is waited for.
    *agents, judge, machine = await asyncio.gather(
        *(_agent(subject, case) for subject in subjects), _judge(case), asyncio.to_thread(lambda: list(_machine()))
    )
    files_are_right = all(symptom.what != "agents" or symptom.state is State.OK for symptom in files)
    if not subjects and files_are_right:
        remedy = f"name agents in {gates.parent / AGENTS_FILE}, or give one to this command: {FORMS}"
        agents.append([Symptom(subject="agents", what="names", state=State.OK, found="there are none", remedy=remedy)])
    masker = _masker(case, [subject for subject in subjects if isinstance(subject, AgentSpec)])
    return tuple(_masked(symptom, masker) for group in (machine, files, judge, *agents) for symptom in group)


def _found(name: str, case: _Case, *, asked_for: bool) -> AgentSpec | list[Symptom]:
    try:
        return find_agent(name, case.gates, case.suites)
    except PassgateError as error:
        # A target may be no agent of ours and still be right for AgentV.
        return _failures(f"agent {name}", "name", error, State.FAILED if asked_for else State.WARNING)


async def _agent(subject: AgentSpec | list[Symptom], case: _Case) -> list[Symptom]:
    if isinstance(subject, list):
        return subject
    return await diagnose(subject, case.suites, case.prices, case.needs_price)


def _masker(case: _Case, agents: Sequence[AgentSpec]) -> Masker:
    declared = (*case.policy.secrets, case.policy.judge.api_key_variable) if case.policy else ()
    endpoints = [endpoint for agent in agents for endpoint in (agent.upstreams.openai, agent.upstreams.anthropic)]
    named = [endpoint.api_key_variable for endpoint in endpoints if endpoint.api_key_variable]
    return Masker.of_environment([*declared, *named, *USUAL_KEYS])


def _masked(symptom: Symptom, masker: Masker) -> Symptom:
    texts = {key: masker.text(getattr(symptom, key)) for key in ("subject", "found", "remedy")}
    return symptom.model_copy(update=texts)


def _machine() -> Iterator[Symptom]:
    yield _isolation()
    yield _of_machine("python", State.OK, f"{platform.python_version()}, with passgate {__version__}")
    try:
        yield _of_machine("prefect", State.OK, version("prefect"))
    except PackageNotFoundError:
        yield _of_machine("prefect", State.FAILED, "not installed", "install passgate together with its dependencies")
    git = shutil.which("git")
    remedy = "" if git else "install git: without it runs have no commit and no branch, and so no baseline"
    yield _of_machine("git", State.OK if git else State.WARNING, git or "not on PATH", remedy)


def _of_machine(what: str, state: State, found: str, remedy: str = "") -> Symptom:
    return Symptom(subject="machine", what=what, state=state, found=found, remedy=remedy)


def _isolation() -> Symptom:
    with temporary_folder("doctor") as folder:
        name = best_isolation((), run_folder=folder).name
    if name == "bubblewrap":
        return _of_machine("isolation", State.OK, name)
    installed = shutil.which("bwrap") is not None
    why = "bubblewrap does not work here" if installed else "bubblewrap is not installed"
    remedy = "allow it unprivileged user namespaces" if installed else "install it (the program bwrap)"
    found = f"{name}, for {why}: agents can read the tests, use the network and write where you can"
    return _of_machine("isolation", State.WARNING, found, f"{remedy}, or try only agents that you trust")


def _files(gates: Path, suites: Path) -> tuple[list[Symptom], _Case]:
    symptoms: list[Symptom] = []

    def read(what: str, reader: Callable[[], _Content], shown: Callable[[_Content], str]) -> _Content | None:
        try:
            content = reader()
        except PassgateError as error:
            symptoms.extend(_failures("files", what, error))
            return None
        symptoms.append(Symptom(subject="files", what=what, state=State.OK, found=shown(content)))
        return content

    policy = read("gates", lambda: policy_of_run(gates)[0], lambda policy: f"{gates}: {_gates(policy)}")
    if policy is not None and not gates.is_file():
        found = f"no {gates}: runs go by the policy that passgate ships: {_gates(policy)}"
        remedy = "make one with `passgate init`"
        symptoms[-1] = Symptom(subject="files", what="gates", state=State.WARNING, found=found, remedy=remedy)
    prices = read("prices", lambda: load_prices(gates), lambda prices: f"of {len(prices.models)} patterns of models")
    named = read("agents", lambda: named_agents(gates, suites), _names)
    return symptoms, _Case(gates, suites, policy, prices or PriceTable(), named or NamedAgents({}, ()))


def _gates(policy: Policy) -> str:
    return ", ".join(sorted(policy.gates))


def _names(named: NamedAgents) -> str:
    files = {AGENTS_FILE: tuple(named.agents), str(TARGETS_FILE): named.target_names}
    shown = [f"{file}: {', '.join(names)}" for file, names in files.items() if names]
    return "; ".join(shown) or f"no {AGENTS_FILE} beside the gates file and no {TARGETS_FILE}"


def _failures(subject: str, what: str, error: PassgateError, state: State = State.FAILED) -> list[Symptom]:
    found = [str(problem) for problem in error.problems] if isinstance(error, InputError) else [str(error)]
    return [Symptom(subject=subject, what=what, state=state, found=line) for line in found]


async def _judge(case: _Case) -> list[Symptom]:
    if case.policy is None:
        return []
    try:
        judge = make_llm_judge(case.policy.judge, case.suites)
    except PassgateError as error:
        return _failures("judge", "settings", error)
    if judge is None:
        found, remedy = "there is none: rubrics cannot be marked", f"name one with {SETTINGS}"
        return [Symptom(subject="judge", what="settings", state=State.WARNING, found=found, remedy=remedy)]
    if isinstance(judge, RecordedJudge):
        return [Symptom(subject="judge", what="settings", state=State.OK, found=f"{judge.name}, and no model")]
    return [await _reply(judge), price_symptom("judge", judge.name, case.prices, None)]


async def _reply(judge: LlmJudge) -> Symptom:
    try:
        async with asyncio.timeout(JUDGE_SECONDS):
            await judge.reply(_QUESTION)
    except (MeasurementError, TimeoutError) as error:
        found = str(error) or f"{judge.name} has not replied in {JUDGE_SECONDS:g} s"
        remedy = f"check {SETTINGS}, and the key"
        return Symptom(subject="judge", what="reply", state=State.FAILED, found=found, remedy=remedy)
    finally:
        await judge.close()
    return Symptom(subject="judge", what="reply", state=State.OK, found=f"{judge.name} replies")
