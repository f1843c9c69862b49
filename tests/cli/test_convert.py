"""`passgate convert`: eval files written as task files, or anew in YAML or JSONL."""

import json

import pytest
import yaml

from tests.cli.commands import Here, exits, refused, told

EVAL = """
name: shop
tests:
  - id: greets
    input: Say hello.
    assert:
      - {type: contains, value: hello}
"""
TASK = """
task_id: greets
suite: golden
description: ''
inputs: {prompt: 'Say hello.'}
graders: [{type: output_check, contains: [hello]}]
tracked_metrics: [tokens]
"""


def converted(here: Here, source: str, dialect: str, out: str, *options: str) -> str:
    """What a conversion that succeeds says beside its result."""
    return exits(here, 0, "convert", source, "--to", dialect, "--out", out, *options).stderr


def digests(here: Here) -> dict[str, tuple[str, str]]:
    tasks = json.loads(told(here, "show", "suites", "--json"))
    return {task["task_id"]: (task["task_digest"], task["grader_digest"]) for task in tasks}


def test_an_eval_file_becomes_task_files(here: Here) -> None:
    here.write("EVAL.yaml", EVAL)
    result = exits(here, 0, "convert", "EVAL.yaml", "--to", "four-suite", "--out", "suites")
    assert result.stdout == "1 task written to 1 file: suites\n"
    assert "1 task names no suite and is taken as golden" in result.stderr
    assert yaml.safe_load((here.path / "suites/golden/greets.yaml").read_text()) == {
        "task_id": "greets",
        "suite": "golden",
        "description": "",
        "inputs": {"prompt": "Say hello."},
        "graders": [{"type": "contains", "value": "hello"}],
        "tracked_metrics": ["tokens", "latency", "cost", "tool_use"],
        "scoring": {"rule": "weighted_average"},
    }
    told(here, "validate", "suites")


@pytest.mark.parametrize(("dialect", "out"), [("eval", "EVAL.yaml"), ("jsonl", "all.jsonl"), ("four-suite", "suites")])
def test_task_files_are_not_rewritten(here: Here, dialect: str, out: str) -> None:
    here.write("suites/golden/greets.yaml", TASK)
    said = refused(here, "convert", "suites", "--to", dialect, "--out", out)
    assert (
        "not eval files: suites/golden/greets.yaml; passgate rewrites eval files only: keep task files as they" in said
    )
    assert not (here.path / out).is_file()


def test_a_source_with_problems_and_an_unknown_dialect_are_refused(here: Here) -> None:
    here.write("EVAL.yaml", EVAL.replace("contains", "contians"))
    said = refused(here, "convert", "EVAL.yaml", "--to", "jsonl", "--out", "out.jsonl")
    problem = "EVAL.yaml:7:16: tests[0].assert[0].type: unknown evaluator 'contians'; did you mean 'contains'?"
    assert problem in said
    assert not (here.path / "out.jsonl").exists()
    said = refused(here, "convert", "EVAL.yaml", "--to", "junit", "--out", "x")
    assert "--to junit: expected one of four-suite, eval, jsonl" in said


def test_what_says_the_same_keeps_its_digests_and_its_baseline(here: Here) -> None:
    file = here.write("suites/golden/shop.eval.yaml", EVAL)
    before = digests(here)
    assert "no baseline" not in converted(here, str(file), "jsonl", "suites/golden/shop.jsonl")
    file.unlink()
    assert digests(here) == before
    warned = converted(here, "suites/golden/shop.jsonl", "eval", "suites/golden/EVAL.yaml")
    place = "warning: suites/golden/shop.jsonl:1:1: task 'greets'"
    assert f"{place}: earlier results are no baseline for it: its id was 'shop/greets' and is 'greets'\n" in warned
    for name in ("jsonl", "yaml"):
        (here.path / f"suites/golden/shop.{name}").unlink()
    now = digests(here)
    assert [*now.values()] == [*before.values()]
    assert converted(here, "suites", "four-suite", "suites") == ""
    (here.path / "suites/golden/EVAL.yaml").unlink()
    assert digests(here) == now


def test_a_task_whose_files_are_missing_is_converted(here: Here) -> None:
    asked = "[{role: user, content: [{type: file, value: gone.md}]}]"
    here.write("suites/golden/EVAL.yaml", EVAL.replace("Say hello.", asked))
    assert "no baseline" not in converted(
        here, "suites/golden/EVAL.yaml", "jsonl", "suites/golden/EVAL.jsonl", "--force"
    )


def test_json_is_one_document_and_quiet_prints_nothing(here: Here) -> None:
    here.write("EVAL.yaml", EVAL)
    words = ("convert", "EVAL.yaml", "--to", "four-suite", "--force", "--out")
    assert json.loads(exits(here, 0, *words, "suites", "--json").stdout)["tasks"] == 1
    assert exits(here, 0, *words, "suites", "--quiet").stdout == ""
    assert "cannot be written" in refused(here, *words, "EVAL.yaml/suites", "--quiet")
