"""`passgate convert`: files of one dialect written as another."""

import json

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
environment: {sandbox: shop, budgets: {max_steps: 3}}
graders:
  - {type: output_check, contains: [hello]}
tracked_metrics: [tokens]
gates: {nightly: false}
"""
TESTED = TASK.replace("output_check, contains: [hello]", "deterministic_tests, tests: [_shared/tests/t/]")
WITHOUT_SANDBOX = TESTED.replace("sandbox: shop, ", "")


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


def test_what_cannot_be_said_is_an_error_or_left_out_aloud(here: Here) -> None:
    here.write("suites/golden/a.yaml", TASK.replace("Say hello.", "Say ${{ NAME }}"))
    here.write("suites/_shared/sandboxes/shop/files/a.txt", "a")
    out, place = "suites/golden/b.yaml", "suites/golden/a.yaml:2:1: inputs.prompt: task 'greets'"
    said = refused(here, "convert", "suites", "--to", "eval", "--out", out)
    assert f"{place}: EVAL.yaml has no words for it; --lossy leaves it out" in said
    assert not (here.path / out).exists()
    assert f"left out: {place}" in converted(here, "suites", "eval", out, "--lossy")


def test_a_source_with_problems_and_an_unknown_dialect_are_refused(here: Here) -> None:
    here.write("EVAL.yaml", EVAL.replace("contains", "contians"))
    said = refused(here, "convert", "EVAL.yaml", "--to", "jsonl", "--out", "out.jsonl")
    problem = "EVAL.yaml:7:16: tests[0].assert[0].type: unknown evaluator 'contians'; did you mean 'contains'?"
    assert problem in said
    assert not (here.path / "out.jsonl").exists()
    said = refused(here, "convert", "EVAL.yaml", "--to", "junit", "--out", "x")
    assert "--to junit: expected one of four-suite, eval, jsonl" in said


def test_what_says_the_same_keeps_its_digests_and_its_baseline(here: Here) -> None:
    task = here.write("suites/golden/greets.yaml", TESTED)
    here.write("suites/_shared/sandboxes/shop/files/a.txt", "a")
    here.write("suites/_shared/tests/t/test_a.py", "def test_a(): pass\n")
    before = digests(here)
    assert converted(here, "suites", "eval", "suites/golden/EVAL.yaml") == ""
    task.unlink()
    assert digests(here) == before
    assert converted(here, "suites", "four-suite", "suites") == ""
    (here.path / "suites/golden/EVAL.yaml").unlink()
    assert digests(here) == before


def test_a_task_whose_baseline_is_lost_is_named_with_the_reason(here: Here) -> None:
    here.write("suites/golden/shop.eval.yaml", EVAL)
    here.write("suites/_shared/tests/t/test_a.py", "def test_a(): pass\n")
    assert (
        "warning: suites/golden/shop.eval.yaml:4:1: task 'greets': earlier results are no baseline for it: its id was "
        "'shop/greets' and is 'greets'\n"
    ) in converted(here, "suites", "four-suite", "suites")
    task = here.write("suites/golden/greets.yaml", WITHOUT_SANDBOX)
    moved = converted(here, str(task.relative_to(here.path)), "eval", "EVAL.yaml")
    assert "the digest of its graders changes, for graders[0].tests[0] differ" in moved


def test_a_task_whose_files_are_missing_is_converted(here: Here) -> None:
    asked = "[{role: user, content: [{type: file, value: gone.md}]}]"
    here.write("suites/golden/EVAL.yaml", EVAL.replace("Say hello.", asked))
    assert "no baseline" not in converted(here, "suites", "jsonl", "suites/golden/all.jsonl")


def test_messages_are_kept_word_by_word(here: Here) -> None:
    said = "messages: [{role: user, content: Say hello., name: null}, {role: assistant, content: Hi, tool_calls: []}]"
    here.write("suites/golden/greets.yaml", WITHOUT_SANDBOX.replace("prompt: 'Say hello.'", said))
    here.write("suites/_shared/tests/t/test_a.py", "def test_a(): pass\n")
    before = digests(here)
    assert converted(here, "suites", "four-suite", "suites", "--force") == ""
    assert digests(here) == before
    changed = "the digest of its task changes, for inputs.messages[0].name, inputs.messages[1].tool_calls differ"
    assert changed in converted(here, "suites", "eval", "suites/golden/EVAL.yaml")
