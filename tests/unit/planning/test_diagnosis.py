"""What is said of an agent before it is run, with real endpoints on the loopback."""

from pathlib import Path
from typing import Any

import pytest

from passgate.tasks.model.agent import AgentKind, AgentSpec, Endpoint
from passgate.tasks.model.checks import State, Symptom
from passgate.tasks.model.price import Price, PriceTable, price_remedy
from passgate.tasks.planning.diagnosis import diagnose
from tests.answering import answering

pytestmark = pytest.mark.usefixtures("alone")
PRICES = PriceTable(models={"my-model": Price(input=2, output=10.5)})


@pytest.fixture(autouse=True)
def _working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


async def looked_at(kind: AgentKind, target: str, needs_price: str | None = None, **settings: Any) -> list[Symptom]:
    spec = AgentSpec(kind=kind, target=target, name="mine", **settings)
    symptoms = await diagnose(spec, Path("suites"), PRICES, needs_price)
    assert {symptom.subject for symptom in symptoms} == {"agent mine"}
    return symptoms


async def the(what: str, *arguments: Any, **settings: Any) -> Symptom:
    """The one symptom of a kind."""
    (symptom,) = [symptom for symptom in await looked_at(*arguments, **settings) if symptom.what == what]
    return symptom


async def of_endpoint(url: str, key: str | None = None) -> Symptom:
    """What is said of the endpoint of an agent with our own loop."""
    upstreams = {"openai": Endpoint(base_url=url, api_key_variable=key)}
    return await the("endpoint openai", AgentKind.OPENAI, "my-model", upstreams=upstreams)


@pytest.mark.parametrize(
    ("kind", "target", "found"),
    [
        (AgentKind.CLI, "no-such-program-here {prompt}", "not on this machine"),
        (AgentKind.CLI, "sh {promt}", "unknown placeholder"),
        (AgentKind.PYTHON, "no_such_module_here:f", "cannot be imported"),
        (AgentKind.HTTP, "nowhere", "needs an address"),
    ],
)
async def test_an_agent_that_cannot_be_made_is_looked_at_no_further(kind: AgentKind, target: str, found: str) -> None:
    (symptom,) = await looked_at(kind, target)
    assert (symptom.what, symptom.state) == (kind, State.FAILED)
    assert found in symptom.found


@pytest.mark.parametrize(
    ("kind", "target", "state", "found"),
    [
        (AgentKind.CLI, "sh -c 'echo {prompt}'", State.OK, "sh is /"),
        (AgentKind.CLI, "sh -c {PROMPT} | cat", State.OK, "sh is /"),
        (AgentKind.CLI, "cd {PROMPT}", State.OK, "cd is built into the shell"),
        (
            AgentKind.CLI,
            "no-such-program-here {PROMPT} > {OUTPUT_FILE}",
            State.WARNING,
            "no-such-program-here is not on PATH",
        ),
        (AgentKind.CLI, "./comes-with-the-sandbox {PROMPT}", State.OK, "cli:./comes-with-the-sandbox {PROMPT}"),
        (AgentKind.CLI, "(true) && {PROMPT}", State.OK, "cli:(true) && {PROMPT}"),
        (AgentKind.PYTHON, "os.path:basename", State.OK, "python:os.path:basename"),
    ],
)
async def test_a_command_or_a_function_is_looked_at_as_far_as_can_be(
    kind: AgentKind, target: str, state: State, found: str
) -> None:
    symptom = await the(kind, kind, target)
    assert symptom.state is state
    assert symptom.found.startswith(found)


@pytest.mark.parametrize("kind", [AgentKind.ORACLE, AgentKind.NOP])
async def test_what_calls_no_model_is_asked_for_none(kind: AgentKind) -> None:
    (symptom,) = await looked_at(kind, "")
    assert (symptom.state, symptom.found) == (State.OK, f"{kind} needs nothing")


async def test_endpoints_that_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "sk-123456")
    with answering(200) as one, answering(200) as other:
        upstreams = {
            "openai": Endpoint(base_url=f"{one.url}/v1", api_key_variable="MY_KEY"),
            "anthropic": Endpoint(base_url=other.url, api_key_variable="MY_KEY"),
        }
        symptoms = await looked_at(AgentKind.CLI, "sh", upstreams=upstreams, model="my-model")
    found = {symptom.what: (symptom.state, symptom.found) for symptom in symptoms}
    assert found["endpoint openai"] == (State.OK, f"{one.url}/v1/models answers 200, MY_KEY is set")
    assert found["endpoint anthropic"] == (State.OK, f"{other.url}/v1/models answers 200, MY_KEY is set")
    assert "keys" not in found
    assert [headers["authorization"] for _, headers in one.asked] == ["Bearer sk-123456"]
    assert [headers["x-api-key"] for _, headers in other.asked] == ["sk-123456"]


async def test_our_own_loop_has_an_endpoint_that_nobody_has_to_name(monkeypatch: pytest.MonkeyPatch) -> None:
    with answering(200) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        symptom = await the("endpoint openai", AgentKind.OPENAI, "my-model")
    found = f"{server.url}/v1/models answers 200, OPENAI_API_KEY is not set"
    assert (symptom.state, symptom.found) == (State.OK, found)


@pytest.mark.parametrize(
    ("status", "key", "state", "remedy"),
    [
        (401, "is set", State.FAILED, "put a key that is valid there into MY_KEY"),
        (403, "is set", State.FAILED, "put a key that is valid there into MY_KEY"),
        (404, "is set", State.WARNING, "check base_url of upstreams.openai: few endpoints have no such list"),
        (405, "is set", State.OK, ""),
        (200, "is not set", State.FAILED, "set MY_KEY, which upstreams.openai names"),
    ],
)
async def test_what_an_endpoint_answers_with_the_key_that_is_named(
    monkeypatch: pytest.MonkeyPatch, status: int, key: str, state: State, remedy: str
) -> None:
    if key == "is set":
        monkeypatch.setenv("MY_KEY", "sk-123456")
    with answering(status) as server:
        symptom = await of_endpoint(server.url, "MY_KEY")
    assert (symptom.state, symptom.remedy) == (state, remedy)
    assert f"answers {status}, MY_KEY {key}" in symptom.found


async def test_an_endpoint_that_is_not_there_or_has_no_address(closed: str) -> None:
    symptom = await of_endpoint(f"{closed}/v1")
    assert symptom.state is State.FAILED
    assert f"{closed}/v1/models" in symptom.found
    assert symptom.remedy == "check base_url of upstreams.openai, and the network"
    assert (await of_endpoint("ftp://127.0.0.1")).state is State.FAILED


@pytest.mark.parametrize("status", [200, 401, 404, 405, 500])
async def test_the_host_of_a_service_may_answer_what_it_will(status: int) -> None:
    with answering(status) as server:
        symptom = await the("host", AgentKind.HTTP, f"{server.url}/ask")
    assert symptom.state is State.OK
    assert symptom.found == f"{server.url}/ask is there: it answers {status} to a GET"


async def test_a_service_that_is_not_there(closed: str) -> None:
    symptom = await the("host", AgentKind.HTTP, f"{closed}/ask")
    assert symptom.state is State.FAILED
    assert "does not answer: ConnectError" in symptom.found


@pytest.mark.parametrize("variable", ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "GOOGLE_API_KEY"])
@pytest.mark.parametrize(("key", "state"), [("", State.WARNING), ("sk-123456", State.OK)])
async def test_without_named_endpoints_the_usual_keys_are_looked_for(
    monkeypatch: pytest.MonkeyPatch, variable: str, key: str, state: State
) -> None:
    monkeypatch.setenv(variable, key)
    symptom = await the("keys", AgentKind.CLI, "sh")
    assert symptom.state is state
    assert "OPENAI_API_KEY is not set" in symptom.found


@pytest.mark.parametrize(
    ("model", "needs", "state", "found"),
    [
        ("my-model", None, State.OK, "my-model costs $2 in and $10.5 out per million tokens"),
        ("other", None, State.WARNING, "the price of other is not known"),
        ("other", "there is a limit", State.FAILED, "the price of other is not known, and there is a limit"),
    ],
)
async def test_a_price_that_is_not_known_matters_where_something_needs_it(
    model: str, needs: str | None, state: State, found: str
) -> None:
    symptom = await the("price", AgentKind.CLI, "sh", needs, model=model)
    assert (symptom.state, symptom.found) == (state, found)
    assert symptom.remedy == ("" if state is State.OK else price_remedy("other"))
    assert state is State.OK or '"other": {input: DOLLARS, output: DOLLARS}' in symptom.remedy


async def test_a_model_that_nobody_has_named_is_asked_for_at_run_time() -> None:
    symptom = await the("model", AgentKind.CLI, "sh")
    assert (symptom.state, symptom.found) == (State.OK, "not known before the agent asks for one")
