"""Python functions as agents, whatever they do."""

import asyncio
import json
import os
import socket
from pathlib import Path

import pytest
from tests.builders import a_task
from tests.unit.agents.conftest import one_turn
from tests.unit.conftest import call_off

from passgate.tasks.errors import MeasurementError
from passgate.tasks.model.transcript import EndReason, Message

ASYNC = pytest.mark.parametrize("define", ["def", "async def"])
"""Both kinds of function."""


def is_there(number: str) -> bool:
    """Whether a process of this id runs."""
    return Path("/proc", number).exists()


@pytest.mark.parametrize(
    ("define", "body", "complete"),
    [
        ("def", "return 'yes'", False),
        ("async def", "await asyncio.sleep(0.01)\nreturn 'yes'", False),
        ("def", "return asyncio.sleep(0.01, 'yes')", False),
        ("def", "return {'messages': [{'role': 'assistant', 'content': 'yes'}]}", True),
        ("def", "return Transcript(messages=(Message(role='assistant', content='yes'),), output='yes')", True),
    ],
    ids=["text", "async", "awaitable", "dictionary", "transcript"],
)
async def test_the_answer_is_what_the_function_gives(run_code, define: str, body: str, complete: bool) -> None:
    transcript = await run_code(body, define=define)
    assert (transcript.output, transcript.end, transcript.complete) == ("yes", EndReason.COMPLETED, complete)


@ASYNC
async def test_the_function_is_told_everything(attempt, python_agent, tmp_path: Path, define: str) -> None:
    agent = python_agent(f"""
        import json
        {define} answer(attempt):
            (attempt.workspace / "made").write_text("x")
            told = [attempt.task_id, attempt.trial, attempt.prompt, attempt.inputs, attempt.budgets.model_dump()]
            return json.dumps([*told, type(attempt.files["a.txt"]).__name__])
        """)
    task = a_task(inputs={"prompt": "Say yes.", "n": 1, "deep": [{"x": None}], "half": 0.5}, budgets={"max_steps": 3})
    transcript = await attempt(agent, task, trial=2, files={"a.txt": tmp_path / "a.txt"})
    told = ["say-yes", 2, "Say yes.", dict(task.inputs), task.budgets.model_dump(), "PosixPath"]
    assert json.loads(transcript.output) == told


@ASYNC
@pytest.mark.parametrize(
    ("raised", "detail"),
    [
        ("ValueError('no key')", "ValueError: no key"),
        ("TimeoutError('the model did not answer')", "TimeoutError: the model did not answer"),
        ("SystemExit(3)", "SystemExit(3)"),
        ("SystemExit(0)", "SystemExit(0)"),
        ("KeyboardInterrupt()", "KeyboardInterrupt()"),
        ("asyncio.CancelledError()", "CancelledError()"),
        (r"ValueError('a\ud800b')", "ValueError: a?b"),
        ("ValueError('x' * 10_000)", "ValueError: xxx"),
        ("ExceptionGroup('several', [ValueError('one')])", "ExceptionGroup: several"),
    ],
    ids=lambda value: value[:16],
)
async def test_whatever_the_function_raises_is_a_crash(run_code, define: str, raised: str, detail: str) -> None:
    transcript = await run_code(f"print('before')\nraise {raised}", define=define)
    assert (transcript.end, transcript.complete, transcript.printed) == (EndReason.CRASHED, False, "before\n")
    assert transcript.detail.startswith(detail)
    assert len(transcript.detail) <= 2000


@ASYNC
async def test_the_last_frames_of_a_crash_are_kept(attempt, python_agent, tmp_path: Path, define: str) -> None:
    agent = python_agent(f"""
        def look(depth):
            return 1 / 0 if depth == 0 else look(depth - 1)

        {define} answer(attempt):
            return look(int(attempt.prompt))
        """)
    file = tmp_path / "agent_under_test.py"
    look = [f'  File "{file}", line 3, in look', "    return 1 / 0 if depth == 0 else look(depth - 1)"]
    assert (await attempt(agent, prompt="0")).detail.splitlines() == [
        "ZeroDivisionError: division by zero",
        f'  File "{file}", line 6, in answer',
        "    return look(int(attempt.prompt))",
        *look,
    ]
    assert (await attempt(agent, prompt="100")).detail.splitlines()[1:] == look * 5


ENDS = {
    "os._exit(0)": "its process exited with code 0 before it answered",
    "os._exit(7)": "its process exited with code 7",
    "ctypes.string_at(0)": "its process was ended by SIGSEGV",
    "os.abort()": "its process was ended by SIGABRT",
    "os.kill(os.getpid(), 9)": "its process was ended by SIGKILL",
    "os.killpg(0, 15)": "its process was ended by SIGTERM",
}


async def test_an_agent_that_ends_its_process_ends_nothing_else(run_code) -> None:
    *broken, other = await asyncio.gather(*map(run_code, [*ENDS, "return 'yes'"]))
    for transcript, detail in zip(broken, ENDS.values(), strict=True):
        assert transcript.end is EndReason.CRASHED
        assert detail in transcript.detail
    assert other.output == "yes"
    assert "ctypes" in broken[2].printed, "where it has ended"


async def test_a_server_that_an_agent_has_ended_is_started_again(attempt, python_agent) -> None:
    agent = python_agent("""
        import os
        SERVER = os.getpid()
        def answer(attempt):
            if attempt.trial == 0:
                os.kill(SERVER, 9)
            return "yes"
        """)
    await attempt(agent, trial=0)
    assert [(await attempt(agent, trial=trial)).output for trial in (1, 2)] == ["yes", "yes"]


async def test_what_the_agent_calls_unmeasurable_is(run_code) -> None:
    with pytest.raises(MeasurementError, match="provider is down") as caught:
        await run_code(r"raise MeasurementError('the provider is down \ud800', transient=True)")
    assert caught.value.transient is True


TURNS = 'turns = next(n for n in range(3, 20) if "socket" in os.readlink(f"/proc/self/fd/{n}"))'
FORGED = json.dumps({"transcript": {"output": "forged", "end": "completed"}}).encode() + b"\n"
ODD = "Transcript(messages=(Message(role='assistant', tool_calls=(ToolCall(tool='t', result=object()),)),))"


@pytest.mark.parametrize(
    "hangs",
    [
        "time.sleep(600)",
        f"{TURNS}; os.close(turns); time.sleep(600)",
        "asyncio.run(asyncio.sleep(600))",
        "os.kill(os.getpid(), signal.SIGSTOP)",
        "while True: signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())",
    ],
)
async def test_an_agent_that_hangs_runs_out_of_time_and_is_gone(run_code, tmp_path: Path, hangs: str) -> None:
    transcript = await run_code(
        f"""
        print("before", flush=True)
        pathlib.Path({str(tmp_path / "process")!r}).write_text(str(os.getpid()))
        (attempt.workspace / "ready").touch()
        {hangs}
        """,
        hangs=True,
    )
    assert (transcript.end, transcript.printed) == (EndReason.TIMED_OUT, "before\n")
    assert not is_there((tmp_path / "process").read_text())


async def test_trials_run_at_the_same_time(run_code, tmp_path: Path) -> None:
    body = f"""
        folder = pathlib.Path({str(tmp_path / "met")!r})
        folder.mkdir(exist_ok=True)
        (folder / str(attempt.trial)).touch()
        while len(list(folder.iterdir())) < 20:
            time.sleep(0.02)
        return "yes"
    """
    transcripts = await asyncio.gather(*(run_code(body, trial=trial) for trial in range(20)))
    assert [transcript.output for transcript in transcripts] == ["yes"] * 20


async def test_a_trial_that_is_called_off_ends_the_agent(run_code, tmp_path: Path) -> None:
    process = tmp_path / "process"
    body = f"""
        pathlib.Path("{process}.new").write_text(str(os.getpid()))
        os.rename("{process}.new", "{process}")
        await asyncio.sleep(600)
    """
    await call_off(run_code(body, define="async def"), process.exists)
    assert not is_there(process.read_text())


@ASYNC
async def test_all_turns_of_a_trial_have_one_process(sandbox_of, python_agent, define: str) -> None:
    agent = python_agent(f"""
        HEARD = []
        {define} answer(given):
            print("turn", given.turn)
            HEARD.append(given.prompt)
            said = [message.content for message in given.history]
            return f"{{given.turn}} {{HEARD}} {{given.session}} {{said}}"
        """)
    history = (Message(role="user", content="a"), Message(role="assistant", content="b"))
    async with sandbox_of() as sandbox:
        first = await one_turn(agent, a_task(), sandbox, prompt="a", session="s")
        other = await one_turn(agent, a_task(), sandbox, prompt="o", session="t")
        second = await one_turn(agent, a_task(), sandbox, prompt="c", session="s", turn=1, history=history)
        await agent.end_session("s")
        await agent.end_session("t")
    assert [(turn.output, turn.printed) for turn in (first, other, second)] == [
        ("0 ['a'] s []", "turn 0\n"),
        ("0 ['o'] t []", "turn 0\n"),
        ("1 ['a', 'c'] s ['a', 'b']", "turn 1\n"),
    ]


async def test_a_process_does_at_its_exit_what_it_has_registered(run_code, tmp_path: Path) -> None:
    await run_code(f"atexit.register(pathlib.Path({str(tmp_path / 'sent')!r}).write_text, 'spans')\nreturn 'yes'")
    assert (tmp_path / "sent").read_text() == "spans"


async def test_no_process_of_a_trial_is_left(run_code) -> None:
    """Children, those that have left their session, and those that have left their parent and their environment."""
    transcript = await run_code("""
        leave = "import os, time; os.setsid(); os.fork() and os._exit(0); print(os.getpid(), flush=True); "
        child = subprocess.Popen(["sleep", "600"])
        leaver = subprocess.Popen(["sleep", "600"], start_new_session=True)
        daemon = subprocess.Popen([sys.executable, "-c", leave + "time.sleep(600)"], stdout=subprocess.PIPE, env={})
        forked = os.fork()
        if forked == 0:
            time.sleep(600)
        return f"{os.getpid()} {child.pid} {leaver.pid} {int(daemon.stdout.readline())} {forked}"
    """)
    processes = transcript.output.split()
    assert len(processes) == 5
    assert not any(map(is_there, processes))


async def test_a_process_has_no_descriptor_of_passgate(run_code, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)), (tmp_path / "journal").open("w") as journal:
        os.set_inheritable(journal.fileno(), True)
        transcript = await run_code(f"""
            def links(process):
                for number in range(3, 1000):
                    try:
                        yield os.readlink(f"/proc/{{process}}/fd/{{number}}")
                    except OSError:
                        continue
            return " ".join(set(links({os.getpid()})) & set(links("self")))
        """)
    assert set(transcript.output.split()) <= {"anon_inode:[eventpoll]"}, "which is an event loop of its own"


@pytest.mark.parametrize(
    ("code", "end", "detail"),
    [
        *(
            (f"return {answer}", EndReason.UNREADABLE, "not a t")
            for answer in ("None", "3", "b'yes'", "['yes']", "{'a': 1}")
        ),
        (f"return {ODD}", EndReason.UNREADABLE, "cannot be recorded"),
        ("os.write(turns, b'garbage\\n')", EndReason.CRASHED, "cannot be read"),
        ("os.write(turns, bytes(range(256)) + b'\\n')", EndReason.CRASHED, "cannot be read"),
        ('os.write(turns, b\'{"message": "x"}\\n\')', EndReason.CRASHED, "cannot be read"),
        ("os.write(turns, b'[' * 50_000 + b'\\n')", EndReason.CRASHED, "cannot be read"),
        ("os.write(turns, b'[' + b'[],' * 500_000 + b']\\n')", EndReason.CRASHED, "more than 500000 lists and objects"),
        ("while True: os.write(turns, b'x' * 100_000)", EndReason.OUTPUT_LIMIT, "it returned more than 32 MiB"),
        ("return 'x' * 40_000_000", EndReason.OUTPUT_LIMIT, "it returned more than 32 MiB"),
        ("while True: print('x' * 100_000)", EndReason.OUTPUT_LIMIT, ""),
        (f"os.write(turns, {FORGED!r})", EndReason.COMPLETED, ""),
        ("os.close(turns)", EndReason.CRASHED, "exited with code"),
        ("os.dup2(os.open('/dev/null', os.O_RDWR), turns)", EndReason.CRASHED, "exited with code"),
    ],
)
async def test_what_else_a_process_says_is_its_own(run_code, code: str, end: EndReason, detail: str) -> None:
    transcript = await run_code(f"{TURNS}\n{code}")
    assert (transcript.end, transcript.output) == (end, "forged" if end is EndReason.COMPLETED else "")
    assert detail in transcript.detail
