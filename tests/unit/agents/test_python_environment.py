"""What Python functions as agents find in their environment and print, each trial's its own, and their modules."""

import asyncio
import os
import sys
from pathlib import Path

import pytest
from tests.builders import a_task
from tests.processes import marked_processes
from tests.unit.agents.conftest import Metered, started
from tests.waiting import wait_until

from passgate.tasks.agents.transcripts import PRINTED_BYTES
from passgate.tasks.errors import UsageError


@pytest.mark.parametrize(("define", "wait"), [("def", "pass"), ("async def", "await asyncio.sleep(0.05)")])
async def test_every_trial_has_its_own_way_to_the_models(run_code, define: str, wait: str) -> None:
    body = f"""
        {wait}
        of_a_command = subprocess.check_output(["sh", "-c", "echo $TRIAL_KEY"], text=True).strip()
        return f"{{os.environ['TRIAL_KEY']}} {{of_a_command}} {{attempt.variables['TRIAL_KEY']}}"
    """
    ways = [Metered(TRIAL_KEY=f"k-{n}") for n in range(6)]
    trials = (run_code(body, define=define, access=way, variables=way.variables) for way in ways)
    seen = [transcript.output for transcript in await asyncio.gather(*trials)]
    assert seen == [f"k-{n} k-{n} k-{n}" for n in range(6)]
    assert "TRIAL_KEY" not in os.environ


async def test_no_proxy_is_asked_for_the_meter_and_no_key_of_the_judge_is_there(
    attempt, python_agent, monkeypatch
) -> None:
    monkeypatch.setenv("PASSGATE_JUDGE_API_KEY", "secret")
    monkeypatch.setenv("NO_PROXY", "a.example")
    monkeypatch.delenv("no_proxy", raising=False)
    agent = python_agent("""
        import os, pathlib
        def answer(attempt):
            has_key = b"PASSGATE_JUDGE" in pathlib.Path("/proc/self/environ").read_bytes()
            return f"{os.environ['NO_PROXY']}|{os.environ.get('no_proxy')}|{has_key}"
        """)
    both = "a.example,127.0.0.1,localhost,::1"
    assert (await attempt(agent, access=Metered(TRIAL_KEY="k"))).output == f"{both}|{both}|False"
    assert (await attempt(agent)).output == "a.example|None|False"


@pytest.mark.parametrize(
    "reads", ["os.environ['OPENAI_BASE_URL']", "os.getenv('OPENAI_BASE_URL')", "dict(os.environ)['OPENAI_BASE_URL']"]
)
async def test_a_client_that_is_made_at_import_leads_to_the_trials_models(
    attempt, python_agent, monkeypatch, reads: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-real-0123456789")
    monkeypatch.setenv("OPENAI_BASE_URL", "https://provider.example/v1")
    agent = python_agent(f"""
        import os
        CLIENT = {reads}, os.environ["OPENAI_API_KEY"]
        def answer(attempt):
            return "|".join(CLIENT)
        """)
    for trial in ("one", "two"):
        access = Metered(OPENAI_BASE_URL=f"http://{trial}")
        assert (await attempt(agent, access=access)).output == f"http://{trial}|of-the-trial"


async def test_no_real_key_is_in_the_process_of_an_agent(attempt, python_agent, monkeypatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-real-0123456789")
    agent = python_agent("""
        import os, pathlib
        IMPORTS = []
        def answer(attempt):
            IMPORTS.append(1)
            parents = pathlib.Path(f"/proc/{os.getppid()}/environ").read_bytes()
            own = pathlib.Path("/proc/self/environ").read_bytes() + repr(os.environ).encode()
            return str(b"sk-real" in own + parents)
        """)
    assert (await attempt(agent)).output == "False"


async def test_the_variables_of_the_workspace_are_set_for_the_agent(run_code, monkeypatch) -> None:
    monkeypatch.setenv("MODE", "of the shell")
    task = a_task(workspace={"environment": {"MODE": "of the task", "OPENAI_BASE_URL": "http://elsewhere"}})
    body = "return f\"{os.environ['MODE']} {os.environ['OPENAI_BASE_URL']}\""
    transcript = await run_code(body, task=task, access=Metered(OPENAI_BASE_URL="http://meter"))
    assert transcript.output == "of the task http://meter"
    assert os.environ["MODE"] == "of the shell"


async def test_what_a_trial_does_to_its_process_no_other_sees(attempt, python_agent, tmp_path) -> None:
    agent = python_agent("""
        import builtins, json, os, random, signal, sys
        SEEN = []
        def answer(attempt):
            before = [os.environ.get("LEFT"), os.getcwd(), json.dumps(1), sys.path[0], str(SEEN)]
            state = str([*before, signal.getsignal(signal.SIGTERM) is signal.SIG_DFL, hasattr(builtins, "left")])
            SEEN.append(1)
            os.environ["LEFT"] = "x"
            os.chdir("/")
            json.dumps = lambda value: "patched"
            sys.path[:] = ["/nowhere"]
            builtins.left = 1
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            return state
        """)
    first, second = await attempt(agent), await attempt(agent)
    assert first.output == second.output == str([None, str(tmp_path), "1", str(tmp_path), "[]", True, False])


async def test_random_numbers_of_python_differ_from_trial_to_trial(run_code) -> None:
    first, second = [await run_code("return str(random.random())") for _ in range(2)]
    assert first.output != second.output


@pytest.mark.parametrize("define", ["def", "async def"])
async def test_what_it_prints_is_its_trials_whoever_prints(run_code, capfd, define: str) -> None:
    body = r"""
        print(f"trial {attempt.trial}")
        print("aside", file=sys.stderr)
        sys.stdout.buffer.write("é\n".encode())
        os.write(1, b"raw\n")
        subprocess.run(["echo", "of a command"])
        thread = threading.Thread(target=print, args=("of a thread",))
        thread.start()
        thread.join()
        return "yes"
    """
    transcripts = await asyncio.gather(*(run_code(body, define=define, trial=trial) for trial in range(4)))
    assert [transcript.printed for transcript in transcripts] == [
        f"trial {n}\naside\né\nraw\nof a command\nof a thread\n" for n in range(4)
    ]
    assert {transcript.detail for transcript in transcripts} == {""}
    assert capfd.readouterr() == ("", "")


async def test_what_a_module_logs_is_its_trials(attempt, python_agent, capfd) -> None:
    """Its handler was made before any trial began."""
    agent = python_agent("""
        import logging
        log = logging.getLogger("agent_under_test")
        log.addHandler(logging.StreamHandler())
        print("of the import")
        def answer(attempt):
            log.warning("of trial %d", attempt.trial)
            return "yes"
        """)
    assert (await attempt(agent, trial=2)).printed == "of trial 2\n"
    assert capfd.readouterr() == ("", "")


async def test_what_a_transcript_says_was_printed_stays_where_nothing_is(run_code) -> None:
    assert (await run_code("return {'output': 'yes', 'printed': 'of old'}")).printed == "of old"


async def test_of_much_the_end_is_kept(run_code) -> None:
    printed = (await run_code("for number in range(100_000): print(number)\nreturn 'yes'")).printed
    assert printed.endswith("99998\n99999\n")
    assert PRINTED_BYTES - 10 < len(printed) <= PRINTED_BYTES


@pytest.mark.parametrize("shift", range(4))
async def test_no_half_character_is_kept(run_code, shift: int) -> None:
    printed = (await run_code(f"sys.stdout.write('🙂' * {PRINTED_BYTES} + 'x' * {shift})\nreturn 'yes'")).printed
    assert set(printed) <= {"…", "🙂", "x"}
    assert len(printed.encode()) <= PRINTED_BYTES


async def test_anything_printed_can_be_recorded(run_code) -> None:
    printed = (await run_code(r"print('a\ud800b'); sys.stdout.buffer.write(b'\xff'); return 'yes'")).printed
    assert printed.encode() == b"a\\ud800b\n\xef\xbf\xbd"


@pytest.mark.parametrize("code", ["sys.stdout.close()", "sys.stdout = None", "os.close(1); os.close(2)"])
async def test_a_stream_that_is_closed_is_the_agents_right(run_code, code: str) -> None:
    assert (await run_code(f"{code}\nreturn 'yes'")).output == "yes"


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


async def test_a_file_of_the_working_folder_replaces_no_module_of_ours(attempt, python_agent, tmp_path: Path) -> None:
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
