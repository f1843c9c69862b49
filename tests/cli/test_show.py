"""`passgate show`: files of every dialect in one form, and trials of a run."""

import json

import pytest
import yaml

from tests.cli.commands import Here, exits, refused, told
from tests.scenarios import Scenario

EVAL = """
name: chat
execution: {timeout_seconds: 30}
assert:
  - {type: contains, value: "Ann"}
tests:
  - id: greet
    criteria: |
      Greets.
      Is kind.
    input:
      - {role: system, content: "Be short."}
      - {role: user, content: "I am Ann."}
"""


def test_an_eval_file_is_shown_as_the_task_that_is_run(here: Here) -> None:
    here.write("golden/chat.eval.yaml", EVAL)
    result = exits(here, 0, "show", "golden/chat.eval.yaml")
    assert result.stderr == ""
    assert "criteria: |\n  Greets.\n  Is kind.\n" in result.stdout
    (task,) = yaml.safe_load_all(result.stdout)
    assert (task["task_id"], task["suite"], task["k"], task["metric"]) == ("chat/greet", "golden", 3, "pass^k")
    assert task["inputs"]["messages"][1] == {"role": "user", "content": "I am Ann."}
    assert task["graders"] == [{"type": "contains", "value": "Ann"}]
    assert task["budgets"] == {"max_steps": 20, "max_seconds": 30.0}
    assert task["scoring"] == {"rule": "weighted_average"}
    assert {"reference", "task_digest"}.isdisjoint(task)
    (whole,) = json.loads(told(here, "show", "--json", "golden"))  # Programs get every field
    assert (whole["line"], whole["reference"], whole["scoring"]["threshold"]) == (7, None, 0.8)
    assert len(whole["task_digest"]) == 64


def test_a_task_is_shown_by_its_name(here: Here) -> None:
    here.write("suites/golden/chat.eval.yaml", EVAL)
    for name in ("golden/chat/greet", "chat/greet"):
        assert told(here, "show", name) == told(here, "show", "suites/golden/chat.eval.yaml")
    assert "no task 'golden/chat/gret' in suites; did you mean" in refused(here, "show", "golden/chat/gret")


def test_what_a_terminal_would_obey_is_only_shown(here: Here) -> None:
    here.write("golden/chat.eval.yaml", EVAL.replace("I am Ann.", "\\x1b[2J \u202e Ann"))
    shown = told(here, "show", "golden")
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    (task,) = yaml.safe_load_all(shown)
    assert task["inputs"]["messages"][1]["content"] == "\x1b[2J \u202e Ann"


def test_problems_are_shown_instead_of_tasks(here: Here) -> None:
    here.write("golden/chat.eval.yaml", EVAL.replace("criteria", "critera"))
    said = refused(here, "show", "golden")
    assert "golden/chat.eval.yaml:8:5: tests[0].critera: unknown key; did you mean 'criteria'?" in said


def test_a_trial_of_a_run_is_shown(red: Scenario) -> None:
    (run,) = red.run_folders()
    by_name = exits(red, 0, "show", run.name, "--task", "golden/first", "--trial", "1")
    assert by_name.stderr == ""
    assert by_name.stdout.startswith(f"golden/first, trial 1  suites/golden/first.yaml:3\nrun {run.name}\n")
    assert "user Write a.txt.\n" in by_name.stdout
    assert "\x1b" not in by_name.stdout
    assert by_name.stdout.endswith("  passgate try golden/first --agent nop\n")
    # Without a number the first that failed; a task by its id alone; a run by `last` or by its folder.
    first = told(red, "show", "last", "--task", "first")
    assert first.startswith(f"golden/first, trial 0  suites/golden/first.yaml:3\nrun {run.name}\n")
    assert told(red, "show", f".passgate/runs/{run.name}", "--task", "first") == first


def test_programs_get_a_trial_whole(red: Scenario) -> None:
    shown = told(red, "show", "last", "--task", "first", "--format", "json")
    assert shown == told(red, "show", "last", "--task", "first", "--json")
    document = json.loads(shown)
    assert (document["trial"]["status"], document["trial"]["trial"]) == ("failed", 0)
    assert document["transcript"]["messages"][0]["content"] == "Write a.txt."


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("last",), "last is not a file, but the run {run}: name a task of it with --task"),
        (("last", "--trial", "1"), "--trial needs the task: passgate show RUN --task TASK --trial N"),
        (("last", "last", "--task", "first"), "--task needs one run and not 2 names"),
        (("last", "--task", "frst"), "has no task 'frst'; did you mean 'first'?"),
        (("last", "--task", "zzz"), "has no task 'zzz'; known: golden/first, golden/second"),
        (("last", "--task", "first", "--trial", "7"), "no trial 7 in this run: it has 0 (failed), 1 (failed)"),
        (("suites", "--task", "first"), "no run 'suites' in .passgate/runs; the newest is {run}"),
    ],
)
def test_what_a_run_does_not_have_is_bad_usage(red: Scenario, arguments: tuple[str, ...], message: str) -> None:
    (run,) = red.run_folders()
    assert message.format(run=run.name) in refused(red, "show", *arguments)
