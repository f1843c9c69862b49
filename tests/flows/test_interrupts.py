"""The end of a command by a signal, whatever it is in the midst of."""

import signal
import subprocess
import sys
import textwrap

import pytest

STARTS_PROCESSES = """
    import asyncio, os, signal, sys, threading

    def raises(*_):
        raise SystemExit("the handler that Prefect would have put here")

    async def start():
        while True:
            process = await asyncio.create_subprocess_exec("true", stdout=asyncio.subprocess.PIPE)
            try:
                await process.communicate()
            finally:
                await process.wait()

    async def work():
        {before}
        with cancel_on_sigterm():
            threading.Timer(0.2, os.kill, (os.getpid(), {kind})).start()
            async with asyncio.TaskGroup() as group:
                for _ in range(4):
                    group.create_task(start())

    from passgate.flows.process.interrupts import cancel_on_sigterm, run_until_interrupted
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        run_until_interrupted(work())
    except KeyboardInterrupt:
        sys.exit(130)
    """


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("before", ["pass", "signal.signal(signal.SIGTERM, raises)"], ids=["plain", "another-handler"])
def test_a_signal_in_the_midst_of_starting_processes_ends_the_command(kind: signal.Signals, before: str) -> None:
    # A handler that raises hangs in four of five attempts.
    for _ in range(3):
        ended = run(STARTS_PROCESSES.format(kind=int(kind), before=before))
        assert ended.returncode == 130, ended.stderr


def run(code: str) -> "subprocess.CompletedProcess[str]":
    """Run a program in an interpreter of its own, whose signals nobody else has."""
    command = [sys.executable, "-c", textwrap.dedent(code)]
    return subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)


THE_HANDLERS_OF_OTHERS_ARE_BACK_IN_PLACE_AFTERWARDS = """
    import signal
    from passgate.flows.process.interrupts import cancel_on_sigterm, run_until_interrupted

    def others(*_): ...
    def inner(*_): ...

    async def work():
        signal.signal(signal.SIGTERM, inner)
        with cancel_on_sigterm():
            assert signal.getsignal(signal.SIGTERM) is not inner
        assert signal.getsignal(signal.SIGTERM) is inner
        return 5

    signal.signal(signal.SIGTERM, others)
    assert run_until_interrupted(work()) == 5
    assert signal.getsignal(signal.SIGTERM) is others
    """
AFTER_AN_INNER_CONTEXT_THE_OUTER_ONE_HEARS_SIGTERM = """
    import asyncio, os, signal, sys
    from passgate.flows.process.interrupts import cancel_on_sigterm, run_until_interrupted

    async def inner():
        with cancel_on_sigterm():
            await asyncio.sleep(0)

    async def work():
        await {inner}
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.sleep(20)

    try:
        run_until_interrupted(work())
    except KeyboardInterrupt:
        sys.exit()
    sys.exit("nobody has heard the signal")
    """
BESIDE_THE_MAIN_THREAD_IT_DOES_NOTHING = """
    import asyncio, signal, threading
    from passgate.flows.process.interrupts import cancel_on_sigterm

    async def work():
        before = signal.getsignal(signal.SIGTERM)
        with cancel_on_sigterm():
            assert signal.getsignal(signal.SIGTERM) is before
        done.append(True)

    done = []
    thread = threading.Thread(target=lambda: asyncio.run(work()))
    thread.start()
    thread.join()
    assert done
    """


@pytest.mark.parametrize(
    "code",
    [
        THE_HANDLERS_OF_OTHERS_ARE_BACK_IN_PLACE_AFTERWARDS,
        BESIDE_THE_MAIN_THREAD_IT_DOES_NOTHING,
        AFTER_AN_INNER_CONTEXT_THE_OUTER_ONE_HEARS_SIGTERM.format(inner="inner()"),
        AFTER_AN_INNER_CONTEXT_THE_OUTER_ONE_HEARS_SIGTERM.format(inner="asyncio.create_task(inner())"),
    ],
    ids=["of others", "beside the main thread", "after an inner one", "after an inner task"],
)
def test_handlers_of_signals_stay_what_they_were(code: str) -> None:
    ended = run(code)
    assert ended.returncode == 0, ended.stderr
