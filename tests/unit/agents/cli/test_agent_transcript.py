"""The transcript that a command writes itself."""

import json
from pathlib import Path

import pytest
from tests.unit.agents.cli.programs import cli_agent, python

from passgate.tasks.agents.cli import CliAgent
from passgate.tasks.model.transcript import EndReason, Usage


def writes(transcript: str) -> CliAgent:
    return python(f"import os; open(os.environ['PASSGATE_TRANSCRIPT'], 'w').write({transcript!r})")


async def test_a_transcript_file_is_the_transcript(attempt) -> None:
    reported = {
        "messages": [
            {"role": "user", "content": "Say yes."},
            {
                "role": "assistant",
                "tool_calls": [{"tool": "find", "arguments": {"q": 1}, "result": [1], "is_error": True}],
                "usage": {"tokens_in": 5, "tokens_out": 2, "cost_usd": 0.1},
                "latency_ms": 12.5,
            },
            {"role": "assistant", "content": "yes"},
        ]
    }
    transcript = await attempt(writes(json.dumps(reported)))
    assert transcript.complete is True
    assert transcript.output == "yes"
    assert transcript.steps[0].usage == Usage(tokens_in=5, tokens_out=2, cost_usd=0.1)
    assert transcript.tool_calls[0].is_error is True


async def test_the_end_is_what_we_saw_not_what_the_agent_says(attempt) -> None:
    transcript = await attempt(writes('{"messages": [], "end": "crashed", "detail": "made up"}'))
    assert (transcript.end, transcript.detail) == (EndReason.COMPLETED, "")


@pytest.mark.parametrize("content", ["", '{"messages": [{"role": "robot"}]}', "[" * 100_000])
async def test_an_agent_that_leaves_no_usable_transcript_has_failed(attempt, content: str) -> None:
    """`test_transcripts.py` has all that is none."""
    transcript = await attempt(writes(content))
    assert transcript.end is EndReason.UNREADABLE
    assert "transcript" in transcript.detail


async def test_a_transcript_without_end_is_not_read(attempt) -> None:
    transcript = await attempt(cli_agent("sh -c 'echo yes; truncate -s 33M $PASSGATE_TRANSCRIPT'"))
    assert (transcript.end, transcript.output) == (EndReason.UNREADABLE, "yes")
    assert transcript.detail == "transcript.json cannot be read: larger than 32 MiB"


async def test_a_failed_agents_half_transcript_does_not_hide_the_fail(attempt) -> None:
    half = "echo [ > $PASSGATE_TRANSCRIPT"
    assert (await attempt(cli_agent(f"sh -c '{half}; exit 3'"))).end is EndReason.CRASHED
    hanging = cli_agent(f"sh -c '{half}; touch ready; sleep 600'")
    assert (await attempt(hanging, hangs=True)).end is EndReason.TIMED_OUT


async def test_a_link_is_no_transcript(attempt, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.json"
    elsewhere.write_text('{"output": "from elsewhere"}')
    agent = cli_agent(f"sh -c 'ln -s {elsewhere} $PASSGATE_TRANSCRIPT; echo yes'")
    assert (await attempt(agent)).output == "yes"


async def test_a_pipe_is_no_transcript(attempt) -> None:
    assert (await attempt(cli_agent("sh -c 'mkfifo $PASSGATE_TRANSCRIPT; echo yes'"))).output == "yes"
