"""What Python functions as agents print, each trial's its own."""

import asyncio

import pytest

from passgate.tasks.agents.processes.trial import PRINTED_BYTES
from passgate.tasks.model.transcript import EndReason


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


async def test_what_a_crashing_agent_printed_is_kept(run_code) -> None:
    transcript = await run_code("print('before')\nraise ValueError('no key')")
    assert (transcript.end, transcript.printed) == (EndReason.CRASHED, "before\n")


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
    assert set(printed) <= {"🙂", "x"}
    assert len(printed.encode()) <= PRINTED_BYTES


async def test_anything_printed_can_be_recorded(run_code) -> None:
    printed = (await run_code(r"print('a\ud800b'); sys.stdout.buffer.write(b'\xff'); return 'yes'")).printed
    assert printed.encode() == b"a\\ud800b\n\xef\xbf\xbd"


@pytest.mark.parametrize("code", ["sys.stdout.close()", "sys.stdout = None", "os.close(1); os.close(2)"])
async def test_a_stream_that_is_closed_is_the_agents_right(run_code, code: str) -> None:
    assert (await run_code(f"{code}\nreturn 'yes'")).output == "yes"
