"""Names that a branch can have, as git has it."""

import subprocess

import pytest

from passgate.tasks.model.policy import is_branch_name

NAMES = [
    *("main", "release/1.x", "feature/a-b_c", "naïve", "HEADS", "#1", "a$b"),
    *("a@b", "a.b", "a.lockx", "@a", "a{b}", "@"),
]
NO_NAMES = [
    *("", "-x", "HEAD", "main~1", "main^", "main^{/text}", "@{-1}", "main@{1}", "a..b", "a b", "a\tb", "a\x7f"),
    *("a:b", "a?", "a*", "[a", "a\\b", "/a", "a/", "a//b", ".a", "a/.b", "a.", "a.lock", "a.lock/b", "a\n"),
]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_of_a_branch(name: str) -> None:
    assert is_branch_name(name)
    assert _git_says(name)


@pytest.mark.parametrize("name", NO_NAMES)
def test_what_is_no_name_of_a_branch(name: str) -> None:
    assert not is_branch_name(name)
    # Git reads `@{-1}` as the branch before, where there is one.
    assert not _git_says(name)


def _git_says(name: str) -> bool:
    command = ["git", "check-ref-format", "--branch", name]
    result = subprocess.run(command, cwd="/", check=False, capture_output=True)
    return result.returncode == 0
