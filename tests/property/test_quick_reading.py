"""The quick ways of reading a task agree with the slow ones: the model with its schema, the bound with the count."""

import copy
import json
from pathlib import Path
from typing import Any

import yaml
from bench.load_tasks import CALLS, TASK, TOOLS
from hypothesis import example, given
from hypothesis import strategies as st
from tests.builders import REPOSITORY
from tests.property.documents import paths_of
from tests.property.test_documents import EVERYTHING, values, yaml_like

from passgate.tasks.formats.document import MAX_DEPTH, YAML_LOADER, read_document
from passgate.tasks.formats.schema_check import schema_validator, surely_valid
from passgate.tasks.model.task import TaskFile

SCHEMA = json.loads((REPOSITORY / "schema/task.schema.json").read_text(encoding="utf-8"))
SHIPPED_TASKS = [yaml.safe_load(file.read_text()) for file in sorted((REPOSITORY / "suites/golden").glob("*.yaml"))]
TASKS = [EVERYTHING, yaml.safe_load(TASK % {"number": 1, "tools": TOOLS, "calls": CALLS}), *SHIPPED_TASKS]


def _words(schema: Any, keys: set[str], allowed: set[str]) -> None:
    """All keys and all values that a schema names."""
    if isinstance(schema, dict):
        keys |= set(schema.get("properties", ()))
        allowed |= {str(value) for value in (*schema.get("enum", ()), schema.get("const", ""))}
    for inner in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        _words(inner, keys, allowed)


KEYS, ALLOWED = set[str](), set[str]()
_words(SCHEMA, KEYS, ALLOWED)


@st.composite
def changed_tasks(draw: st.DrawFn) -> Any:
    """A task with other values, more keys, or parts of other tasks in it."""
    task = copy.deepcopy(draw(st.sampled_from(TASKS)))
    for _ in range(draw(st.integers(1, 3))):
        *above, last = draw(st.sampled_from(paths_of(task)[1:]))
        container = task
        for key in above:
            container = container[key]
        other = draw(st.sampled_from(TASKS))
        for key in draw(st.sampled_from(paths_of(other))):
            other = other[key]
        value = draw(st.none() | values | st.sampled_from(sorted(ALLOWED)) | st.just(copy.deepcopy(other)))
        if isinstance(container[last], dict) and draw(st.booleans()):
            container, last = container[last], draw(st.sampled_from(sorted(KEYS)))
        container[last] = value
    return task


@given(document=changed_tasks())
def test_what_the_model_surely_accepts_the_schema_accepts_and_it_is_the_same_task(document: Any) -> None:
    task = surely_valid(TaskFile, document)
    if task is not None and task.tracked_metrics:
        assert list(schema_validator("task").iter_errors(document)) == []
        assert task == TaskFile.model_validate(document)


def test_the_model_knows_the_tasks_that_are_right() -> None:
    assert all(surely_valid(TaskFile, task) for task in TASKS if "null" not in json.dumps(task))


def depth_of(text: str) -> int:
    """How deep a text is nested, up to where it stops being YAML."""
    depth = deepest = 0
    try:
        for event in yaml.parse(text, Loader=YAML_LOADER):
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            deepest = max(deepest, depth)
    except yaml.YAMLError:
        pass
    return deepest


openers = st.sampled_from(["[", "{", "[a: ", "{? ", "- ", "? ", "a:\n", "- a:\n", "- - ", "&a ", "!!map ", "[[a: {b: "])


@st.composite
def nested(draw: st.DrawFn) -> str:
    """Texts that are nested as deep as is allowed, about, in all of YAML's ways."""
    text = ""
    for level in range(draw(st.integers(MAX_DEPTH // 4, MAX_DEPTH + 8))):
        opener = draw(openers)
        text += opener + (" " * (level // draw(st.sampled_from([1, 2, 3]))) if opener.endswith("\n") else "")
    return text + draw(st.sampled_from(["", "x", "]" * 30]))


repeated = st.tuples(openers, st.integers(1, MAX_DEPTH + 2)).map(lambda both: both[0] * both[1] + "x")


@given(text=nested() | repeated | yaml_like | st.lists(repeated, max_size=3).map("\n".join))
@example(text="".join(f"{' ' * level}a:\n{' ' * level}- b:\n" for level in range(40)))
@example(text="a:\n" + "\n".join(f"{' ' * level}-" for level in range(MAX_DEPTH + 1)))
def test_what_is_nested_too_deep_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "file.yaml"
    file.write_bytes(text.encode())
    said = [problem.message for problem in read_document(file, "file.yaml").problems]
    assert (f"nested deeper than {MAX_DEPTH} levels" in said) == (depth_of(text) > MAX_DEPTH)
