"""Tries: a change that loosens a grader waits in a merge queue, whose job names no target branch.

Must come: FAIL by the grader of the target branch on the queue's temporary branch, as on the change's own.
"""

import pytest

from tests.attacks.conftest import Attacked

BRANCH = "gh-readonly-queue/main/pr-7-0123456789abcdef"


@pytest.mark.parametrize("is_detached", [True, False])
def test_branch_of_a_merge_queue(attacked: Attacked, is_detached: bool) -> None:
    attacked.task("a", 'matches: "."')
    attacked.commit("Loosen")
    attacked.git("checkout", "--quiet", "-b", BRANCH, "main")
    attacked.git("merge", "--quiet", "--no-ff", "--message", "Merge pull request 7", "change")
    if is_detached:
        attacked.git("checkout", "--quiet", "--detach")
    outcome = attacked.gate(CI="true", GITHUB_EVENT_NAME="merge_group", GITHUB_REF_NAME=BRANCH)
    assert outcome.code == 1, outcome.printed
    assert outcome.edits == ["suites/golden/a.yaml"]
    assert outcome.verdict["revision"]["branch"] == BRANCH
