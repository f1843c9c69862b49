"""Whatever a file holds, reading it ends with a task or with problems, never with an exception."""

import json
from pathlib import Path
from typing import Any

import yaml
from hypothesis import example, given
from hypothesis import strategies as st
from tests.builders import REPOSITORY, SHIPPED
from tests.property.documents import changed, nested, paths_of

from passgate.tasks.errors import Problem
from passgate.tasks.formats.document import read_document
from passgate.tasks.formats.four_suite import TaskReader
from passgate.tasks.formats.project_files import read_policy
from passgate.tasks.model.policy import Policy
from passgate.tasks.model.task import EvalTask

FLOOR = json.loads((REPOSITORY / "schema/four_suite.schema.json").read_text(encoding="utf-8"))
"""What a task file could be before passgate was there; whoever has such files keeps them."""

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
values = nested(scalars, size=4, most=12)
pieces = [*"ab01:-?![]{}&*<>|%@`\"'#,.~= \n\t\\\x00\x07é", "<<", "&a", "*a", "!!", "---", "\r\n", "\ufeff"]
yaml_like = st.lists(st.sampled_from(pieces)).map("".join)


def read(tmp_path: Path, content: bytes) -> EvalTask | list[Problem] | None:
    file = tmp_path / "task.yaml"
    file.write_bytes(content)
    task, said = TaskReader(tmp_path, SHIPPED, working_folder=tmp_path).read(file)
    return [*said.problems, *said.unread, *said.warnings] or task


def holds(answer: object, kind: type) -> None:
    """Either what was wanted or problems, each with a place that a person can go to."""
    if isinstance(answer, kind):
        return
    assert isinstance(answer, list)
    assert answer
    for problem in answer:
        assert problem.line >= 1
        assert problem.column >= 1
        assert problem.message


@given(content=st.binary() | st.text().map(str.encode) | yaml_like.map(str.encode))
def test_any_bytes_are_a_task_or_problems(tmp_path: Path, content: bytes) -> None:
    holds(read(tmp_path, content), EvalTask)


@given(document=values)
def test_any_document_is_a_task_or_problems(tmp_path: Path, document: Any) -> None:
    holds(read(tmp_path, json.dumps(document).encode()), EvalTask)


EVERYTHING = yaml.safe_load((REPOSITORY / "tests/examples/valid/four_suite/open_ended/everything.yml").read_text())


@given(path=st.sampled_from(paths_of(EVERYTHING)), value=values)
@example(path=("trials", "k"), value=1e30)
@example(path=("environment", "sandbox"), value="\0")
@example(path=("graders", 0, "tests", 0), value="\0")
@example(path=("graders", 6, "matches"), value="(" * 3000)
def test_one_wrong_value_anywhere_is_no_crash(tmp_path: Path, path: tuple[str | int, ...], value: Any) -> None:
    holds(read(tmp_path, json.dumps(changed(EVERYTHING, path, value)).encode()), EvalTask)


@given(content=st.binary() | yaml_like.map(str.encode))
def test_any_bytes_are_a_policy_or_problems(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "gates.yaml"
    file.write_bytes(content)
    holds(read_policy(file, "gates.yaml"), Policy)


@given(path=st.sampled_from(paths_of(SHIPPED.model_dump(mode="json", exclude_none=True))), value=values)
def test_one_wrong_value_in_a_policy_is_no_crash(tmp_path: Path, path: tuple[str | int, ...], value: Any) -> None:
    file = tmp_path / "gates.yaml"
    document = changed(SHIPPED.model_dump(mode="json", exclude_none=True), path, value)
    file.write_text(json.dumps(document), encoding="utf-8")
    holds(read_policy(file, "gates.yaml"), Policy)


@given(document=values)
def test_json_is_read_as_it_is_written(tmp_path: Path, document: Any) -> None:
    """JSON without the few things in which YAML 1.1 differs from it."""
    file = tmp_path / "file.yaml"
    file.write_text(json.dumps(document), encoding="utf-8")
    read_back = read_document(file, "file.yaml")
    if read_back.problems == []:
        assert as_yaml_1_1(read_back.data) == as_yaml_1_1(document)


def as_yaml_1_1(value: Any) -> Any:
    """`1e5` without a dot is a text there."""
    if isinstance(value, dict):
        return {key: as_yaml_1_1(item) for key, item in value.items()}
    if isinstance(value, list):
        return [as_yaml_1_1(item) for item in value]
    return json.dumps(value) if isinstance(value, float) else value


@given(document=values)
def test_every_value_has_a_place_inside_the_file(tmp_path: Path, document: Any) -> None:
    file = tmp_path / "file.yaml"
    file.write_text(yaml.safe_dump(document), encoding="utf-8", newline="\n")
    lines = file.read_text(encoding="utf-8").count("\n") + 1
    read_back = read_document(file, "file.yaml")
    if read_back.problems == []:
        places = [*read_back.values.values(), *read_back.keys.values()]
        assert all(1 <= place.line <= lines and place.column >= 1 for place in places)
        assert set(read_back.values) == {*paths_of(read_back.data)}


def test_the_original_schemas_keys_have_their_place_in_ours() -> None:
    ours = json.loads((REPOSITORY / "schema/task.schema.json").read_text(encoding="utf-8"))
    assert set(FLOOR["properties"]) <= set(ours["properties"])
    assert set(FLOOR["required"]) == set(ours["required"])
    assert ours["title"] == FLOOR["title"]
