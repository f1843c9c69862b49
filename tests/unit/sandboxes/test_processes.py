"""Commands that behave badly, and what is left of them."""

import asyncio
import hashlib
import os
import re
import secrets
import signal
import sys
import textwrap
import tracemalloc
from pathlib import Path

import pytest
from tests.unit.conftest import LONG, LoopClock, Marked
from tests.waiting import until

from passgate.tasks.errors import MeasurementError
from passgate.tasks.sandboxes.processes import KEPT_BYTES, MAX_OUTPUT_BYTES, run_process
from passgate.tasks.sandboxes.trial_sandbox import TrialSandbox


@pytest.fixture
def run(isolation: str, sandbox_of):
    """Run a command in a sandbox of its own."""

    async def _run(command: list[str], **changes):
        async with sandbox_of() as sandbox:
            assert sandbox.isolation == isolation
            return await sandbox.run(command, **{"seconds": 240, **changes})

    return _run


@pytest.fixture
def hang(isolation: str, sandbox_of, clock: LoopClock):
    """Run a command in a sandbox of its own, whose time is over when it has made the file `ready`."""

    async def _hang(command: list[str]):
        async with sandbox_of() as sandbox:
            return await clock.run_out(sandbox.run(command, seconds=LONG), (sandbox.workspace / "ready").exists)

    return _hang


def python(program: str, *arguments: str) -> list[str]:
    return [sys.executable, "-c", textwrap.dedent(program), *arguments]


@pytest.mark.parametrize(
    ("command", "end"),
    [
        (["sh", "-c", "echo out; echo err >&2; exit 7"], (7, "out\n", "err\n")),
        (["cat"], (0, "", "")),
        (["printf", r"a\377\376b\303\274\000c"], (0, "a\ufffd\ufffdbü\x00c", "")),
    ],
    ids=["exit code", "nothing told is an end of file", "output that is no text is readable"],
)
async def test_how_a_command_ended(run, command: list[str], end: tuple[int, str, str]) -> None:
    result = await run(command)
    assert (result.exit_code, result.stdout, result.stderr) == end
    assert (result.timed_out, result.output_limit_hit) == (False, False)
    assert 0 < result.wall_time_seconds < 240


async def test_a_signal_is_no_success_and_a_missing_command_exits_127(run) -> None:
    assert (await run(["sh", "-c", "kill -TERM $$"])).exit_code != 0
    assert (await run(["no-such-command"])).exit_code == 127


async def test_what_is_told_arrives(run) -> None:
    told = os.urandom(3_000_000).hex().encode()
    result = await run(["sh", "-c", "sha256sum"], stdin=told)
    assert result.stdout.split()[0] == hashlib.sha256(told).hexdigest()


@pytest.mark.parametrize("command", ["echo done", "exec 0<&-; sleep 0.2; echo done"])
async def test_a_command_need_not_listen(run, command: str) -> None:
    result = await run(["sh", "-c", command], stdin=b"x" * 5_000_000)
    assert (result.exit_code, result.stdout) == (0, "done\n")


async def test_a_command_whose_time_is_up_is_ended_though_it_ignores_signals_and_what_it_said_is_kept(hang) -> None:
    result = await hang(["sh", "-c", "trap '' TERM INT HUP; echo deaf; touch ready; sleep 600; sleep 600"])
    assert (result.timed_out, result.stdout) == (True, "deaf\n")
    assert result.exit_code != 0


LEAVES_A_DAEMON = """
    import os, sys, time
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            # Deaf, in a session of its own, a child of nobody, still holding the pipes.
            import signal
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            open("daemon-is-up", "w").close()
            time.sleep(600)
        os._exit(0)
    os.wait()
    while not os.path.exists("daemon-is-up"):
        time.sleep(0.01)
    print("left a daemon", flush=True)
    open("ready", "w").close()
    if sys.argv[2] == "hang":
        time.sleep(600)
"""


@pytest.mark.parametrize("how", ["end", "hang"])
async def test_no_daemon_is_left(run, hang, marked: Marked, how: str) -> None:
    result = await (hang if how == "hang" else run)(python(LEAVES_A_DAEMON, marked.word, how))
    assert result.stdout == "left a daemon\n"
    assert result.timed_out is (how == "hang")
    await marked.are_gone()


async def test_a_child_that_holds_the_pipes_open_holds_nobody_up(run, marked: Marked) -> None:
    child = f"import time; '{marked.word}'; time.sleep(600)"
    program = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {child!r}]); print('done')"
    result = await run(python(program))
    assert (result.exit_code, result.stdout, result.timed_out) == (0, "done\n", False)
    await marked.are_gone()


async def test_a_whole_tree_is_ended(isolation: str, sandbox: TrialSandbox, clock: LoopClock, marked: Marked) -> None:
    code = """
        if [ "$1" -gt 0 ]; then
            for child in 1 2; do sh -c "$2" "$0" $(($1 - 1)) "$2" & done
        fi
        sleep 600
    """
    running = sandbox.run(["sh", "-c", code, marked.word, "3", code], seconds=LONG)
    assert (await clock.run_out(running, lambda: len(marked.running) >= 15)).timed_out is True
    await marked.are_gone()


async def test_a_gigabyte_of_output_is_cut_off(run) -> None:
    tracemalloc.start()
    try:
        result = await run(["sh", "-c", "head -c 1000000000 /dev/zero | tr '\\0' x; echo the end"])
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert result.output_limit_hit is True
    assert KEPT_BYTES - 10 < len(result.stdout) < KEPT_BYTES + 100
    assert "the end" not in result.stdout
    assert most < 20_000_000, "what is not kept is not held either"


async def test_both_streams_share_the_limit(run) -> None:
    half = MAX_OUTPUT_BYTES // 2 + 1_000_000
    command = f"head -c {half} /dev/zero; head -c {half} /dev/zero >&2; echo never; sleep 600"
    result = await run(["sh", "-c", command])
    assert (result.output_limit_hit, result.timed_out) == (True, False)


@pytest.mark.parametrize("middle", [KEPT_BYTES - 40, KEPT_BYTES, 3 * KEPT_BYTES, 5 * KEPT_BYTES + 7])
async def test_of_a_long_output_the_beginning_and_the_end_are_kept_and_what_lies_between_is_counted(
    run, middle: int
) -> None:
    prints = f"echo the beginning; yes 'a word of it' | head -c {middle}; echo; echo the end; exit 3"
    result = await run(["sh", "-c", prints])
    assert (result.exit_code, result.output_limit_hit) == (3, False)
    assert result.stdout.startswith("the beginning\n")
    assert result.stdout.endswith("\nthe end\n")
    printed = middle + len("the beginning\n\nthe end\n")
    found = re.search(r"…\n\(passgate left out (\d+) bytes here\)\n…", result.stdout)
    assert (found is None) is (printed <= KEPT_BYTES)
    assert len(result.stdout) - (len(found[0]) - int(found[1]) if found else 0) == printed


DETACHED = """
    import subprocess, sys, time
    nothing = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    for _ in range(4):
        program = [sys.executable, "-c", "import time; time.sleep(600)", sys.argv[1]]
        subprocess.Popen(program, start_new_session=True, **nothing)
    time.sleep(float(sys.argv[2]))
"""


@pytest.mark.parametrize("lasts", ["0.1", "600"])
async def test_when_an_agents_command_has_ended_nothing_of_it_runs(
    isolation: str, sandbox: TrialSandbox, clock: LoopClock, marked: Marked, lasts: str
) -> None:
    """Not even for a moment, for then the graders begin."""
    running = sandbox.for_the_agent.run(python(DETACHED, marked.word, lasts), seconds=LONG)
    if lasts == "600":
        await clock.run_out(running, lambda: len(marked.running) >= 5)
    else:
        await running
    assert marked.running == []


async def test_when_an_agents_command_was_called_off_nothing_of_it_runs(isolation, sandbox, marked: Marked) -> None:
    agents = sandbox.for_the_agent
    running = asyncio.create_task(agents.run(python(DETACHED, marked.word, "600"), seconds=LONG))
    await until(lambda: len(marked.running) >= 5)
    running.cancel()
    asyncio.get_running_loop().call_later(0.002, running.cancel)
    with pytest.raises(asyncio.CancelledError):
        await running
    assert marked.running == []


async def test_a_command_that_is_called_off_while_it_starts_leaves_nothing(isolation, sandbox, marked: Marked) -> None:
    for turns in range(12):
        command = ["sh", "-c", "sleep 600; true", marked.word]
        running = asyncio.create_task(sandbox.for_the_agent.run(command, seconds=LONG))
        for _ in range(turns):
            await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert marked.running == []


async def plain(command: list[str], folder: Path, **changes):
    given = {"working_folder": folder, "environment": {"PATH": os.environ["PATH"]}, "mark": None, "seconds": 240}
    return await run_process(command, **(given | changes))


CANNOT_START = [["/no/such/program"], ["echo", "a\0b"], ["/"], ["echo", "x" * 3_000_000]]


@pytest.mark.parametrize(("command", "folder"), [*((command, ".") for command in CANNOT_START), (["echo"], "gone")])
async def test_a_command_that_cannot_be_started_cannot_be_measured(tmp_path: Path, command, folder: str) -> None:
    with pytest.raises(MeasurementError, match=f"cannot start {command[0]}"):
        await plain(command, tmp_path / folder)


async def test_a_signal_is_told_by_its_number_and_a_limit_kept_by_the_real_clock(tmp_path: Path) -> None:
    assert (await plain(["sh", "-c", "kill -9 $$"], tmp_path)).exit_code == -signal.SIGKILL
    assert (await plain(["sleep", "600"], tmp_path, seconds=0.2)).timed_out is True


async def test_without_a_mark_the_processes_of_its_group_end_with_a_command(tmp_path: Path, marked: Marked) -> None:
    command = f"sh -c 'sleep 600; : {marked.word}' & exit 3"
    assert (await plain(["sh", "-c", command], tmp_path)).exit_code == 3
    await marked.are_gone()


async def test_only_what_carries_the_mark_is_killed(tmp_path: Path) -> None:
    """A process of somebody else outlives the end of a command."""
    bystander = await asyncio.create_subprocess_exec("sleep", "600", env={"PASSGATE_PROCESS": "another"})
    try:
        await plain(["true"], tmp_path, mark=secrets.token_hex(16))
        assert bystander.returncode is None
    finally:
        bystander.kill()
        await bystander.wait()
