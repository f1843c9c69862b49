"""Spellings of eval files that are seldom met: each is read as its format means it, or refused with what to write."""

import base64
from pathlib import Path
from typing import Any

import pytest

from passgate.tasks.model.assertions import FieldCheck
from tests.unit.formats.evals.eval_files import write
from tests.unit.formats.evals.eval_tasks import Answer, read_file, read_test

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


OF_PROMPTS: dict[str, Any] = {"suite": "golden", "prompts": ["{{ question }}"]}
PLAIN: dict[str, Any] = {"id": "t", "vars": {"question": "Why?"}, "assert": [{"type": "contains", "value": "zebra"}]}


def of_prompts(root: Path, top: Any = None, **said: Any) -> Answer:
    """A test of a file with prompts that says this in addition."""
    return read_file(
        root, {**OF_PROMPTS, "tests": [PLAIN | said], **(top or {})}, files={"p.txt": "{{ question }} Say."}
    )


@pytest.mark.parametrize(
    ("prompt", "asked"),
    [
        ({"path": "p.txt"}, "Why? Say."),
        ({"raw": "{{ question }}", "prefix": "Think. ", "suffix": " Say.", "config": {}}, "Think. Why? Say."),
    ],
)
def test_prompts_may_be_named_by_path_and_have_words_around_them(tmp_path: Path, prompt: Any, asked: str) -> None:
    assert of_prompts(tmp_path, {"prompts": [prompt]}).one.prompt == asked


@pytest.mark.parametrize("key", ["function", "function_file"])
def test_a_prompt_that_a_function_makes_keeps_the_tests_from_running(tmp_path: Path, key: str) -> None:
    answer = of_prompts(tmp_path, {"prompts": [{"label": "l", key: "./p.js"}]})
    assert (answer.problems, len(answer.tasks)) == ([], 1)
    assert answer.cannot_run[0].startswith(f"prompts[0].{key}: no function makes a prompt here; write its text")


def test_a_default_prompt_of_judges_goes_to_those_without_their_own(tmp_path: Path) -> None:
    asked = "Does {{ output }} say {{ rubric }}?"
    judges = [
        {"type": "llm-rubric", "value": "it is kind"},
        {"type": "llm-rubric", "value": ["it is kind"]},
        {"type": "llm-rubric", "value": "it is kind", "prompt": "Own: {{ output }}"},
        {"type": "assert-set", "assert": [{"type": "llm-rubric", "value": "it is kind"}]},
    ]
    top = {"default_test": {"options": {"rubric_prompt": asked}}}
    one, items, own, several = of_prompts(tmp_path, top, **{"assert": judges}).one.graders
    without_items = "Does {{ output }} say {{ criteria }}?"
    assert (one.prompt, items.prompt, own.prompt) == (without_items, asked, "Own: {{ output }}")
    assert several.assertions[0].prompt == without_items


def test_a_provider_may_be_written_as_a_key_and_its_own_settings_are_not_used(tmp_path: Path) -> None:
    hooks = {"before_each": {"command": ["ls"]}}
    answer = of_prompts(tmp_path, {"providers": [{"openai:gpt": {"label": "gpt", "hooks": hooks, "transform": "x"}}]})
    assert answer.one.target == "gpt"
    assert [each.target for each in answer.one.workspace.target_hooks] == ["gpt"]
    assert answer.warnings[0].endswith("transform: is not used: the agent is that of --agent, described in agents.yaml")


def test_a_range_of_tests_is_not_taken_silently(tmp_path: Path) -> None:
    (warning,) = of_prompts(tmp_path, {"evaluate_options": {"filter_range": [0, 1]}}).warnings
    assert warning == "evaluate_options.filter_range: all tests are run; choose some with --task"


@pytest.mark.parametrize(
    ("top", "said", "remedy"),
    [
        ({"graders": []}, {}, "graders: unknown key; name the judge in gates.yaml, under `judge`"),
        ({"derived_metrics": []}, {}, "derived_metrics: unknown key; ask the history for it"),
        ({"output_path": "x"}, {}, "output_path: unknown key; leave it out: `passgate run --json`"),
        ({"nunjucks_filters": {}}, {}, "nunjucks_filters: unknown key; write the finished texts into `vars`"),
        ({"on_run_complete": "x"}, {}, "on_run_complete: unknown key; write `extensions: [file://PATH:afterAll]`"),
        ({"repeat": 3}, {}, "repeat: unknown key; write `evaluate_options: {repeat: N}`"),
        ({"model": "x"}, {}, "model: unknown key; name it with --agent, as in openai:MODEL"),
        ({"default_test": {"assert_scoring_function": "x"}}, {}, "default_test.assert_scoring_function: the score is"),
        ({}, {"provider_output": "x"}, "tests[0].provider_output: play recorded answers with `--agent replay:FOLDER`"),
        ({"default_test": "ref://x"}, {}, "default_test: no file 'ref://x': names of another tool's settings are not"),
        ({"tests": "file://p.py:make"}, {}, "tests: no file 'p.py:make': no function gives tests; write what it ret"),
        ({}, {"postprocess": "x"}, "tests[0].postprocess: passgate transforms no answers: let a `script` grader read"),
    ],
)
def test_a_key_that_is_not_read_is_refused_with_what_to_write(tmp_path: Path, top: Any, said: Any, remedy: str) -> None:
    (problem,) = of_prompts(tmp_path, top, **said).problems
    assert problem.startswith(remedy)


@pytest.mark.parametrize(
    ("top", "said", "remedy"),
    [
        (
            {"environment": {"type": "host", "workdir": "./gone", "setup": {"command": ["ls"]}}},
            {},
            "environment.workdir: no file './gone': passgate copies it before `setup` runs; for a repository write",
        ),
        (
            {},
            {"assert": [{"type": "script", "command": "ls", "provider": {"max_calls": 1}}]},
            "tests[0].assert[0].provider: passgate has no proxy for the model calls of a grader; let it call",
        ),
        (
            {},
            {"assert": [{"type": "tool-trajectory", "mode": "exact", "expected": [{"tool": "a", "output": 1}]}]},
            "tests[0].assert[0].expected[0].output: results of calls are not compared: let a `script` grader do it",
        ),
    ],
)
def test_what_cannot_be_had_says_what_to_write(tmp_path: Path, top: Any, said: Any, remedy: str) -> None:
    assert of_prompts(tmp_path, top, **said).cannot_run[0].startswith(remedy)
