"""The key `passgate` of a test."""

from pathlib import Path
from typing import Any

import yaml

from passgate.tasks.formats.document import read_document
from passgate.tasks.formats.evals.map.native_keys import KEY, with_native
from passgate.tasks.formats.evals.map.sources import Sources
from passgate.tasks.formats.evals.read.node import Complaints, Key, Node, take_apart
from passgate.tasks.formats.evals.read.paths import Ground
from passgate.tasks.formats.schema_check import Kind
from passgate.tasks.model.task import TaskFile
from tests.unit.formats.evals.eval_files import write

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


def read(root: Path, said: Any, **files: str) -> tuple[TaskFile, list[str]]:
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
    task, problems = read(tmp_path, said)
    assert problems == []
    assert task.inputs == {"prompt": "Hi", "files": ["a"]}
    assert task.environment.network
    assert (task.environment.budgets.max_steps, task.environment.budgets.max_seconds) == (4, 9)
    assert (task.trials.metric, task.tracked_metrics, task.gates.nightly) == ("pass@k", ("tokens",), False)
    assert (task.scoring.rule, task.scoring.threshold) == ("all", 0.5)


def test_its_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    said = {"reference": {"solution": {"script": "./solve.sh"}}}
    task, problems = read(tmp_path, said, **{"evals/solve.sh": ""})
    assert problems == []
    assert task.reference is not None
    assert task.reference.solution.script == "evals/solve.sh"


def test_without_it_nothing_changes(tmp_path: Path) -> None:
    assert read(tmp_path, None) == (TASK, [])


def test_it_is_checked_as_task_files_are(tmp_path: Path) -> None:
    said = {
        "tracked_metrics": ["tokns"],
        "environment": {"sandbox": "nowhere"},
        "reference": {"solution": {"script": "./nowhere.sh"}},
    }
    problems = read(tmp_path, said)[1]
    assert any(problem.startswith("passgate.tracked_metrics[0]: 'tokns' is no metric") for problem in problems)
    assert any(problem.startswith("passgate.environment.sandbox: no folder") for problem in problems)
    assert any(problem.startswith("passgate.reference.solution.script: no file") for problem in problems)


def test_an_unknown_key_in_it_is_told(tmp_path: Path) -> None:
    assert read(tmp_path, {"gate": {}})[1] == ["passgate.gate: unknown key; did you mean 'gates'?"]
