"""`passgate convert`: files of one dialect written as another."""

import json

import pytest
import yaml

from tests.project import Project

pytestmark = pytest.mark.slow

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
environment: {sandbox: shop, budgets: {max_steps: 3}}
graders:
  - {type: output_check, contains: [hello]}
tracked_metrics: [tokens]
gates: {nightly: false}
"""


def test_an_eval_file_becomes_task_files(bare_project: Project) -> None:
    bare_project.write("EVAL.yaml", EVAL)
    result = bare_project.passgate("convert", "EVAL.yaml", "--to", "four-suite", "--out", "suites")
    assert (result.returncode, result.stdout) == (0, "1 task written to 1 file: suites\n")
    assert "1 task names no suite and is taken as golden" in result.stderr
    assert yaml.safe_load((bare_project.path / "suites/golden/greets.yaml").read_text()) == {
        "task_id": "greets",
        "suite": "golden",
        "description": "",
        "inputs": {"prompt": "Say hello."},
        "graders": [{"type": "contains", "value": "hello"}],
        "tracked_metrics": ["tokens", "latency", "cost", "tool_use"],
        "scoring": {"rule": "weighted_average"},
    }
    assert bare_project.passgate("validate", "suites").returncode == 0


def test_files_are_overwritten_only_with_force(bare_project: Project) -> None:
    bare_project.write("EVAL.yaml", EVAL)
    bare_project.write("out.yaml", "mine")
    arguments = ("convert", "EVAL.yaml", "--to", "eval", "--out", "out.yaml")
    refused = bare_project.passgate(*arguments)
    assert refused.returncode == 2
    assert "out.yaml: there already; --force writes over it" in refused.stderr
    assert (bare_project.path / "out.yaml").read_text() == "mine"
    assert bare_project.passgate(*arguments, "--force").returncode == 0


def test_what_cannot_be_said_is_an_error_or_left_out_aloud(bare_project: Project) -> None:
    bare_project.write("suites/golden/a.yaml", TASK.replace("Say hello.", "Say ${{ NAME }}"))
    bare_project.write("suites/_shared/sandboxes/shop/files/a.txt", "")
    arguments = ("convert", "suites", "--to", "eval", "--out", "suites/golden/b.yaml")
    refused = bare_project.passgate(*arguments)
    assert refused.returncode == 2
    assert (
        "suites/golden/a.yaml:2:1: inputs.prompt: task 'greets': EVAL.yaml has no words for it; --lossy leaves it out"
        in refused.stderr
    )
    assert not (bare_project.path / "suites/golden/b.yaml").exists()
    lossy = bare_project.passgate(*arguments, "--lossy")
    assert lossy.returncode == 0
    assert "left out: suites/golden/a.yaml:2:1: inputs.prompt: task 'greets'" in lossy.stderr


def test_a_source_with_problems_is_not_converted(bare_project: Project) -> None:
    bare_project.write("EVAL.yaml", EVAL.replace("contains", "contians"))
    result = bare_project.passgate("convert", "EVAL.yaml", "--to", "jsonl", "--out", "out.jsonl")
    assert result.returncode == 2
    assert (
        "EVAL.yaml:7:16: tests[0].assert[0].type: unknown evaluator 'contians'; did you mean 'contains'?"
        in result.stderr
    )
    assert not (bare_project.path / "out.jsonl").exists()


def test_an_unknown_dialect_is_bad_usage(bare_project: Project) -> None:
    bare_project.write("EVAL.yaml", EVAL)
    result = bare_project.passgate("convert", "EVAL.yaml", "--to", "junit", "--out", "x")
    assert result.returncode == 2
    assert "--to junit: expected one of four-suite, eval, jsonl" in result.stderr


def digests(project: Project, path: str) -> dict[str, tuple[str, str]]:
    shown = project.passgate("show", path, "--json")
    assert shown.returncode == 0, shown.stderr
    return {task["task_id"]: (task["task_digest"], task["grader_digest"]) for task in json.loads(shown.stdout)}


TESTED = TASK.replace("output_check, contains: [hello]", "deterministic_tests, tests: [_shared/tests/t/]")
WITHOUT_SANDBOX = TESTED.replace("sandbox: shop, ", "")


def test_what_says_the_same_keeps_its_digests_and_its_baseline(bare_project: Project) -> None:
    bare_project.write("suites/golden/greets.yaml", TESTED)
    bare_project.write("suites/_shared/sandboxes/shop/files/a.txt", "")
    bare_project.write("suites/_shared/tests/t/test_a.py", "def test_a(): pass\n")
    before = digests(bare_project, "suites")
    there = bare_project.passgate("convert", "suites", "--to", "eval", "--out", "suites/golden/EVAL.yaml")
    assert (there.returncode, there.stderr) == (0, "")
    (bare_project.path / "suites/golden/greets.yaml").unlink()
    assert digests(bare_project, "suites") == before
    back = bare_project.passgate("convert", "suites", "--to", "four-suite", "--out", "suites")
    assert (back.returncode, back.stderr) == (0, "")
    (bare_project.path / "suites/golden/EVAL.yaml").unlink()
    assert digests(bare_project, "suites") == before


def test_a_task_whose_baseline_is_lost_is_named_with_the_reason(bare_project: Project) -> None:
    bare_project.write("suites/golden/shop.eval.yaml", EVAL)
    bare_project.write("suites/_shared/tests/t/test_a.py", "def test_a(): pass\n")
    renamed = bare_project.passgate("convert", "suites", "--to", "four-suite", "--out", "suites")
    assert renamed.returncode == 0
    assert (
        "warning: suites/golden/shop.eval.yaml:4:1: task 'greets': earlier results are no baseline for it: its id was "
        "'shop/greets' and is 'greets'\n"
    ) in renamed.stderr
    bare_project.write("suites/golden/greets.yaml", WITHOUT_SANDBOX)
    moved = bare_project.passgate("convert", "suites/golden/greets.yaml", "--to", "eval", "--out", "EVAL.yaml")
    assert moved.returncode == 0
    assert "the digest of its graders changes, for graders[0].tests[0] differ" in moved.stderr


def test_a_task_whose_files_are_missing_is_converted(bare_project: Project) -> None:
    asked = "[{role: user, content: [{type: file, value: gone.md}]}]"
    bare_project.write("suites/golden/EVAL.yaml", EVAL.replace("Say hello.", asked))
    again = bare_project.passgate("convert", "suites", "--to", "jsonl", "--out", "suites/golden/all.jsonl")
    assert again.returncode == 0, again.stderr
    assert "no baseline" not in again.stderr


def test_messages_are_kept_word_by_word(bare_project: Project) -> None:
    said = "messages: [{role: user, content: Say hello., name: null}, {role: assistant, content: Hi, tool_calls: []}]"
    bare_project.write("suites/golden/greets.yaml", WITHOUT_SANDBOX.replace("prompt: 'Say hello.'", said))
    bare_project.write("suites/_shared/tests/t/test_a.py", "def test_a(): pass\n")
    before = digests(bare_project, "suites")
    again = bare_project.passgate("convert", "suites", "--to", "four-suite", "--out", "suites", "--force")
    assert (again.returncode, again.stderr) == (0, "")
    assert digests(bare_project, "suites") == before
    other = bare_project.passgate("convert", "suites", "--to", "eval", "--out", "suites/golden/EVAL.yaml")
    assert (
        "the digest of its task changes, for inputs.messages[0].name, inputs.messages[1].tool_calls differ"
        in other.stderr
    )
