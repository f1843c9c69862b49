"""`passgate show`: files of every dialect in one form."""

import json

import yaml

from tests.conftest import Project

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


def test_an_eval_file_is_shown_as_the_task_that_is_run(bare_project: Project) -> None:
    bare_project.write("golden/chat.eval.yaml", EVAL)
    result = bare_project.passgate("show", "golden/chat.eval.yaml")
    assert (result.returncode, result.stderr) == (0, "")
    assert "criteria: |\n  Greets.\n  Is kind.\n" in result.stdout
    (task,) = yaml.safe_load_all(result.stdout)
    assert (task["task_id"], task["suite"], task["k"], task["metric"]) == ("chat/greet", "golden", 3, "pass^k")
    assert task["inputs"]["messages"][1] == {"role": "user", "content": "I am Ann."}
    assert task["graders"] == [{"type": "contains", "value": "Ann"}]
    assert task["budgets"] == {"max_steps": 20, "max_seconds": 30.0}
    assert task["scoring"] == {"rule": "weighted_average"}
    assert "reference" not in task
    assert "task_digest" not in task


def test_programs_get_every_field(bare_project: Project) -> None:
    bare_project.write("golden/chat.eval.yaml", EVAL)
    (task,) = json.loads(bare_project.passgate("show", "--json", "golden").stdout)
    assert (task["line"], task["reference"], task["scoring"]["threshold"]) == (7, None, 0.8)
    assert len(task["task_digest"]) == 64


def test_what_a_terminal_would_obey_is_only_shown(bare_project: Project) -> None:
    bare_project.write("golden/chat.eval.yaml", EVAL.replace("I am Ann.", "\\x1b[2J \u202e Ann"))
    shown = bare_project.passgate("show", "golden").stdout
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    (task,) = yaml.safe_load_all(shown)
    assert task["inputs"]["messages"][1]["content"] == "\x1b[2J \u202e Ann"


def test_problems_are_shown_instead_of_tasks(bare_project: Project) -> None:
    bare_project.write("golden/chat.eval.yaml", EVAL.replace("criteria", "critera"))
    result = bare_project.passgate("show", "golden")
    assert (result.returncode, result.stdout) == (2, "")
    assert "golden/chat.eval.yaml:8:5: tests[0].critera: unknown key; did you mean 'criteria'?" in result.stderr


def test_what_does_not_exist_is_bad_usage(bare_project: Project) -> None:
    result = bare_project.passgate("show", "nowhere")
    assert result.returncode == 2
    assert "no file or folder nowhere" in result.stderr
