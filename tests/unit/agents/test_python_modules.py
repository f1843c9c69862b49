"""Python functions as agents, named by their module."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from passgate.tasks.agents.python import PythonAgent
from passgate.tasks.errors import UsageError


@pytest.fixture(autouse=True)
def _module_path() -> Iterator[None]:
    """Agents are looked for in the working folder, which is another one in each test."""
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if name.startswith("agent_under_test"):
            del sys.modules[name]


async def test_a_function_of_the_working_folder(attempt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "agent_under_test.py").write_text("async def answer(attempt):\n    return attempt.prompt.upper()\n")
    agent = PythonAgent.from_target("agent_under_test:answer")
    assert (await attempt(agent)).output == "SAY YES."


async def test_what_a_module_logs_is_its_trials(attempt, tmp_path: Path, monkeypatch, capfd) -> None:
    """Its handler was made before any trial began."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "agent_under_test_logs.py").write_text(
        "import logging\n"
        "log = logging.getLogger('agent_under_test')\n"
        "log.addHandler(logging.StreamHandler())\n"
        "def answer(attempt):\n"
        "    log.warning('of trial %d', attempt.trial)\n"
        "    return 'yes'\n"
    )
    agent = PythonAgent.from_target("agent_under_test_logs:answer")
    assert (await attempt(agent, trial=2)).printed == "of trial 2\n"
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("target", ["", "module", "module:", ":function"])
def test_a_target_of_another_form_is_refused(target: str) -> None:
    with pytest.raises(UsageError, match="needs the form python:MODULE:FUNCTION"):
        PythonAgent.from_target(target)


@pytest.mark.parametrize(
    ("content", "function", "reason"),
    [
        (None, "answer", "ModuleNotFoundError"),
        ("def other(attempt): ...", "answer", "has no attribute 'answer'"),
        ("def answer(", "answer", "SyntaxError"),
        ("raise RuntimeError('no key')", "answer", "RuntimeError: no key"),
        ("1 / 0", "answer", "ZeroDivisionError"),
    ],
)
def test_a_function_that_cannot_be_imported_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str | None, function: str, reason: str
) -> None:
    monkeypatch.chdir(tmp_path)
    if content is not None:
        (tmp_path / "agent_under_test_broken.py").write_text(content)
    with pytest.raises(UsageError, match="cannot be imported") as caught:
        PythonAgent.from_target(f"agent_under_test_broken:{function}")
    assert reason in str(caught.value)


def test_what_cannot_be_called_is_refused() -> None:
    with pytest.raises(UsageError, match="is not a function"):
        PythonAgent.from_target("math:pi")
