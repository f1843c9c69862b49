"""What only passgate has: the graders of task files, and the key `passgate` of a test."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from passgate.tasks.formats.document import read_document
from passgate.tasks.formats.evals.map.native import KEY, with_native
from passgate.tasks.formats.evals.map.sources import Sources
from passgate.tasks.formats.evals.read.node import Complaints, Key, Node, take_apart
from passgate.tasks.formats.evals.read.paths import Ground
from passgate.tasks.formats.schema_check import Kind
from passgate.tasks.model.graders import DeterministicTests, LlmRubric, StateCheck, ToolCalls, Turns
from passgate.tasks.model.task import TaskFile
from tests.unit.formats.evals.eval_files import write
from tests.unit.formats.evals.grader_lists import read


def test_they_have_the_options_that_they_have_in_task_files(tmp_path: Path) -> None:
    grader = read(
        tmp_path,
        {"type": "state_check", "name": "left", "weight": 2, "expect": [{"json_file": "a.json", "equals": None}]},
    ).one
    assert grader == StateCheck.model_validate(
        {"type": "state_check", "name": "left", "weight": 2, "expect": [{"json_file": "a.json", "equals": None}]}
    )
    assert "equals" in grader.expect[0].model_fields_set


def test_kebab_case_and_lists_called_required_are_theirs_too(tmp_path: Path) -> None:
    grader = read(tmp_path, {"type": "tool-calls", "required": ["search"], "in_order": True}).one
    assert grader == ToolCalls(type="tool_calls", required=("search",), in_order=True)


def test_their_paths_are_relative_to_the_eval_file(tmp_path: Path) -> None:
    grader = read(
        tmp_path,
        {"type": "deterministic_tests", "tests": ["./tests/test_a.py"]},
        files={"evals/tests/test_a.py": ""},
    ).one
    assert grader == DeterministicTests(type="deterministic_tests", tests=("tests/test_a.py",))


def test_our_rubric_is_told_from_that_of_agentv_by_its_namespace(tmp_path: Path) -> None:
    ours, theirs = read(
        tmp_path,
        {"type": "passgate:llm_rubric", "rubric": "rubric.md", "threshold": 0.5},
        {"type": "llm-rubric", "value": "Is kind."},
        files={"evals/rubric.md": "# Kind?"},
    ).graders
    assert ours == LlmRubric(type="llm_rubric", rubric="rubric.md", threshold=0.5)
    assert theirs.type == "llm_grader"


def test_turns_hold_lists_of_graders_of_any_dialect(tmp_path: Path) -> None:
    grader = read(
        tmp_path,
        {"type": "turns", "turns": [{"assertions": [{"type": "llm_judge"}]}], "conversation": ["Is kind."]},
    ).one
    assert isinstance(grader, Turns)
    assert [member.type for member in (*grader.turns[0].assertions, *grader.conversation)] == ["llm_grader", "rubrics"]


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ({"type": "tool_calls"}, "[0]: this grader cannot fail: give at least one of required, forbidden"),
        (
            {"type": "output_check", "matches": "("},
            "[0].matches: not a regular expression: missing ), unterminated subpattern at position 0",
        ),
        (
            {"type": "deterministic_tests", "tests": ["nowhere.py"]},
            "[0].tests[0]: no file 'nowhere.py' in the suites folder",
        ),
        (
            {"type": "state_check", "expect": [{"file": "a"}], "negate": True},
            "[0].negate: state_check passes or fails; it has no `negate`",
        ),
        (
            {"type": "not-state_check", "expect": [{"file": "a"}]},
            "[0].type: state_check passes or fails; there is no `not` of it",
        ),
        ({"type": "state_check"}, "[0]: the key 'expect' is missing"),
    ],
)
def test_what_is_wrong_with_them_is_told_at_its_place(tmp_path: Path, said: dict[str, Any], problem: str) -> None:
    assert problem in read(tmp_path, said).problems


TASK = TaskFile.model_validate(
    {
        "task_id": "t",
        "suite": "golden",
        "description": "",
        "inputs": {"prompt": "Hi"},
        "environment": {"budgets": {"max_seconds": 9}},
        "graders": [{"type": "contains", "value": "x"}],
        "tracked_metrics": ["cost"],
        "scoring": {"rule": "weighted_average", "threshold": 0.5},
    }
)


def native(root: Path, said: Any, **files: str) -> tuple[TaskFile, list[str]]:
    """The task of a test with this under `passgate`, in `evals/`, and what is wrong with it."""
    write(root, {".git/HEAD": "", "evals/EVAL.yaml": yaml.safe_dump({KEY: said}), **files})
    document, complaints = read_document(root / "evals/EVAL.yaml", "EVAL.yaml"), Complaints()
    node = Node(document.data, document, root / "evals")
    test = take_apart(node, {KEY: Key((Kind.MAPPING,))}, complaints)
    task = with_native(TASK, test, Sources(Ground(root, root), complaints, lambda _: None))
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
    assert task.inputs == {"prompt": "Hi", "files": ["a"]}
    assert task.environment.network
    assert (task.environment.budgets.max_steps, task.environment.budgets.max_seconds) == (4, 9)
    assert (task.trials.metric, task.tracked_metrics, task.gates.nightly) == ("pass@k", ("tokens",), False)
    assert (task.scoring.rule, task.scoring.threshold) == ("all", 0.5)


def test_its_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    said = {"reference": {"solution": {"script": "./solve.sh"}}}
    task, problems = native(tmp_path, said, **{"evals/solve.sh": ""})
    assert problems == []
    assert task.reference is not None
    assert task.reference.solution.script == "evals/solve.sh"


def test_without_it_nothing_changes(tmp_path: Path) -> None:
    assert native(tmp_path, None) == (TASK, [])


def test_it_is_checked_as_task_files_are(tmp_path: Path) -> None:
    said = {
        "tracked_metrics": ["tokns"],
        "environment": {"sandbox": "nowhere"},
        "reference": {"solution": {"script": "./nowhere.sh"}},
    }
    problems = native(tmp_path, said)[1]
    assert any(problem.startswith("passgate.tracked_metrics[0]: 'tokns' is no metric") for problem in problems)
    assert any(problem.startswith("passgate.environment.sandbox: no folder") for problem in problems)
    assert any(problem.startswith("passgate.reference.solution.script: no file") for problem in problems)


def test_an_unknown_key_in_it_is_told(tmp_path: Path) -> None:
    assert native(tmp_path, {"gate": {}})[1] == ["passgate.gate: unknown key; did you mean 'gates'?"]
