"""Workspaces in the words of eval files."""

from passgate.tasks.formats.evals.write.tests import written_test
from tests.unit.formats.evals.write.test_tests import TASK


def test_a_workspace_has_its_hooks_and_its_requirements_apart() -> None:
    workspace = {
        "template": "./t",
        "before_all": {"command": ["sh", "-c", "make"]},
        "after_each": {"command": ["rm", "x"], "cwd": "./t", "timeout_seconds": 5},
        "required_commands": ["git"],
        "environment": {"A": "b"},
    }
    test = written_test({**TASK, "environment": {"workspace": workspace}})
    assert test["workspace"] == {
        "template": "./t",
        "hooks": {"before_all": "make", "after_each": {"command": ["rm", "x"], "cwd": "./t", "timeout_seconds": 5}},
        "env": {"required_commands": ["git"]},
    }
    assert test["environment"] == {"type": "host", "env": {"A": "b"}}


def test_a_workspace_of_which_nothing_is_said_is_one_all_the_same() -> None:
    assert written_test({**TASK, "environment": {"workspace": {}}})["workspace"] == {"repos": []}
