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


@pytest.mark.parametrize("name", [*NAMES, *NO_NAMES])
def test_a_name_of_a_branch_is_what_git_takes_for_one(name: str) -> None:
    assert is_branch_name(name) is (name in NAMES)
    # Git reads `@{-1}` as the branch before, where there is one.
    command = ["git", "check-ref-format", "--branch", name]
    result = subprocess.run(command, cwd="/", check=False, capture_output=True)
    assert (result.returncode == 0) is (name in NAMES)
