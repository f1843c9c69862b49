"""An agent behind an address of this machine, which no proxy is asked for."""

from collections.abc import Iterator

import pytest
from tests.unit.agents.agent_server import AgentServer, running_agent


@pytest.fixture
def server() -> Iterator[AgentServer]:
    with running_agent() as agent:
        yield agent


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
