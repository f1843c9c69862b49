"""`passgate try`: one trial with everything that was said."""

import pytest

from tests.cli.commands import Here, exits, refused, told
from tests.gates import WRITES_OK, agent_file

REPEATS = "def agent(attempt):\n    return attempt.prompt.lower()\n"
TWO_TESTS = """
tests:
  - {id: agree, input: Say yes., assert: [{type: contains, value: "yes"}]}
  - {id: deny, input: Say no., assert: [{type: contains, value: "no"}, {type: code_judge, script: [./gone.py]}]}
"""


@pytest.fixture
def task(here: Here) -> Here:
    here.write("suites/golden/a.yaml", WRITES_OK.format(name="a"))
    return here


def test_the_transcript_the_checks_and_the_status_are_shown(task: Here) -> None:
    agent = agent_file(
        task,
        """
        def agent(attempt):
            (attempt.workspace / "result.txt").write_text("okay")
            return {"messages": [{"role": "assistant", "content": "I wrote it. \\x1b[31m",
                                  "tool_calls": [{"tool": "write", "arguments": {"path": "result.txt"}}]}]}
        """,
    )
    shown = exits(task, 1, "try", "suites/golden/a.yaml", *agent).stdout
    for said in ("I wrote it.", 'write {"path": "result.txt"}', "✗", "FAILED"):
        assert said in shown
    assert "\x1b" not in shown
    assert not (task.path / ".passgate").exists(), "nothing is recorded"


def test_a_task_without_a_reference_cannot_be_tried_by_the_oracle(task: Here) -> None:
    assert "reference" in exits(task, 3, "try", "suites/golden/a.yaml").stdout


def test_of_a_file_with_several_tests_one_is_chosen(here: Here) -> None:
    here.write("suites/golden/chat.eval.yaml", TWO_TESTS)
    tried = ("try", "suites/golden/chat.eval.yaml", *agent_file(here, REPEATS))
    assert "golden/chat/agree" in told(here, *tried, "--task", "agree")
    told(here, *tried, "--task", "chat/agree")
    for options, message in (
        ((), "has 2 tasks: choose one with --task; known: chat/agree, chat/deny"),
        (("--task", "chat/agre"), "no task 'chat/agre'; did you mean 'chat/agree'?"),
        (("--task", "deny"), "suites/golden/chat.eval.yaml:4:99: tests[1].assert[1].script"),
    ):
        assert message in refused(here, *tried, *options)


def test_a_task_is_tried_by_the_name_that_reports_print(task: Here) -> None:
    task.write("suites/golden/chat.eval.yaml", TWO_TESTS)
    task.write("suites/golden/broken.yaml", "task_id: [")
    agent = agent_file(task, REPEATS)
    assert "golden/chat/agree" in told(task, "try", "golden/chat/agree", *agent)
    exits(task, 1, "try", "golden/a", *agent)
    assert "suites/golden/broken.yaml:2:1: not valid YAML" in refused(task, "try", "golden/broken", *agent)
    (task.path / "suites").rename(task.path / "evals")
    exits(task, 1, "try", "golden/a", *agent, "--suites", "evals")
    said = refused(task, "try", "golden/b", *agent, "--suites", "evals")
    assert "no task 'golden/b' in evals; did you mean 'golden/a'?" in said
    said = refused(task, "try", "golden/a", *agent)
    assert "no task file golden/a, and no suites folder suites with a task of this name" in said
