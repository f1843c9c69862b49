"""Python functions as agents, named by their module."""

import sys
from pathlib import Path

import pytest
from tests.processes import marked_processes
from tests.unit.agents.conftest import started
from tests.waiting import wait_until

from passgate.tasks.errors import UsageError


async def test_a_module_is_imported_once_and_elsewhere(attempt, python_agent, tmp_path: Path) -> None:
    agent = python_agent("""
        import pathlib, sys
        with pathlib.Path("imports").open("a") as file:
            file.write("x")
        async def answer(attempt):
            return f"{attempt.prompt.upper()} {sys.argv[1:]}"
        """)
    for trial in range(3):
        assert (await attempt(agent, trial=trial)).output == "SAY YES. []"
    assert (tmp_path / "imports").read_text() == "x"
    assert "agent_under_test" not in sys.modules


async def test_a_module_that_starts_threads_has_them_in_every_trial(attempt, python_agent) -> None:
    agent = python_agent("""
        import queue, threading
        ASKED, ANSWERED = queue.Queue(), queue.Queue()
        def work():
            while True:
                ANSWERED.put(ASKED.get().upper())
        threading.Thread(target=work, daemon=True).start()
        def answer(attempt):
            ASKED.put("yes")
            return ANSWERED.get(timeout=240)
        """)
    for trial in range(2):
        assert (await attempt(agent, trial=trial)).output == "YES"


async def test_a_file_of_the_working_folder_takes_the_place_of_no_module_of_ours(
    attempt, python_agent, tmp_path: Path
) -> None:
    for name in ("json", "typing", "socket", "pydantic"):
        (tmp_path / f"{name}.py").write_text("raise RuntimeError('not that one')")
    assert (await attempt(python_agent("def answer(attempt):\n    return 'yes'\n"))).output == "yes"


@pytest.mark.parametrize("target", ["", "module", "module:", ":function"])
def test_a_target_of_another_form_is_refused(target: str) -> None:
    with pytest.raises(UsageError, match="needs the form python:MODULE:FUNCTION"), started(target):
        pytest.fail("there is no such agent")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "ModuleNotFoundError: No module named 'broken'"),
        ("def other(attempt): ...", "has no attribute 'answer'"),
        ("def answer(", "SyntaxError: '(' was never closed (broken.py, line 1)"),
        ("\nraise RuntimeError('no key')", "RuntimeError: no key (FOLDER/broken.py:2)"),
        ("import gone", "ModuleNotFoundError: No module named 'gone' (FOLDER/broken.py:1)"),
        ("print('set KEY')\nraise SystemExit(1)", "SystemExit(1) (FOLDER/broken.py:2). It printed: set KEY"),
        ("import os\nos._exit(0)", "its process exited with code 0 while it was imported"),
        ("import ctypes\nctypes.string_at(0)", "its process was ended by SIGSEGV while it was imported"),
        ("answer = 3", "is not a function"),
    ],
)
def test_a_function_that_cannot_be_had_is_refused(tmp_path, monkeypatch, content: str | None, reason: str) -> None:
    monkeypatch.chdir(tmp_path)
    if content is not None:
        (tmp_path / "broken.py").write_text(content)
    with pytest.raises(UsageError, match=r"^the agent python:broken:answer ") as caught, started("broken:answer"):
        pytest.fail("there is no such agent")
    assert reason.replace("FOLDER", str(tmp_path)) in str(caught.value)


def test_what_a_module_has_started_ends_with_the_agent(python_agent) -> None:
    mark = "4242.31"
    agent = python_agent(f"""
        import subprocess
        subprocess.Popen(["sleep", "{mark}"], start_new_session=True)
        def answer(attempt):
            return "yes"
        """)
    wait_until(lambda: bool(marked_processes(mark)))
    agent.close()
    assert marked_processes(mark) == []
