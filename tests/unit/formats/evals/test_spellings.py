"""Spellings of eval files that are seldom met: each is read as its format means it, or refused with what to write."""

import base64
from pathlib import Path
from typing import Any

import pytest

from passgate.tasks.model.assertions import CodeGrader, FieldCheck
from tests.unit.formats.evals.eval_files import write
from tests.unit.formats.evals.eval_tasks import read_file, read_test

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(40)).decode()
JPEG = base64.b64encode(b"\xff\xd8\xff\xe0" + bytes(300)).decode()
GIF = base64.b64encode(b"GIF89a" + bytes(200)).decode()
WEBP = base64.b64encode(b"RIFF\x10\0\0\0WEBPVP8 " + bytes(40)).decode()
ANSWER = {"role": "assistant", "content": "Paris"}
CALL = {"id": "1", "type": "function", "function": {"name": "find", "arguments": '{"city": "Paris"}'}}


def asks_with(value: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": [{"type": "text", "value": "What is it?"}, {"type": "image", "value": value}]}]


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (PNG, "png"),
        (JPEG, "jpeg"),
        (GIF, "gif"),
        (WEBP, "webp"),
        ("\n".join(PNG[i : i + 20] for i in (0, 20, 40)), "png"),
    ],
)
def test_an_image_may_be_raw_base64_of_any_length(tmp_path: Path, value: str, kind: str) -> None:
    (message,) = read_test(tmp_path, input=asks_with(value)).one.messages
    assert message.content[1].value == f"data:image/{kind};base64,{''.join(value.split())}"


@pytest.mark.parametrize("value", [f"data:image/png;base64,{PNG}", "https://example.org/a.png", "images/a.png"])
def test_an_image_by_its_address_or_path_stays_as_it_is(tmp_path: Path, value: str) -> None:
    write(tmp_path, {"images/a.png": "x"})
    answer = read_test(tmp_path, input=asks_with(value))
    assert answer.one.messages[0].content[1].value == value
    assert answer.cannot_run == []


def test_base64_of_another_kind_is_refused_with_what_to_write(tmp_path: Path) -> None:
    raw = base64.b64encode(b"<svg>" + bytes(2000)).decode()
    (problem,) = read_test(tmp_path, input=asks_with(raw)).problems
    assert problem.startswith("tests[0].input[0].content[1].value: base64 of no png, jpeg, gif, webp: write its type")


@pytest.mark.parametrize(
    ("columns", "cells", "names"),
    [
        ("input,__expected,__metric", "hi,contains:a,greets", ["greets"]),
        ("input,__expected1,__expected2,__metric", "hi,contains:a,equals:b,greets", ["greets-1", "greets-2"]),
        ("input,__metric,__expected", "hi,,contains:a", [None]),
    ],
)
def test_a_column_names_the_graders_of_a_table(tmp_path: Path, columns: str, cells: str, names: list[Any]) -> None:
    files = {"cases.csv": f"{columns}\n{cells}\n"}
    task = read_file(tmp_path, {"suite": "golden", "tests": "cases.csv"}, files=files).one
    assert [grader.name for grader in task.graders] == names


@pytest.mark.parametrize("name", ["resources", "mounts", "secrets", "context", "dockerfile"])
def test_what_only_docker_has_is_refused_on_a_host_and_cannot_be_run_in_docker(tmp_path: Path, name: str) -> None:
    said = {name: {"cpus": 2}}
    (problem,) = read_test(tmp_path, environment={"type": "host", **said}).problems
    assert problem.startswith(f"tests[0].environment.{name}: is for `type: docker`, which passgate does not run; leave")
    docker = read_test(tmp_path, environment={"type": "docker", "image": "python:3.12", **said})
    assert docker.problems == []
    assert docker.cannot_run == ["tests[0].environment: passgate runs nothing in Docker"]


def test_an_experiment_is_no_name(tmp_path: Path) -> None:
    (problem,) = read_test(tmp_path, {"experiment": "nightly"}).problems
    assert problem.startswith('experiment: expected a mapping, not "nightly": the name of a run stands under `tags`')
    assert read_test(tmp_path, {"tags": {"experiment": "nightly"}}).problems == []


def fields(**said: Any) -> list[dict[str, Any]]:
    return [{"type": "field_accuracy", "fields": [{"path": "total", **said}]}]


def test_a_field_says_how_it_is_matched_in_either_words(tmp_path: Path) -> None:
    said = fields(match_type="numeric_tolerance", numeric_tolerance=0.01)
    (grader,) = read_test(tmp_path, expected_output={"total": 1}, **{"assert": said}).one.graders
    assert grader.fields == (FieldCheck(path="total", match="numeric_tolerance", tolerance=0.01),)
    twice = read_test(tmp_path, expected_output={"total": 1}, **{"assert": fields(match="exact", match_type="date")})
    assert "'match' and 'match_type' mean the same and differ; keep one of them" in twice.problems[0]
    said = [{**fields()[0], "match_type": "date"}]
    (problem,) = read_test(tmp_path, expected_output={"total": 1}, **{"assert": said}).problems
    assert problem.startswith("tests[0].assert[0].match_type: is said of each field: write fields: [{path: PATH, match")


@pytest.mark.parametrize("key", ["command", "script"])
def test_code_is_a_code_grader(tmp_path: Path, key: str) -> None:
    said = [{"type": "code", key: ["python", "grade.py"]}]
    write(tmp_path, {"grade.py": ""})
    (grader,) = read_test(tmp_path, **{"assert": said}).one.graders
    assert grader == CodeGrader(type="code_grader", command=("python", "grade.py"))


def test_code_without_a_program_is_refused(tmp_path: Path) -> None:
    answer = read_test(tmp_path, **{"assert": [{"type": "code", "value": "output.length > 1"}]})
    assert answer.problems == ["tests[0].assert[0]: the key 'command' is missing"]


@pytest.mark.parametrize(
    ("said", "text", "tools"),
    [
        ([ANSWER], "Paris", []),
        (ANSWER, "Paris", []),
        ([{"role": "assistant", "content": [{"type": "text", "value": "Paris"}]}], "Paris", []),
        ([{"role": "assistant", "tool_calls": [CALL]}, ANSWER], "Paris", ["find"]),
    ],
)
def test_expected_messages_are_messages(tmp_path: Path, said: Any, text: str, tools: list[str]) -> None:
    task = read_test(tmp_path, expected_messages=said).one
    assert task.reference_answer == text
    assert [call.tool for message in task.expected_messages for call in message.tool_calls] == tools


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        (
            "Paris",
            'expected messages with `role` and `content`, not "Paris": write a text or a value as `expected_output`',
        ),
        (["Paris"], 'expected a message with `role` and `content`, not "Paris"'),
        ([{"content": "Paris"}], 'expected a message with `role` and `content`, not {"content": "Paris"}'),
    ],
)
def test_other_expected_messages_are_refused_with_what_to_write(tmp_path: Path, said: Any, problem: str) -> None:
    (found,) = read_test(tmp_path, expected_messages=said).problems
    assert found.endswith(problem)
