"""The timeline of a trial, and the commands that reports tell."""

import shlex

import pytest

from passgate.tasks.model.run import RunRequest
from passgate.tasks.model.task import Budgets
from passgate.tasks.model.transcript import Message, ToolCall, Transcript, Usage
from passgate.tasks.reports.trial import command_lines, show_command, timeline, try_command, try_options


def test_each_step_says_what_is_used_of_the_budget_so_far() -> None:
    used = Usage(tokens_in=400, tokens_out=100, cost_usd=0.02)
    step = Message(role="assistant", tool_calls=(ToolCall(tool="look"),), usage=used, latency_ms=2000.0)
    budgets = Budgets(max_steps=4, max_tool_calls=1, max_tokens=2000, max_cost_usd=0.1, max_seconds=10)
    entries = timeline(Transcript(messages=(step, step)), budgets, 10)
    assert [use.text for use in entries[0].uses] == [
        "step 1 of 4",
        "1 tool call of 1",
        "500 tokens of 2,000",
        "$0.0200 of $0.1000",
        "2.0 s of 10.0 s",
    ]
    assert [entry.fullest for entry in entries] == [1.0, 2.0]


LOOK = Message(role="assistant", tool_calls=(ToolCall(tool="look"),))
SAID = Message(role="assistant", content="yes")


@pytest.mark.parametrize(
    ("message", "complete", "budgets", "uses", "fullest"),
    [
        (SAID, True, Budgets(), ["step 1"], 0),
        (LOOK, True, Budgets(max_tool_calls=0), ["step 1", "1 tool call of 0"], 1.0),
        (SAID, False, Budgets(max_steps=4), [], 0),
    ],
    ids=["no budgets", "budget of nothing", "agent that reports no steps"],
)
def test_only_what_is_known_to_be_used_is_said(
    message: Message, complete: bool, budgets: Budgets, uses: list[str], fullest: float
) -> None:
    (entry,) = timeline(Transcript(messages=(message,), complete=complete), budgets, 10)
    assert [use.text for use in entry.uses] == uses
    assert entry.fullest == fullest


def test_of_many_messages_the_middle_is_left_out_and_still_counts() -> None:
    transcript = Transcript(messages=tuple(Message(role="assistant", content=str(number)) for number in range(100)))
    entries = timeline(transcript, Budgets(), 10)
    assert [entry.message.content if entry.message else entry.gap for entry in entries] == [
        *"01234",
        90,
        *("95", "96", "97", "98", "99"),
    ]
    assert entries[-1].uses[0].text == "step 100"


def test_only_unusual_options_are_repeated() -> None:
    assert try_options(RunRequest()) == ()
    assert try_options(RunRequest(suites="my suites", gates="g.yaml")) == ("--suites", "my suites", "--gates", "g.yaml")


@pytest.mark.parametrize("width", [20, 60, 80, 200])
@pytest.mark.parametrize(
    "words",
    [
        show_command("run-1", 'golden/it\'s "quoted" $HOME', 3),
        try_command("golden/a", "cli:my agent", ("--gates", "g")),
    ],
)
def test_a_shell_reads_the_words_again_however_they_are_broken(words: tuple[str, ...], width: int) -> None:
    lines = command_lines(words, width)
    assert tuple(shlex.split("\n".join(lines).replace("\\\n", ""))) == words
    assert all(line.endswith(" \\") for line in lines[:-1])
    assert len(command_lines(words, 1000)) == 1


def test_a_task_with_control_characters_commands_no_terminal() -> None:
    assert "\x1b" not in "".join(command_lines(show_command("run-1", "a\x1b[2J\x1b", 0), 80))
