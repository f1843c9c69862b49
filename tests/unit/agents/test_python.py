"""Python functions as agents, whatever they do."""

import asyncio
import json
import os
import socket
from pathlib import Path
from typing import Any

import pytest
from tests.builders import a_task
from tests.unit.agents.conftest import one_turn
from tests.waiting import wait_until

from passgate.tasks.errors import MeasurementError
from passgate.tasks.model.transcript import EndReason, Message

ASYNC = pytest.mark.parametrize("define", ["def", "async def"])
"""Both kinds of function."""

ANSWERS = """
    import asyncio
    from passgate.tasks.model.transcript import Message, Transcript

    def plain(attempt):
        return "yes"

    async def later(attempt):
        await asyncio.sleep(0.01)
        return "yes"

    class Callable:
        async def __call__(self, attempt):
            return await later(attempt)

    def dictionary(attempt):
        return {"messages": [{"role": "assistant", "content": "yes"}]}

    def transcript(attempt):
        return Transcript(messages=(Message(role="assistant", content="yes"),), output="yes")

    FUNCTIONS = [plain, later, Callable(), lambda attempt: later(attempt), dictionary, transcript]

    def answer(attempt):
        return FUNCTIONS[attempt.trial](attempt)
    """


async def test_the_answer_is_what_the_function_gives(attempt, python_agent) -> None:
    agent = python_agent(ANSWERS)
    for trial in range(6):
        transcript = await attempt(agent, trial=trial)
        assert (transcript.output, transcript.end) == ("yes", EndReason.COMPLETED)
        assert transcript.complete is (trial >= 4)


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


RAISED = [
    ("ValueError('no key')", "ValueError: no key"),
    ("TimeoutError('the model did not answer')", "TimeoutError: the model did not answer"),
    ("SystemExit(3)", "SystemExit(3)"),
    ("SystemExit(0)", "SystemExit(0)"),
    ("KeyboardInterrupt()", "KeyboardInterrupt()"),
    ("asyncio.CancelledError()", "CancelledError()"),
    ("RecursionError('deep')", "RecursionError: deep"),
    (r"ValueError('a\ud800b')", "ValueError: a?b"),
    ("ValueError('x' * 10_000)", "ValueError: xxx"),
    ("ExceptionGroup('several', [ValueError('one')])", "ExceptionGroup: several"),
]


@ASYNC
async def test_whatever_the_function_raises_is_a_crash(attempt, python_agent, define: str) -> None:
    agent = python_agent(f"""
        import asyncio
        {define} answer(attempt):
            raise eval(attempt.prompt)
        """)
    for raised, detail in RAISED:
        transcript = await attempt(agent, prompt=raised)
        assert transcript.end is EndReason.CRASHED
        assert transcript.detail.startswith(detail)
        assert len(transcript.detail) <= 2000
        assert transcript.complete is False


@ASYNC
async def test_the_last_frames_of_a_crash_are_kept(attempt, python_agent, tmp_path: Path, define: str) -> None:
    agent = python_agent(f"""
        def look(depth):
            return 1 / 0 if depth == 0 else look(depth - 1)

        {define} answer(attempt):
            return look(int(attempt.prompt))
        """)
    file = tmp_path / "agent_under_test.py"
    assert (await attempt(agent, prompt="0")).detail.splitlines() == [
        "ZeroDivisionError: division by zero",
        f'  File "{file}", line 6, in answer',
        "    return look(int(attempt.prompt))",
        f'  File "{file}", line 3, in look',
        "    return 1 / 0 if depth == 0 else look(depth - 1)",
    ]
    deep = (await attempt(agent, prompt="100")).detail.splitlines()
    assert deep[1:] == [f'  File "{file}", line 3, in look', "    return 1 / 0 if depth == 0 else look(depth - 1)"] * 5


ENDS = [
    ("os._exit(0)", "its process exited with code 0 before it gave an answer"),
    ("os._exit(7)", "its process exited with code 7"),
    ("ctypes.string_at(0)", "its process was ended by SIGSEGV"),
    ("os.abort()", "its process was ended by SIGABRT"),
    ("os.kill(os.getpid(), 9)", "its process was ended by SIGKILL"),
    ("os.killpg(0, 15)", "its process was ended by SIGTERM"),
]


async def test_an_agent_that_ends_its_process_ends_nothing_else(attempt, python_agent) -> None:
    agent = python_agent("""
        import ctypes, os
        def answer(attempt):
            eval(attempt.prompt)
            return "yes"
        """)
    transcripts = await asyncio.gather(*(attempt(agent, prompt=ending) for ending, _ in [*ENDS, ("0", "")]))
    for transcript, (_, detail) in zip(transcripts, ENDS, strict=False):
        assert transcript.end is EndReason.CRASHED
        assert detail in transcript.detail
    assert transcripts[-1].output == "yes"
    assert "ctypes" in transcripts[2].printed, "where it has ended"


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


async def test_what_the_agent_calls_unmeasurable_is(attempt, python_agent) -> None:
    agent = python_agent(r"""
        from passgate.tasks.errors import MeasurementError
        def answer(attempt):
            raise MeasurementError("the provider is down \ud800", transient=True)
        """)
    with pytest.raises(MeasurementError, match="provider is down") as caught:
        await attempt(agent)
    assert caught.value.transient is True


async def test_an_agent_with_an_answer_of_another_kind_has_failed(attempt, python_agent) -> None:
    agent = python_agent("""
        from passgate.tasks.model.transcript import Message, ToolCall, Transcript
        ODD = Transcript(messages=(Message(role="assistant", tool_calls=(ToolCall(tool="t", result=object()),)),))
        def answer(attempt):
            return eval(attempt.prompt)
        """)
    for answer in ("None", "3", "b'yes'", "['yes']", "{'message': 'yes'}"):
        transcript = await attempt(agent, prompt=answer)
        assert transcript.end is EndReason.UNREADABLE
        assert "not a t" in transcript.detail
    transcript = await attempt(agent, prompt="ODD")
    assert transcript.end is EndReason.UNREADABLE
    assert "cannot be recorded" in transcript.detail


@pytest.mark.parametrize(
    "code",
    ["time.sleep(3600)", "asyncio.run(asyncio.sleep(3600))", "os.kill(os.getpid(), signal.SIGSTOP)", "deaf()"],
)
async def test_an_agent_that_hangs_runs_out_of_time_and_is_gone(attempt, python_agent, tmp_path, code: str) -> None:
    agent = python_agent(f"""
        import asyncio, os, pathlib, signal, time
        def deaf():
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
            while True:
                pass
        def answer(attempt):
            print("before", flush=True)
            pathlib.Path("process").write_text(str(os.getpid()))
            {code}
        """)
    transcript = await attempt(agent, seconds=5)
    assert (transcript.end, transcript.printed) == (EndReason.TIMED_OUT, "before\n")
    assert not Path("/proc", (tmp_path / "process").read_text()).exists()


async def test_trials_run_at_the_same_time(attempt, python_agent, tmp_path: Path) -> None:
    agent = python_agent(f"""
        import pathlib, time
        def answer(attempt):
            folder = pathlib.Path({str(tmp_path / "met")!r})
            folder.mkdir(exist_ok=True)
            (folder / str(attempt.trial)).touch()
            while len(list(folder.iterdir())) < 20:
                time.sleep(0.02)
            return "yes"
        """)
    transcripts = await asyncio.gather(*(attempt(agent, trial=trial, seconds=120) for trial in range(20)))
    assert [transcript.output for transcript in transcripts] == ["yes"] * 20


async def test_a_trial_that_is_called_off_ends_the_agent(attempt, python_agent, tmp_path: Path) -> None:
    agent = python_agent("""
        import asyncio, os, pathlib
        async def answer(attempt):
            pathlib.Path("process.new").write_text(str(os.getpid()))
            os.rename("process.new", "process")
            await asyncio.sleep(3600)
        """)
    running = asyncio.create_task(attempt(agent))
    await asyncio.to_thread(wait_until, (tmp_path / "process").exists)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not Path("/proc", (tmp_path / "process").read_text()).exists()


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
    assert [turn.output for turn in (first, other, second)] == [
        "0 ['a'] s []",
        "0 ['o'] t []",
        "1 ['a', 'c'] s ['a', 'b']",
    ]
    assert (first.printed, second.printed) == ("turn 0\n", "turn 1\n")


async def test_a_process_does_at_its_exit_what_it_has_registered(attempt, python_agent, tmp_path: Path) -> None:
    agent = python_agent("""
        import atexit, pathlib
        def answer(attempt):
            atexit.register(pathlib.Path("sent").write_text, "spans")
            return "yes"
        """)
    await attempt(agent)
    assert (tmp_path / "sent").read_text() == "spans"


def numbers_of(text: str) -> list[int]:
    return [int(number) for number in text.split()]


async def test_no_process_of_a_trial_is_left(attempt, python_agent) -> None:
    """Children, those that have left their session, and those that have left their parent and their environment."""
    agent = python_agent("""
        import os, subprocess, sys, time
        LEAVE = "import os, time; os.setsid(); os.fork() and os._exit(0); "
        DAEMON = LEAVE + "print(os.getpid(), flush=True); time.sleep(600)"
        def answer(attempt):
            child = subprocess.Popen(["sleep", "600"])
            leaver = subprocess.Popen(["sleep", "600"], start_new_session=True)
            daemon = subprocess.Popen([sys.executable, "-c", DAEMON], stdout=subprocess.PIPE, env={})
            forked = os.fork()
            if forked == 0:
                time.sleep(600)
            return f"{os.getpid()} {child.pid} {leaver.pid} {int(daemon.stdout.readline())} {forked}"
        """)
    transcript = await attempt(agent)
    processes = numbers_of(transcript.output)
    assert len(processes) == 5
    assert [number for number in processes if Path("/proc", str(number)).exists()] == []


async def test_a_process_has_no_descriptor_of_passgate(attempt, python_agent, tmp_path: Path) -> None:
    agent = python_agent("""
        import os
        def answer(attempt):
            def links(process):
                for number in range(3, 1000):
                    try:
                        yield os.readlink(f"/proc/{process}/fd/{number}")
                    except OSError:
                        continue
            return " ".join(set(links(attempt.prompt)) & set(links("self")))
        """)
    with socket.create_server(("127.0.0.1", 0)), (tmp_path / "journal").open("w") as journal:
        os.set_inheritable(journal.fileno(), True)
        transcript = await attempt(agent, prompt=str(os.getpid()))
    assert set(transcript.output.split()) <= {"anon_inode:[eventpoll]"}, "which is an event loop of its own"


SAYS = """
    import os
    def answer(attempt):
        turns = next(n for n in range(3, 20) if "socket" in os.readlink(f"/proc/self/fd/{n}"))
        WRITE
    """


@pytest.mark.parametrize(
    ("code", "end", "detail"),
    [
        ("os.write(turns, b'garbage\\n')", EndReason.CRASHED, "cannot be read"),
        ("os.write(turns, bytes(range(256)) + b'\\n')", EndReason.CRASHED, "cannot be read"),
        ('os.write(turns, b\'{"kind": "answered"}\\n\')', EndReason.CRASHED, "cannot be read"),
        ("os.write(turns, b'[' * 50_000 + b'\\n')", EndReason.CRASHED, "cannot be read"),
        ("os.write(turns, b'[' + b'[],' * 500_000 + b']\\n')", EndReason.CRASHED, "more than 500000 lists and objects"),
        ("while True: os.write(turns, b'x' * 100_000)", EndReason.OUTPUT_LIMIT, "it gave more than 32 MiB"),
        ("return 'x' * 40_000_000", EndReason.OUTPUT_LIMIT, "it gave more than 32 MiB"),
        ("while True: print('x' * 100_000)", EndReason.OUTPUT_LIMIT, ""),
        ("os.close(turns)", EndReason.CRASHED, "exited with code"),
        ("os.close(turns); import time; time.sleep(3600)", EndReason.TIMED_OUT, ""),
        ("os.dup2(os.open('/dev/null', os.O_RDWR), turns)", EndReason.CRASHED, "exited with code"),
    ],
)
async def test_a_process_that_says_anything_else_has_failed(
    attempt, python_agent, code: str, end: EndReason, detail: str
) -> None:
    agent = python_agent(SAYS.replace("WRITE", code))
    transcript = await attempt(agent, seconds=3 if end is EndReason.TIMED_OUT else 60)
    assert transcript.end is end
    assert detail in transcript.detail


async def test_what_a_process_forges_is_only_its_own_answer(attempt, python_agent) -> None:
    forged: dict[str, Any] = {"kind": "answered", "transcript": {"output": "forged", "end": "completed"}}
    agent = python_agent(SAYS.replace("WRITE", f"os.write(turns, {json.dumps(forged).encode() + bytes([10])!r})"))
    assert (await attempt(agent)).output == "forged"
