"""Commands that reports tell."""

import shlex

import pytest

from passgate.tasks.model.run import RunRequest
from passgate.tasks.reports.shell_commands import command_lines, show_command, try_command, try_options


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
