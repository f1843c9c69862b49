"""Commands that succeed whatever they find and expressions that are found in every text, held against the real ones."""

import re
import subprocess

import pytest
import regress

from passgate.tasks.graders.grader_checks.always_true import (
    always_succeeds,
    javascript_finds_everything,
    python_finds_everything,
    same_for_all,
)

ALWAYS = [
    *("true", ":", "exit 0", "echo fine", "FAILS || true", "FAILS || exit 0", "FAILS || :", "FAILS; true"),
    *("FAILS\ntrue", "FAILS; echo 'done; really'", "FAILS | tail -5", "FAILS 2>&1 | tee /dev/null", "(FAILS) || true"),
    *("FAILS &", "true && FAILS || true", "FAILS \\\n || true"),
]
CAN_FAIL = [
    *("FAILS", "exit 1", "exit 3 # 0", "true && FAILS", "echo checking && FAILS", "FAILS && true"),
    *("set -e; FAILS; true", "FAILS || exit 1; true", "exec FAILS || true", "{ FAILS; }", "if true; then FAILS; fi"),
    *("cat no-such-file", "echo hello > /no/such/folder/file", "true | FAILS", 'FAILS "; true"'),
]


@pytest.mark.parametrize(("command", "always"), [*((one, True) for one in ALWAYS), *((one, False) for one in CAN_FAIL)])
def test_commands_that_cannot_fail_and_those_that_can(command: str, always: bool) -> None:
    assert always_succeeds(command) is always
    found = subprocess.run(["sh", "-c", command.replace("FAILS", "false")], capture_output=True, check=False)
    assert (found.returncode == 0) is always


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


EVERYWHERE = [
    *("", ".*", ".*?", "x?$", "|yes", "yes|", "^", "$", "^(?:yes)?", "[^x]*", "\\^?", "(?=)", "(?!.*password)"),
    *("^[\\s\\S]*$", "^(?:.|\\n)*$"),
]
CAN_BE_MISSING = [
    *("yes", ".", ".+", "\\S", "^.*$", "^\\s*$", "^yes|no$", "^[a-z]*$", "^.{0,280}$", "^(?!.*password)", "\\b"),
    *("\\bx?", "(?<=a)?x", "a|^b", "^(?:(a*))\\1$", "("),
]
TEXTS = ["", "x", "no", "password", "a\nb", "\n", "  ", "aab", "é\U0001f600", "long " * 100 + "password"]


@pytest.mark.parametrize("pattern", EVERYWHERE)
def test_what_is_found_everywhere(pattern: str) -> None:
    assert python_finds_everything(pattern)
    assert javascript_finds_everything(pattern)
    assert all(re.search(pattern, text) and regress.Regex(pattern).find(text) for text in TEXTS)


@pytest.mark.parametrize("pattern", CAN_BE_MISSING)
def test_what_can_be_missing(pattern: str) -> None:
    assert not python_finds_everything(pattern)
    assert not javascript_finds_everything(pattern)


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("(?s)^.*$", True),
        ("(?i)^.*$", False),
        ("(?x) x? # all", False),
        ("(?i)x*", True),
        ("(?m)^.*$", True),
        ("(?im)^(.*)$", True),
        ("(?m)\\A.*$", True),
        ("(?m)^.*\\Z", True),
        ("(?m)\\A.*\\Z", False),
        ("(?m)^.+$", False),
        ("(?m)^\\s*$", False),
        ("(?m)^x?$", False),
        ("(?s:^.*$)", True),
        ("(?m:^.*$)", True),
        ("(?i:^.*$)", False),
        ("^(?s:.*)$", True),
        ("^(?i:.*)$", False),
        ("(?x: ^ .* $ )", False),
    ],
)
def test_flags_within_an_expression_of_python(pattern: str, found: bool) -> None:
    assert python_finds_everything(pattern) is found
    assert all(re.search(pattern, text) for text in TEXTS) or not found


@pytest.mark.parametrize(
    ("pattern", "flags", "found"),
    [
        ("^.*$", "s", True),
        ("^.*$", "m", True),
        ("^x?$", "m", False),
        ("x?", "y", True),
        ("x?$", "y", False),
        ("[^]*", "", True),
        ("x", "u", False),
    ],
)
def test_flags_of_an_expression_of_javascript(pattern: str, flags: str, found: bool) -> None:
    assert javascript_finds_everything(pattern, flags) is found
    assert not found or "y" in flags or all(regress.Regex(pattern, flags).find(text) for text in TEXTS)


def test_what_an_atomic_group_keeps_from_a_back_reference_can_be_missing() -> None:
    pattern = "^(?>(a*))\\1"
    assert re.search(pattern, "") is not None
    assert re.search(pattern, "a") is None
    assert not python_finds_everything(pattern)
