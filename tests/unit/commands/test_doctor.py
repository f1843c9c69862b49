"""What is well with a machine, its files, its judge and its agents, and what is not."""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from passgate import __version__
from passgate.tasks.commands.doctor import examine
from passgate.tasks.model.checks import State, Symptom
from tests.answering import serving
from tests.builders import REPOSITORY
from tests.upstream import ScriptedUpstream
from tests.upstream_replies import Status
from tests.upstream_shapes import Says

GATES = (REPOSITORY / "gates.yaml").read_text()
RECORDED = "judge:\n  recorded: _shared/judge\n"
ASKS = f"""#!{sys.executable}
import json, os, sys, urllib.request
if sys.argv[1] == "--version":
    sys.exit(print("9.9.9"))
body = json.dumps({{"model": "m", "max_tokens": 9, "messages": [{{"role": "user", "content": "Hello."}}]}})
urllib.request.urlopen(urllib.request.Request(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", body.encode()))
"""
FAILS = "#!/bin/sh\necho Please run /login >&2; exit 1"
AGENTS = "agents: {one: {agent: 'cli:sh'}, two: {agent: 'cli:no-such-program-here'}}\n"
TARGETS = "targets: [{name: editor, provider: vscode}, {name: local, provider: cli, command: sh}]\n"


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in list(os.environ):
        if name.endswith(("_API_KEY", "_BASE_URL", "_proxy", "_PROXY")) or name.startswith("PASSGATE_"):
            monkeypatch.delenv(name)
    for module in ("agents.cli", "agents.http", "planning.diagnosis"):
        monkeypatch.setattr(f"passgate.tasks.{module}.PROBE_SECONDS", 240.0)
    Path("suites").mkdir()
    write(gates=GATES)


def write(*, targets: str = "", **files: str) -> None:
    for name, text in files.items():
        Path(f"{name}.yaml").write_text(text)
    if targets:
        Path(".agentv").mkdir()
        Path(".agentv/targets.yaml").write_text(targets)


async def doctor(*names: str, gates: str = "gates.yaml") -> list[Symptom]:
    return list(await examine(names, Path(gates), Path("suites")))


async def of(subject: str, *names: str, gates: str = "gates.yaml") -> dict[str, Symptom]:
    """What is said of a subject, by what was looked at."""
    return {symptom.what: symptom for symptom in await doctor(*names, gates=gates) if symptom.subject == subject}


async def test_the_machine(bubblewrap_works: bool) -> None:
    machine = await of("machine")
    assert list(machine) == ["isolation", "python", "prefect", "git", "secrets"]
    assert machine["isolation"].state is (State.OK if bubblewrap_works else State.WARNING)
    assert __version__ in machine["python"].found
    assert machine["prefect"].found.startswith("3.")
    assert machine["git"].found.endswith("git")


async def test_a_machine_without_isolation_is_told_of(without_bubblewrap: None) -> None:
    isolation = (await of("machine"))["isolation"]
    assert isolation.state is State.WARNING
    assert isolation.found.startswith("only process_group, because bubblewrap does not work here")
    assert "allow user namespaces" in isolation.remedy


async def test_a_machine_without_programs_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    machine = await of("machine")
    assert machine["isolation"].remedy.startswith("install it (`sudo apt-get install bubblewrap`")
    assert machine["git"].state is State.WARNING
    assert "install git" in machine["git"].remedy


async def test_files_that_are_right() -> None:
    write(agents=AGENTS, targets=TARGETS)
    files = await of("files")
    assert all(symptom.state is State.OK for symptom in files.values())
    assert files["gates"].found == "gates.yaml: ci_merge, nightly, release_candidate"
    assert files["agents"].found == "agents.yaml: one, two; .agentv/targets.yaml: editor, local"


async def test_files_that_are_wrong_are_listed_with_every_place() -> None:
    write(gates="suites: {}\ngates: {x: {}}\nsecret: []\n", agents="agents: {a: {}}\n", prices="models: {a: {}}\n")
    symptoms = await doctor()
    files = [symptom for symptom in symptoms if symptom.subject == "files"]
    assert all(symptom.state is State.FAILED for symptom in files)
    assert {symptom.found.split(":")[0] for symptom in files} == {"gates.yaml", "agents.yaml", "prices.yaml"}
    assert sum(symptom.what == "gates" for symptom in files) == 3
    assert "no agent has a name" not in {symptom.found for symptom in symptoms}, "they cannot be read"


async def test_without_files_it_is_said_how_to_make_some() -> None:
    Path("gates.yaml").unlink()
    gates = (await of("files"))["gates"]
    assert (gates.state, gates.remedy) == (State.WARNING, "make one with `passgate init`")
    assert gates.found.startswith("no gates.yaml: runs use the policy that passgate ships: ci_merge")
    names = (await of("agents"))["names"]
    assert names.state is State.OK
    assert names.remedy.startswith("name agents in agents.yaml, or give one to this command: oracle, ")
    gates = (await of("files", gates="gone.yaml"))["gates"]
    assert gates.state is State.FAILED
    assert "make one with `passgate init`" in gates.found


@pytest.mark.parametrize(
    ("names", "states"),
    [
        ((), {"one": State.OK, "two": State.FAILED, "editor": State.WARNING, "local": State.OK}),
        (("one", "cli:sh -c true", "tow"), {"one": State.OK, "cli:sh -c true": State.OK, "tow": State.FAILED}),
        (("editor",), {"editor": State.FAILED}),  # It was asked for, and cannot be an agent
    ],
)
async def test_the_agents_that_are_named_are_looked_at_or_all(names: tuple[str, ...], states: dict[str, State]) -> None:
    write(agents=AGENTS, targets=TARGETS)
    symptoms = [symptom for symptom in await doctor(*names) if symptom.what in {"cli", "name"}]
    assert {symptom.subject.removeprefix("agent "): symptom.state for symptom in symptoms} == states
    assert "tow" not in states or any("unknown agent 'tow'" in symptom.found for symptom in symptoms)


async def test_an_unknown_price_fails_where_a_gate_has_a_cost_limit() -> None:
    write(agents="agents: {one: {agent: 'cli:sh', model: my-model}}\n")
    price = (await of("agent one"))["price"]
    assert price.state is State.FAILED
    assert "there is a cost limit in ci_merge, release_candidate" in price.found
    write(gates=GATES.replace("cost_increase_pct: 10", ""))
    assert (await of("agent one"))["price"].state is State.WARNING
    write(prices="models: {my-*: {input: 1, output: 2}}\n")
    assert (await of("agent one"))["price"].state is State.OK


@pytest.mark.parametrize(
    ("model", "gates", "state", "found"),
    [
        ("", GATES, State.OK, "recorded replies"),
        ("my-judge", GATES, State.FAILED, "needs both a base URL and a model"),
        ("", GATES.replace(RECORDED, ""), State.WARNING, "no LLM judge is set, so rubrics cannot be graded"),
    ],
)
async def test_the_settings_of_the_judge(
    monkeypatch: pytest.MonkeyPatch, model: str, gates: str, state: State, found: str
) -> None:
    monkeypatch.setenv("PASSGATE_JUDGE_MODEL", model)
    write(gates=gates)
    settings = (await of("judge"))["settings"]
    assert settings.state is state
    assert found in settings.found


@pytest.mark.parametrize(
    ("model", "reply", "states", "said"),
    [
        ("gpt-5-mini", Says("ok"), (State.OK, State.OK), "gpt-5-mini replies"),
        ("my-judge", Status(401), (State.FAILED, State.WARNING), "401"),
    ],
)
async def test_a_judge_is_asked_once(
    monkeypatch: pytest.MonkeyPatch, model: str, reply: Any, states: tuple[State, State], said: str
) -> None:
    monkeypatch.setenv("PASSGATE_JUDGE_MODEL", model)
    with ScriptedUpstream([reply]) as upstream:
        monkeypatch.setenv("PASSGATE_JUDGE_BASE_URL", upstream.openai_base_url)
        judge = await of("judge")
    assert (judge["reply"].state, judge["price"].state) == states
    assert said in judge["reply"].found
    assert upstream.count == 1


async def test_everything_over_the_network_is_asked_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of ten endpoints answers when all of them have been asked."""
    together = asyncio.Barrier(10)

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await together.wait()
        writer.write(b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        agent = f"{{agent: 'openai:m', upstreams: {{openai: {{base_url: '{url}'}}}}}}"
        write(agents="agents:\n" + "".join(f"  a{number}: {agent}\n" for number in range(10)))
        symptoms = await doctor()
    assert sum("answers 401" in symptom.found for symptom in symptoms if symptom.what == "endpoint openai") == 10


async def test_no_key_is_ever_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Endpoints quote the key that they get."""
    for name in ("OPENAI_API_KEY", "MY_KEY", "PASSGATE_JUDGE_API_KEY"):
        monkeypatch.setenv(name, f"sk-123456-{name}")
    monkeypatch.setenv("PASSGATE_JUDGE_MODEL", "my-judge")
    with serving(lambda request, _: (401, {}, f"wrong key: {request.headers['Authorization']}".encode())) as url:
        monkeypatch.setenv("PASSGATE_JUDGE_BASE_URL", f"{url}/v1")
        settings = f"{{openai: {{base_url: '{url}', api_key_variable: MY_KEY}}}}"
        agent = f"{{agent: 'openai:sk-123456-MY_KEY', upstreams: {settings}}}"
        write(agents=f"agents:\n  a: {agent}\n  b: {{agent: 'cli:sh'}}\n")
        told = repr([await doctor(), await doctor("openai:sk-123456-OPENAI_API_KEY")])
    assert "answers 401" in told
    assert "wrong key: Bearer ***" in told
    assert "sk-123456" not in told


@pytest.mark.parametrize(
    ("script", "state", "found"),
    [
        (ASKS, State.OK, "claude asks its model without a login"),
        (FAILS, State.WARNING, "claude ended before it asked a model: exit code 1: Please run"),
        ("#!/bin/sh\necho Please run /login", State.WARNING, "claude ended before it asked a model: Please run /login"),
        ("#!/bin/sh\nexec sleep 600", State.WARNING, "claude asked no model within 2 s: it may wait for a login"),
    ],
    ids=["asks", "fails", "ends", "waits"],
)
async def test_whether_the_program_of_a_preset_starts_without_a_login(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, state: State, found: str
) -> None:
    (tmp_path / "claude").write_text(script)
    (tmp_path / "claude").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr("passgate.tasks.agents.cli._VERSION_SECONDS", 5.0 if script is ASKS else 1.0)
    if "sleep" in script:
        monkeypatch.setattr("passgate.tasks.commands.doctor.START_SECONDS", 2.0)
    agent = await of("agent claude-code", "claude-code")
    start = agent["start"]
    assert (start.state, start.found[: len(found)]) == (state, found)
    assert ("9.9.9" in agent["cli"].found) is (script is ASKS)
    assert agent["keys"].remedy == "set ANTHROPIC_API_KEY, or name the endpoint and its key with `upstreams`"
    assert ("start claude by hand" in start.remedy) is (state is State.WARNING)
