"""What a schema cannot say of scoring and of workspaces."""

from pathlib import Path
from typing import Any

import pytest

from passgate.tasks.formats.rules import findings
from passgate.tasks.model.task import TaskFile
from tests.builders import SHIPPED, task_document

YES = {"type": "contains", "value": "yes"}
WEIGHTED = {"rule": "weighted_average"}


@pytest.fixture
def found(tmp_path: Path):
    """The findings of a task, as `path: message`."""
    (tmp_path / "template").mkdir()

    def _found(**changes: Any) -> list[tuple[tuple[str | int, ...], str]]:
        task = TaskFile.model_validate(task_document(**changes))
        return list(findings(task, tmp_path / "t", tmp_path, SHIPPED))

    return _found


@pytest.mark.parametrize(
    "changes",
    [
        {"scoring": WEIGHTED, "graders": [YES | {"weight": 2}, YES | {"weight": 0}]},
        {"scoring": WEIGHTED, "trials": {"metric": "mean"}},
        {"scoring": WEIGHTED, "trials": {"metric": "confidence_interval", "k": 2}},
        {"graders": [{"type": "composite", "assertions": [YES | {"weight": 3}]}]},
    ],
)
def test_scores_with_a_rule_are_fine(found, changes: dict[str, Any]) -> None:
    assert found(**changes) == []


@pytest.mark.parametrize(
    ("changes", "path", "message"),
    [
        ({"graders": [YES | {"weight": 2}]}, ("graders", 0, "weight"), "a weight needs"),
        ({"trials": {"metric": "mean"}}, ("trials", "metric"), "mean is of scores: it needs"),
        (
            {"trials": {"metric": "confidence_interval", "k": 1}, "scoring": WEIGHTED},
            ("trials", "k"),
            "needs 2 trials or more",
        ),
        ({"scoring": WEIGHTED | {"threshold": 0}}, ("scoring", "threshold"), "nothing can fail"),
        ({"scoring": WEIGHTED, "graders": [YES | {"weight": 0}]}, ("graders",), "there is no score"),
    ],
)
def test_scores_that_mean_nothing_are_found(
    found, changes: dict[str, Any], path: tuple[str | int, ...], message: str
) -> None:
    ((where, what),) = found(**changes)
    assert where == path
    assert message in what


@pytest.mark.parametrize(
    ("workspace", "path", "message"),
    [
        ({"template": "gone"}, ("template",), "no file 'gone'"),
        ({"template": "../.."}, ("template",), "leaves the suites folder"),
        ({"repos": [{"repo": "a/b", "path": "../x"}]}, ("repos", 0, "path"), "is outside the workspace"),
        ({"repos": [{"repo": "./gone"}]}, ("repos", 0, "repo"), "no file './gone'"),
        ({"after_all": {"command": ["ls"], "cwd": "gone"}}, ("after_all", "cwd"), "no file 'gone'"),
    ],
)
def test_a_workspace_that_cannot_be_made_is_found(
    found, workspace: dict[str, Any], path: tuple[str | int, ...], message: str
) -> None:
    ((where, what),) = found(environment={"workspace": workspace})
    assert where == ("environment", "workspace", *path)
    assert message in what


def test_a_workspace_goes_instead_of_a_sandbox(found, tmp_path: Path) -> None:
    (tmp_path / "_shared/sandboxes/notes").mkdir(parents=True)
    ((where, what),) = found(environment={"sandbox": "notes", "workspace": {"template": "template"}})
    assert (where, what) == (("environment", "workspace"), "give either `sandbox` or `workspace`")
