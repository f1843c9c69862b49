"""Every task that the schema of the four-suite format accepts loads, and every other one is refused with its place."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from jsonschema import Draft202012Validator
from tests.builders import REPOSITORY, SHIPPED, task_document
from tests.property.four_suite_tasks import invalid_tasks, valid_tasks

from passgate.tasks.formats.four_suite import ReadTaskFile, TaskReader
from passgate.tasks.formats.schema_check import schema_validator
from passgate.tasks.model.task import EvalTask, TaskFile

Load = Callable[[Any], tuple[EvalTask | None, ReadTaskFile]]
FORMAT = Draft202012Validator(json.loads((REPOSITORY / "schema/four_suite.schema.json").read_text(encoding="utf-8")))
KNOWN = schema_validator("task")
PLACE = re.compile(r"\S*task\.yaml:[1-9]\d*:[1-9]\d*: ")
MINIMAL: dict[str, Any] = {
    "task_id": "",
    "suite": "golden",
    "description": "",
    "inputs": {},
    "graders": [42],
    "tracked_metrics": [None],
}


@pytest.fixture(scope="module")
def load(tmp_path_factory: pytest.TempPathFactory) -> Load:
    folder = tmp_path_factory.mktemp("suites")
    reader = TaskReader(folder, SHIPPED, working_folder=folder)

    def _load(document: Any) -> tuple[EvalTask | None, ReadTaskFile]:
        file = folder / "task.yaml"
        file.write_text(json.dumps(document, ensure_ascii=False), encoding="utf-8")
        return reader.read(file)

    return _load


@given(document=valid_tasks)
@example(document=MINIMAL)
@example(document=task_document(environment={"reset": {"commands": ["true"]}, "budgets": {"max_tokens": 0}}))
@example(document=MINIMAL | {"environment": {"reset": {"database": "seed.sql"}, "budgets": {"gpu_minutes": 5}}})
@example(document=MINIMAL | {"tracked_metrics": [{"type": "x", "metrics": [3, "cost"]}, {"type": "x", "y": 1}]})
@example(document=MINIMAL | {"trials": {"k": 100_001}})
@example(document=MINIMAL | {"environment": {"budgets": {"max_step": 1, "free": 2}, "reset": {"comands": 1, "a": 2}}})
def test_every_task_of_the_format_loads(load: Load, document: dict[str, Any]) -> None:
    assert FORMAT.is_valid(document)
    task, said = load(document)
    assert said.problems == ()
    assert task is not None
    assert (task.task_id, task.suite, task.description) == tuple(
        document[key] for key in ("task_id", "suite", "description")
    )
    assert task.tags == tuple(document.get("tags", ()))
    assert EvalTask.model_validate_json(task.model_dump_json(exclude_unset=True)) == task
    assert task.cannot_run == tuple(map(str, (*said.unread, *said.missing)))
    for told in (*said.unread, *said.missing, *said.warnings):
        assert PLACE.match(str(told)), told
    if KNOWN.is_valid(document):
        assert TaskFile.model_validate(document).task_id == task.task_id
        assert task.k == document.get("trials", {}).get("k", SHIPPED.suites[task.suite].k)
    else:
        assert said.unread or said.missing or (said.warnings and task.unknown), "what is not known is told"


@given(document=invalid_tasks())
def test_every_other_task_is_refused_with_its_place(load: Load, document: dict[str, Any]) -> None:
    assert not FORMAT.is_valid(document)
    task, said = load(document)
    assert task is None
    assert said.problems
    for problem in said.problems:
        assert PLACE.match(str(problem)), problem
