"""What only passgate has: the graders of task files, and the key `passgate` of a test."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from passgate.tasks.formats.document import read_document
from passgate.tasks.formats.evals.documents import Documents, Ground
from passgate.tasks.formats.evals.forms import KEY, add_native
from passgate.tasks.formats.evals.node import Complaints, Node
from passgate.tasks.formats.evals.tests import EvalTestWords
from passgate.tasks.formats.evals.words import Sources, take_apart
from passgate.tasks.model.graders import StateCheck, Turns
from passgate.tasks.model.task import TaskFile
from tests.builders import task_document
from tests.unit.formats.evals.eval_files import write
from tests.unit.formats.evals.grader_lists import read

STATE = {"type": "state_check", "name": "left", "weight": 2, "expect": [{"json_file": "a.json", "equals": None}]}


@pytest.mark.parametrize(
    ("said", "changes"),
    [
        (STATE, {}),
        ({"type": "tool-calls", "required": ["search"], "in_order": True}, {"type": "tool_calls"}),
        ({"type": "deterministic_tests", "tests": ["./tests/test_a.py"]}, {"tests": ["tests/test_a.py"]}),
        ({"type": "passgate:llm_rubric", "rubric": "rubric.md", "threshold": 0.5}, {"type": "llm_rubric"}),
    ],
)
def test_they_have_the_options_that_they_have_in_task_files(tmp_path: Path, said: dict[str, Any], changes: Any) -> None:
    found = read(tmp_path, said, files={"evals/tests/test_a.py": "def test_a(): ...", "evals/rubric.md": "# Kind?"}).one
    assert (found,) == TaskFile.model_validate(task_document(graders=[said | changes])).graders
    if isinstance(found, StateCheck):
        assert "equals" in found.expect[0].model_fields_set


def test_turns_hold_lists_of_graders_of_any_dialect(tmp_path: Path) -> None:
    turns = [{"assertions": [{"type": "llm_judge"}]}]
    grader = read(tmp_path, {"type": "turns", "turns": turns, "conversation": ["Is kind."]}).one
    assert isinstance(grader, Turns)
    assert [member.type for member in (*grader.turns[0].assertions, *grader.conversation)] == ["llm_grader", "rubrics"]


EXPECT = {"expect": [{"file": "a"}]}


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ({"type": "tool_calls"}, ": this grader cannot fail: give at least one of required, forbidden"),
        (
            {"type": "output_check", "matches": "*"},
            ".matches: not a regular expression: nothing to repeat at position 0",
        ),
        ({"type": "deterministic_tests", "tests": ["gone.py"]}, ".tests[0]: no file 'gone.py' in the suites folder"),
        ({"type": "state_check", "negate": True, **EXPECT}, ".negate: state_check passes or fails; it has no `negate`"),
        ({"type": "not-state_check", **EXPECT}, ".type: state_check passes or fails; there is no `not` of it"),
        ({"type": "state_check"}, ": the key 'expect' is missing"),
    ],
)
def test_what_is_wrong_with_them_is_told_at_its_place(tmp_path: Path, said: dict[str, Any], problem: str) -> None:
    assert f"[0]{problem}" in read(tmp_path, said).problems


TASK = TaskFile.model_validate(
    task_document(
        inputs={"prompt": "Hi"},
        environment={"budgets": {"max_seconds": 9}},
        scoring={"rule": "weighted_average", "threshold": 0.5},
    )
)


def native(root: Path, said: Any, **files: str) -> tuple[TaskFile, list[str]]:
    """The task of a test with this under `passgate`, in `evals/`, and what is wrong with it."""
    write(root, {".git/HEAD": "", "evals/EVAL.yaml": yaml.safe_dump({KEY: said}), **files})
    document, complaints = read_document(root / "evals/EVAL.yaml", "EVAL.yaml"), Complaints()
    node = Node(document.data, document, root / "evals")
    sources = Sources(Documents(Ground(root, root), complaints, {}, str), complaints)
    task = add_native(TASK, take_apart(node, EvalTestWords, sources), sources)
    return task, [f"{problem.path}: {problem.message}" for problem in complaints.problems]


def test_what_it_says_goes_over_what_the_test_says(tmp_path: Path) -> None:
    said = {
        "inputs": {"files": ["a"]},
        "environment": {"network": True, "budgets": {"max_steps": 4}},
        "trials": {"metric": "pass@k"},
        "tracked_metrics": ["tokens"],
        "gates": {"nightly": False},
        "scoring": {"rule": "all"},
    }
    task, problems = native(tmp_path, said)
    assert problems == []
    assert (task.inputs, task.environment.network) == ({"prompt": "Hi", "files": ["a"]}, True)
    assert (task.environment.budgets.max_steps, task.environment.budgets.max_seconds) == (4, 9)
    assert (task.trials.metric, task.tracked_metrics, task.gates.nightly) == ("pass@k", ("tokens",), False)
    assert (task.scoring.rule, task.scoring.threshold) == ("all", 0.5)


def test_its_paths_are_relative_to_the_file_and_without_it_nothing_changes(tmp_path: Path) -> None:
    task, problems = native(tmp_path, {"reference": {"solution": {"script": "./solve.sh"}}}, **{"evals/solve.sh": ""})
    assert problems == []
    assert task.reference is not None
    assert task.reference.solution.script == "evals/solve.sh"
    assert native(tmp_path, None) == (TASK, [])


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ({"tracked_metrics": ["tokns"]}, "tracked_metrics[0]: 'tokns' is neither a metric"),
        ({"environment": {"sandbox": "nowhere"}}, "environment.sandbox: no folder"),
        ({"reference": {"solution": {"script": "./nowhere.sh"}}}, "reference.solution.script: no file"),
        ({"gate": {}}, "gate: unknown key; did you mean 'gates'?"),
    ],
)
def test_it_is_checked_as_task_files_are(tmp_path: Path, said: dict[str, Any], problem: str) -> None:
    assert native(tmp_path, said)[1][0].startswith(f"passgate.{problem}")
