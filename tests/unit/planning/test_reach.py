"""A run whose agent has no way to its models is refused before it begins, with real endpoints on the loopback."""

import socket
import threading
from types import SimpleNamespace

import pytest

from passgate.tasks.errors import MeasurementError, UsageError
from passgate.tasks.model.agent import AgentKind, AgentSpec, Endpoint
from passgate.tasks.planning.requirements import refuse_unreachable
from passgate.tasks.providers import probe
from tests.answering import answering

pytestmark = pytest.mark.usefixtures("alone")


def of_openai(base_url: str | None = None, key: str | None = None) -> AgentSpec:
    upstreams = {"openai": Endpoint(base_url=base_url, api_key_variable=key)}
    return AgentSpec(kind=AgentKind.OPENAI, target="my-model", upstreams=upstreams)


def test_a_missing_key_is_named_and_nobody_is_asked(closed: str) -> None:
    with pytest.raises(
        UsageError, match=r"^OPENAI_API_KEY is not set, and https://api\.openai\.com/v1 accepts no call"
    ):
        refuse_unreachable(of_openai())
    with pytest.raises(UsageError, match=r"^MY_KEY is not set, and the agent openai:my-model reads its key from it"):
        refuse_unreachable(of_openai(closed, "MY_KEY"))
    upstreams = {"anthropic": Endpoint(base_url=closed, api_key_variable="MY_KEY")}
    with pytest.raises(UsageError, match=r"^MY_KEY is not set"):
        refuse_unreachable(AgentSpec(kind=AgentKind.CLI, target="sh", upstreams=upstreams))


@pytest.mark.parametrize(("key", "state"), [("", "is not set"), ("wrong", "is not valid there")])
def test_a_key_that_is_not_taken_is_the_users_to_mend(monkeypatch: pytest.MonkeyPatch, key: str, state: str) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with answering(401) as server, pytest.raises(UsageError, match=f"answers 401 and OPENAI_API_KEY {state}"):
        refuse_unreachable(of_openai(f"{server.url}/v1"))


@pytest.mark.parametrize("status", [200, 403, 404, 429, 500, 503])
def test_whoever_answers_can_be_reached_and_a_local_endpoint_without_a_key(status: int) -> None:
    with answering(status, b"<html>", "text/html") as server:
        refuse_unreachable(of_openai(f"{server.url}/v1"))
        refuse_unreachable(AgentSpec(kind=AgentKind.HTTP, target=f"{server.url}/ask"))
    assert [path for path, _ in server.asked] == ["/v1/models", "/ask"]


def test_a_provider_that_is_down_or_unknown_is_not_the_users_fault(closed: str) -> None:
    with pytest.raises(MeasurementError, match=r"cannot be reached \(.+\), so no trial ran: check the base URL"):
        refuse_unreachable(of_openai(f"{closed}/v1"))
    with pytest.raises(MeasurementError, match=r"https://nowhere\.invalid/v1 cannot be reached"):
        refuse_unreachable(of_openai("https://nowhere.invalid/v1"))
    with pytest.raises(MeasurementError, match=r"cannot be reached .* start the service, or correct the agent's URL"):
        refuse_unreachable(AgentSpec(kind=AgentKind.HTTP, target=f"{closed}/ask"))


def test_a_provider_that_is_silent_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """How long it may be silent is said by the agent's settings."""
    monkeypatch.setattr(probe, "CONNECT_SECONDS", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        refuse_unreachable(of_openai(f"http://127.0.0.1:{silent.getsockname()[1]}/v1"))


@pytest.mark.parametrize("kind", [AgentKind.ORACLE, AgentKind.NOP, AgentKind.REPLAY, AgentKind.CLI, AgentKind.PYTHON])
def test_nobody_is_asked_for_an_agent_that_may_call_nobody(monkeypatch: pytest.MonkeyPatch, kind: AgentKind) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "https://nowhere.invalid/v1")
    refuse_unreachable(AgentSpec(kind=kind, target="sh"))


def test_a_provider_that_comes_up_meanwhile_is_there(closed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second attempt finds it."""
    pauses: list[float] = []

    def serve(server: socket.socket) -> None:
        with server, server.accept()[0] as connection:
            connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        server = socket.create_server(("127.0.0.1", int(closed.rpartition(":")[2])))
        threading.Thread(target=serve, args=[server], daemon=True).start()

    monkeypatch.setattr(probe, "time", SimpleNamespace(sleep=pause))
    refuse_unreachable(of_openai(f"{closed}/v1"))
    assert pauses == [1.0]
