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
    ("value", "read_as"),
    [
        (PNG, f"data:image/png;base64,{PNG}"),
        (JPEG, f"data:image/jpeg;base64,{JPEG}"),
        (GIF, f"data:image/gif;base64,{GIF}"),
        (WEBP, f"data:image/webp;base64,{WEBP}"),
        (f"{PNG[:20]}\n{PNG[20:]}", f"data:image/png;base64,{PNG}"),
        ("data:image/gif;base64,R0", "data:image/gif;base64,R0"),
        ("https://example.org/a.png", "https://example.org/a.png"),
        ("images/a.png", "images/a.png"),
    ],
    ids=lambda value: value[:20],
)
def test_an_image_is_raw_base64_of_any_length_or_an_address_or_a_path(tmp_path: Path, value: str, read_as: str) -> None:
    write(tmp_path, {"images/a.png": "x"})
    answer = read_test(tmp_path, input=asks_with(value))
    assert answer.one.messages[0].content[1].value == read_as
    assert answer.cannot_run == []


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
    assert (docker.problems, docker.cannot_run) == ([], ["tests[0].environment: passgate runs nothing in Docker"])


def fields(**said: Any) -> list[dict[str, Any]]:
    return [{"type": "field_accuracy", "fields": [{"path": "total", **said}]}]


def test_a_field_says_how_it_is_matched_in_either_words(tmp_path: Path) -> None:
    said = {"assert": fields(match_type="numeric_tolerance", numeric_tolerance=0.01)}
    (grader,) = read_test(tmp_path, **said).one.graders
    assert grader.fields == (FieldCheck(path="total", match="numeric_tolerance", tolerance=0.01),)


MESSAGE = "expected a message with `role` and `content`, not"


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        (
            {"input": asks_with(base64.b64encode(b"<svg>" + bytes(2000)).decode())},
            "input[0].content[1].value: base64 of no png, jpeg, gif, webp: write its type",
        ),
        (
            {"assert": fields(match="exact", match_type="date")},
            "assert[0].fields[0].match_type: 'match' and 'match_type' mean the same and differ; keep one of them",
        ),
        (
            {"assert": [{**fields()[0], "match_type": "date"}]},
            "assert[0].match_type: is said of each field: write fields: [{path: PATH, match",
        ),
        ({"assert": [{"type": "code", "value": "output.length > 1"}]}, "assert[0]: the key 'command' is missing"),
        (
            {"expected_messages": "Paris"},
            'expected_messages: expected messages with `role` and `content`, not "Paris": write a text or a value as ',
        ),
        ({"expected_messages": ["Paris"]}, f'expected_messages[0]: {MESSAGE} "Paris"'),
        ({"expected_messages": [{"content": "Paris"}]}, f'expected_messages[0]: {MESSAGE} {{"content": "Paris"}}'),
    ],
    ids=range(7),
)
def test_another_spelling_is_refused_with_what_to_write(tmp_path: Path, said: dict[str, Any], problem: str) -> None:
    (found,) = read_test(tmp_path, **said).problems
    assert found.startswith(f"tests[0].{problem}")


def test_an_experiment_is_no_name(tmp_path: Path) -> None:
    (problem,) = read_test(tmp_path, {"experiment": "nightly"}).problems
    assert problem.startswith('experiment: expected a mapping, not "nightly": the name of a run stands under `tags`')
    assert read_test(tmp_path, {"tags": {"experiment": "nightly"}}).problems == []


@pytest.mark.parametrize("key", ["command", "script"])
def test_code_is_a_code_grader(tmp_path: Path, key: str) -> None:
    said = [{"type": "code", key: ["python", "grade.py"]}]
    write(tmp_path, {"grade.py": ""})
    (grader,) = read_test(tmp_path, **{"assert": said}).one.graders
    assert grader == CodeGrader(type="code_grader", command=("python", "grade.py"))


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
