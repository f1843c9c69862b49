"""`passgate try`: one trial with everything that was said."""

import pytest

from tests.cli.commands import refused, told
from tests.gates import WRITES_OK, agent_file
from tests.project import Project
from tests.unit.agents import agent_server

REPEATS = "def agent(attempt):\n    return attempt.prompt.lower()\n"
TWO_TESTS = """
tests:
  - {id: agree, input: Say yes., assert: [{type: contains, value: "yes"}]}
  - {id: deny, input: Say no., assert: [{type: contains, value: "no"}, {type: code_judge, script: [./gone.py]}]}
"""


@pytest.fixture
def task(bare_project: Project) -> Project:
    bare_project.write("suites/golden/a.yaml", WRITES_OK.format(name="a"))
    return bare_project


def test_the_transcript_the_checks_and_the_status_are_shown(task: Project) -> None:
    agent = agent_file(
        task,
        """
        def agent(attempt):
            (attempt.workspace / "result.txt").write_text("okay")
            return {"messages": [{"role": "assistant", "content": "I wrote it. \\x1b[31m",
                                  "tool_calls": [{"tool": "write", "arguments": {"path": "result.txt"}}]}]}
        """,
    )
    result = task.passgate("try", "suites/golden/a.yaml", *agent)
    assert result.returncode == 1
    for shown in ("I wrote it.", 'write {"path": "result.txt"}', "✗", "FAILED"):
        assert shown in result.stdout
    assert "\x1b" not in result.stdout
    assert not (task.path / ".passgate").exists(), "nothing is recorded"


def test_a_task_without_a_reference_cannot_be_tried_by_the_oracle(task: Project) -> None:
    result = task.passgate("try", "suites/golden/a.yaml")
    assert result.returncode == 3
    assert "reference" in result.stdout


def test_of_a_file_with_several_tests_one_is_chosen(bare_project: Project) -> None:
    bare_project.write("suites/golden/chat.eval.yaml", TWO_TESTS)
    tried = ("try", "suites/golden/chat.eval.yaml", *agent_file(bare_project, REPEATS))
    assert "golden/chat/agree" in told(bare_project, *tried, "--task", "agree")
    told(bare_project, *tried, "--task", "chat/agree")
    for options, message in (
        ((), "has 2 tasks: choose one with --task; known: chat/agree, chat/deny"),
        (("--task", "chat/agre"), "no task 'chat/agre'; did you mean 'chat/agree'?"),
        (("--task", "deny"), "suites/golden/chat.eval.yaml:4:99: tests[1].assert[1].script"),
    ):
        assert message in refused(bare_project, *tried, *options)


def test_a_task_is_tried_by_the_name_that_reports_print(task: Project) -> None:
    task.write("suites/golden/chat.eval.yaml", TWO_TESTS)
    task.write("suites/golden/broken.yaml", "task_id: [")
    agent = agent_file(task, REPEATS)
    assert "golden/chat/agree" in told(task, "try", "golden/chat/agree", *agent)
    assert task.passgate("try", "golden/a", *agent).returncode == 1
    (task.path / "suites").rename(task.path / "evals")
    assert task.passgate("try", "golden/a", *agent, "--suites", "evals").returncode == 1
    said = refused(task, "try", "golden/b", *agent, "--suites", "evals")
    assert "no task 'golden/b' in evals; did you mean 'golden/a'?" in said
    said = refused(task, "try", "golden/a", *agent)
    assert "no task file golden/a, and no suites folder suites with a task of this name" in said


def test_a_crash_of_a_python_agent_is_shown_with_its_last_frames(task: Project) -> None:
    agent = agent_file(
        task,
        """
        def look(order):
            raise LookupError(f"no order {order}")
        def agent(attempt):
            return look(17)
        """,
    )
    result = task.passgate("try", "golden/a", *agent)
    assert (result.returncode, result.stderr) == (1, "")
    assert "transcript  crashed, " in result.stdout
    shown = " ".join(result.stdout.replace("│", "").split())  # long paths wrap the lines
    for said in ("the agent crashed: LookupError: no order 17", "line 5, in agent", "line 3, in look"):
        assert said in shown


def test_an_answer_of_a_wrong_type_has_completed_nothing(task: Project) -> None:
    result = task.passgate("try", "golden/a", *agent_file(task, "def agent(attempt):\n    return 3\n"))
    assert (result.returncode, result.stderr) == (1, "")
    assert "transcript  unreadable" in result.stdout
    assert "completed" not in result.stdout
    assert "the agent gave int, not a text or a transcript" in result.stdout


def test_an_endpoint_that_answers_500_has_completed_nothing(task: Project) -> None:
    with agent_server.running_agent() as server:
        server.replies = [agent_server.Says({"error": "no memory left"}, status=500)]
        result = task.passgate("try", "golden/a", "--agent", server.url)
    assert (result.returncode, result.stderr) == (3, "")
    assert "transcript  broken off" in result.stdout
    assert "completed" not in result.stdout
    for said in ("answered 500", "no memory left"):
        assert said in result.stdout
