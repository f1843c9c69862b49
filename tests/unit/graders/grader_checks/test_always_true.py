"""Commands that succeed whatever they find, held against a real shell."""

import subprocess

import pytest

from passgate.tasks.graders.grader_checks.always_true import always_succeeds, same_for_all

ALWAYS = [
    "true",
    ":",
    "exit 0",
    "echo fine",
    "FAILS || true",
    "FAILS || exit 0",
    "FAILS || :",
    "FAILS; true",
    "FAILS\ntrue",
    "FAILS; echo 'done; really'",
    "FAILS | tail -5",
    "FAILS 2>&1 | tee /dev/null",
    "(FAILS) || true",
    "FAILS &",
    "true && FAILS || true",
    "FAILS \\\n || true",
]
CAN_FAIL = [
    "FAILS",
    "exit 1",
    "exit 3 # 0",
    "true && FAILS",
    "echo checking && FAILS",
    "FAILS && true",
    "set -e; FAILS; true",
    "FAILS || exit 1; true",
    "exec FAILS || true",
    "{ FAILS; }",
    "if true; then FAILS; fi",
    "cat no-such-file",
    "echo hello > /no/such/folder/file",
    "true | FAILS",
    'FAILS "; true"',
]


def exits(command: str) -> int:
    """What a shell says of a command, FAILS being a program that fails."""
    line = command.replace("FAILS", "false")
    return subprocess.run(["sh", "-c", line], capture_output=True, check=False).returncode


@pytest.mark.parametrize("command", ALWAYS)
def test_what_cannot_fail(command: str) -> None:
    assert always_succeeds(command)
    assert exits(command) == 0


@pytest.mark.parametrize("command", CAN_FAIL)
def test_what_can_fail(command: str) -> None:
    assert not always_succeeds(command)
    assert exits(command) != 0


@pytest.mark.parametrize(
    "command", ["", "'unclosed", "true # and more", "for f in x; do true; done", "cat <<END\ntrue"]
)
def test_what_is_more_than_a_list_of_commands_is_not_judged(command: str) -> None:
    assert not always_succeeds(command)


@pytest.mark.parametrize(
    ("command", "same"),
    [
        (("echo", '{"score": 1}'), True),
        (("sh", "-c", "echo '{\"score\": 1}'"), True),
        (("sh", "-c", "cat"), False),
        (("sh", "-c", 'echo "$(cat)"'), False),
        (("sh", "-c", "echo 1 | cat"), False),
        (("python", "grade.py"), False),
    ],
)
def test_programs_that_say_the_same_of_everything(command: tuple[str, ...], same: bool) -> None:
    assert same_for_all(command) is same
