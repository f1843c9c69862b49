"""What is well with a machine, its files, its judge and its agents, and what is not."""

import os
import socket
import time
from pathlib import Path

import pytest

from passgate import __version__
from passgate.tasks.agents.interface import PROBE_SECONDS
from passgate.tasks.commands.doctor import examine
from passgate.tasks.model.checks import State, Symptom
from tests.answering import answering
from tests.builders import REPOSITORY
from tests.upstream import ScriptedUpstream
from tests.upstream_replies import Status
from tests.upstream_shapes import Says

AGENTS = "agents: {one: {agent: 'cli:sh'}, two: {agent: 'cli:no-such-program-here'}}\n"
TARGETS = "targets: [{name: editor, provider: vscode}, {name: local, provider: cli, command: sh}]\n"


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in list(os.environ):
        if name.endswith(("_API_KEY", "_BASE_URL", "_proxy", "_PROXY")) or name.startswith("PASSGATE_"):
            monkeypatch.delenv(name)
    (tmp_path / "gates.yaml").write_bytes((REPOSITORY / "gates.yaml").read_bytes())
    (tmp_path / "suites").mkdir()
    return tmp_path


async def doctor(*names: str, gates: str = "gates.yaml") -> list[Symptom]:
    return list(await examine(names, Path(gates), Path("suites")))


async def of(subject: str, *names: str, gates: str = "gates.yaml") -> dict[str, Symptom]:
    """What is said of a subject, by what was looked at."""
    return {symptom.what: symptom for symptom in await doctor(*names, gates=gates) if symptom.subject == subject}


async def test_the_machine(bubblewrap_works: bool) -> None:
    machine = await of("machine")
    assert list(machine) == ["isolation", "python", "prefect", "git"]
    assert machine["isolation"].state is (State.OK if bubblewrap_works else State.WARNING)
    assert __version__ in machine["python"].found
    assert machine["prefect"].found.startswith("3.")
    assert machine["git"].found.endswith("git")


async def test_a_machine_without_isolation_is_told_of(without_bubblewrap: None) -> None:
    isolation = (await of("machine"))["isolation"]
    assert isolation.state is State.WARNING
    assert isolation.found.startswith("only process_group, because bubblewrap does not work here")
    assert isolation.remedy.startswith("allow unprivileged user namespaces")


async def test_a_machine_without_programs_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    machine = await of("machine")
    assert machine["isolation"].remedy.startswith("install bubblewrap (the program bwrap)")
    assert machine["git"].state is State.WARNING
    assert "install git" in machine["git"].remedy


async def test_files_that_are_right(project: Path) -> None:
    (project / "agents.yaml").write_text(AGENTS)
    (project / ".agentv").mkdir()
    (project / ".agentv/targets.yaml").write_text(TARGETS)
    files = await of("files")
    assert all(symptom.state is State.OK for symptom in files.values())
    assert files["gates"].found == "gates.yaml: ci_merge, nightly, release_candidate"
    assert files["agents"].found == "agents.yaml: one, two; .agentv/targets.yaml: editor, local"


async def test_files_that_are_wrong_are_listed_with_every_place(project: Path) -> None:
    (project / "gates.yaml").write_text("suites: {}\ngates: {x: {}}\nsecret: []\n")
    (project / "agents.yaml").write_text("agents: {a: {}}\n")
    (project / "prices.yaml").write_text("models: {a: {}}\n")
    files = [symptom for symptom in await doctor() if symptom.subject == "files"]
    assert all(symptom.state is State.FAILED for symptom in files)
    assert {symptom.found.split(":")[0] for symptom in files} == {"gates.yaml", "agents.yaml", "prices.yaml"}
    assert sum(symptom.what == "gates" for symptom in files) == 3


async def test_without_a_gates_file_it_is_the_policy_that_passgate_ships(project: Path) -> None:
    (project / "gates.yaml").unlink()
    gates = (await of("files"))["gates"]
    assert gates.state is State.WARNING
    assert gates.found.startswith("no gates.yaml: runs use the policy that passgate ships: ci_merge")
    assert gates.remedy == "make one with `passgate init`"


async def test_without_the_gates_file_that_is_named_nothing_can_be_run() -> None:
    gates = (await of("files", gates="gone.yaml"))["gates"]
    assert gates.state is State.FAILED
    assert "make one with `passgate init`" in gates.found


async def test_without_names_it_says_how_to_give_some() -> None:
    names = (await of("agents"))["names"]
    assert names.state is State.OK
    assert names.remedy.startswith("name agents in agents.yaml, or give one to this command: oracle, ")


async def test_every_agent_that_has_a_name_is_looked_at(project: Path) -> None:
    (project / "agents.yaml").write_text(AGENTS)
    (project / ".agentv").mkdir()
    (project / ".agentv/targets.yaml").write_text(TARGETS)
    symptoms = await doctor()
    states = {symptom.subject: symptom.state for symptom in symptoms if symptom.what in {"cli", "name"}}
    assert states == {
        "agent one": State.OK,
        "agent two": State.FAILED,
        "agent editor": State.WARNING,
        "agent local": State.OK,
    }


async def test_agents_that_are_named_are_looked_at_alone(project: Path) -> None:
    (project / "agents.yaml").write_text(AGENTS)
    subjects = {symptom.subject for symptom in await doctor("one", "cli:sh -c true", "tow")}
    assert {subject for subject in subjects if subject.startswith("agent")} == {
        "agent one",
        "agent cli:sh -c true",
        "agent tow",
    }


async def test_a_name_that_nobody_has_fails() -> None:
    symptom = (await of("agent tow", "tow"))["name"]
    assert symptom.state is State.FAILED
    assert "unknown agent 'tow'" in symptom.found


async def test_a_target_that_was_asked_for_and_cannot_be_an_agent_fails(project: Path) -> None:
    (project / ".agentv").mkdir()
    (project / ".agentv/targets.yaml").write_text(TARGETS)
    assert (await of("agent editor", "editor"))["name"].state is State.FAILED


async def test_an_unknown_price_fails_where_a_gate_has_a_cost_limit(project: Path) -> None:
    (project / "agents.yaml").write_text("agents: {one: {agent: 'cli:sh', model: my-model}}\n")
    price = (await of("agent one"))["price"]
    assert price.state is State.FAILED
    assert "there is a cost limit in ci_merge, release_candidate" in price.found
    (project / "gates.yaml").write_text((project / "gates.yaml").read_text().replace("cost_increase_pct: 10", ""))
    assert (await of("agent one"))["price"].state is State.WARNING
    (project / "prices.yaml").write_text("models: {my-*: {input: 1, output: 2}}\n")
    assert (await of("agent one"))["price"].state is State.OK


async def test_recorded_replies_need_no_model() -> None:
    judge = await of("judge")
    assert judge["settings"].state is State.OK
    assert judge["settings"].found.startswith("recorded replies")


async def test_half_a_judge_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PASSGATE_JUDGE_MODEL", "my-judge")
    judge = await of("judge")
    assert judge["settings"].state is State.FAILED
    assert "needs both a base URL and a model" in judge["settings"].found


async def test_no_judge_is_a_warning(project: Path) -> None:
    text = (project / "gates.yaml").read_text().replace("judge:\n  recorded: _shared/judge\n", "")
    (project / "gates.yaml").write_text(text)
    judge = await of("judge")
    assert (judge["settings"].state, judge["settings"].found) == (
        State.WARNING,
        "no LLM judge is set, so rubrics cannot be graded",
    )


async def test_a_judge_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PASSGATE_JUDGE_MODEL", "gpt-5-mini")
    with ScriptedUpstream([Says("ok")]) as upstream:
        monkeypatch.setenv("PASSGATE_JUDGE_BASE_URL", upstream.openai_base_url)
        judge = await of("judge")
    assert (judge["reply"].state, judge["reply"].found) == (State.OK, "gpt-5-mini replies")
    assert judge["price"].state is State.OK
    assert upstream.count == 1


async def test_a_judge_that_does_not_reply_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PASSGATE_JUDGE_MODEL", "my-judge")
    with ScriptedUpstream([Status(401)]) as upstream:
        monkeypatch.setenv("PASSGATE_JUDGE_BASE_URL", upstream.openai_base_url)
        judge = await of("judge")
    assert judge["reply"].state is State.FAILED
    assert "401" in judge["reply"].found
    assert judge["price"].state is State.WARNING


async def test_everything_over_the_network_is_asked_at_the_same_time(project: Path) -> None:
    """Ten endpoints that say nothing take the time of one."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        agents = "".join(
            f"  a{n}: {{agent: 'openai:m', upstreams: {{openai: {{base_url: '{url}'}}}}}}\n" for n in range(10)
        )
        (project / "agents.yaml").write_text(f"agents:\n{agents}")
        begin = time.monotonic()
        symptoms = await doctor()
    failed = [symptom for symptom in symptoms if symptom.what == "endpoint openai" and symptom.state is State.FAILED]
    assert len(failed) == 10
    assert time.monotonic() - begin < 5 * PROBE_SECONDS


async def test_no_key_is_ever_told(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "MY_KEY", "PASSGATE_JUDGE_API_KEY"):
        monkeypatch.setenv(name, f"sk-123456-{name}")
    monkeypatch.setenv("PASSGATE_JUDGE_MODEL", "my-judge")
    with answering(401, b'{"error": "wrong key sk-123456-MY_KEY"}') as server:
        monkeypatch.setenv("PASSGATE_JUDGE_BASE_URL", f"{server.url}/v1")
        settings = f"{{openai: {{base_url: '{server.url}', api_key_variable: MY_KEY}}}}"
        (project / "agents.yaml").write_text(
            f"agents:\n  a: {{agent: 'openai:sk-123456-MY_KEY', upstreams: {settings}}}\n  b: {{agent: 'cli:sh'}}\n"
        )
        told = repr([await doctor(), await doctor("openai:sk-123456-OPENAI_API_KEY")])
    assert "answers 401" in told
    assert "sk-123456" not in told


async def test_agents_that_cannot_be_read_are_not_said_to_be_none(project: Path) -> None:
    (project / "agents.yaml").write_text("agents: {bot: {agent: 'cli:sh', modle: x}}\n")
    symptoms = await doctor()
    assert [symptom.state for symptom in symptoms if symptom.what == "agents"] == [State.FAILED]
    assert "no agent has a name" not in {symptom.found for symptom in symptoms}
