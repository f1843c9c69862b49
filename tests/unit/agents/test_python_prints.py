"""What Python functions as agents print, each trial's its own."""

import asyncio
import sys
import threading

import pytest

from passgate.tasks.agents.interface import Attempt
from passgate.tasks.agents.python import PythonAgent
from passgate.tasks.model.transcript import EndReason


def prints(attempt: Attempt) -> str:
    print(f"trial {attempt.trial}")
    print("aside", file=sys.stderr)
    return "yes"


async def prints_later(attempt: Attempt) -> str:
    await asyncio.sleep(0.02)
    return prints(attempt)


@pytest.mark.parametrize("function", [prints, prints_later])
async def test_what_it_prints_is_its_trials(attempt, capsys, function) -> None:
    agent = PythonAgent(function)
    transcripts = await asyncio.gather(*(attempt(agent, trial=trial) for trial in range(4)))
    assert [transcript.printed for transcript in transcripts] == [f"trial {n}\naside\n" for n in range(4)]
    assert {transcript.detail for transcript in transcripts} == {""}
    print("ours")
    assert capsys.readouterr() == ("ours\n", "")


@pytest.mark.parametrize(
    ("error", "end"), [(ValueError("no key"), EndReason.CRASHED), (asyncio.CancelledError(), EndReason.CRASHED)]
)
async def test_what_a_crashing_agent_printed_is_kept(attempt, error: BaseException, end: EndReason) -> None:
    async def crashes(attempt: Attempt) -> str:
        print("before")
        raise error

    transcript = await attempt(PythonAgent(crashes))
    assert (transcript.end, transcript.printed) == (end, "before\n")


async def test_a_thread_that_ran_out_of_time_prints_nowhere(attempt, capsys) -> None:
    release, done = threading.Event(), threading.Event()

    def prints_late(attempt: Attempt) -> str:
        print("before")
        release.wait(20)
        print("after")
        done.set()
        return "late"

    transcript = await attempt(PythonAgent(prints_late), seconds=0.2)
    assert (transcript.end, transcript.printed) == (EndReason.TIMED_OUT, "before\n")
    release.set()
    assert await asyncio.to_thread(done.wait, 10)
    assert capsys.readouterr() == ("", "")


async def test_what_a_transcript_says_was_printed_stays_where_nothing_is(attempt) -> None:
    assert (await attempt(PythonAgent(lambda _: {"output": "yes", "printed": "of old"}))).printed == "of old"
