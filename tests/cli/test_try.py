"""`passgate try`: one trial with everything that was said."""

import subprocess

from tests.cli.test_run import WRITES_OK, agent_file
from tests.project import Project
from tests.unit.agents import agent_server


def test_the_transcript_the_checks_and_the_status_are_shown(bare_project: Project) -> None:
    bare_project.write("suites/golden/a.yaml", WRITES_OK.format(name="a"))
    agent_file(
        bare_project,
        """
        def agent(attempt):
            (attempt.workspace / "result.txt").write_text("okay")
            return {"messages": [{"role": "assistant", "content": "I wrote it. \\x1b[31m",
                                  "tool_calls": [{"tool": "write", "arguments": {"path": "result.txt"}}]}]}
        """,
    )
    result = bare_project.passgate("try", "suites/golden/a.yaml", "--agent", "python:agent:agent")
    assert result.returncode == 1
    assert "I wrote it." in result.stdout
    assert 'write {"path": "result.txt"}' in result.stdout
    assert "✗" in result.stdout
    assert "FAILED" in result.stdout
    assert "\x1b" not in result.stdout
    assert not (bare_project.path / ".passgate").exists(), "nothing is recorded"


def test_a_task_without_a_reference_cannot_be_tried_by_the_oracle(bare_project: Project) -> None:
    bare_project.write("suites/golden/a.yaml", WRITES_OK.format(name="a"))
    result = bare_project.passgate("try", "suites/golden/a.yaml")
    assert result.returncode == 3
    assert "reference" in result.stdout


TWO_TESTS = """
tests:
  - {id: agree, input: Say yes., assert: [{type: contains, value: "yes"}]}
  - {id: deny, input: Say no., assert: [{type: contains, value: "no"}, {type: code_judge, script: [./gone.py]}]}
"""


def test_of_a_file_with_several_tests_one_is_chosen(bare_project: Project) -> None:
    bare_project.write("suites/golden/chat.eval.yaml", TWO_TESTS)
    agent_file(bare_project, "def agent(attempt):\n    return attempt.prompt.lower()\n")

    def tried(*options: str):
        return bare_project.passgate("try", "suites/golden/chat.eval.yaml", "--agent", "python:agent:agent", *options)

    result = tried("--task", "agree")
    assert (result.returncode, result.stderr) == (0, "")
    assert "golden/chat/agree" in result.stdout
    assert tried("--task", "chat/agree").returncode == 0
    result = tried()
    assert result.returncode == 2
    assert "has 2 tasks: choose one with --task; known: chat/agree, chat/deny" in result.stderr
    result = tried("--task", "chat/agre")
    assert result.returncode == 2
    assert "no task 'chat/agre'; did you mean 'chat/agree'?" in result.stderr
    result = tried("--task", "deny")
    assert result.returncode == 2
    assert "suites/golden/chat.eval.yaml:4:99: tests[1].assert[1].script" in result.stderr


def test_a_task_is_tried_by_the_name_that_reports_print(bare_project: Project) -> None:
    bare_project.write("suites/golden/chat.eval.yaml", TWO_TESTS)
    bare_project.write("suites/golden/a.yaml", WRITES_OK.format(name="a"))
    bare_project.write("suites/golden/broken.yaml", "task_id: [")
    agent_file(bare_project, "def agent(attempt):\n    return attempt.prompt.lower()\n")

    def tried(*arguments: str):
        return bare_project.passgate("try", *arguments, "--agent", "python:agent:agent")

    result = tried("golden/chat/agree")
    assert (result.returncode, result.stderr) == (0, "")
    assert "golden/chat/agree" in result.stdout
    assert tried("golden/a").returncode == 1
    (bare_project.path / "suites").rename(bare_project.path / "evals")
    assert tried("golden/a", "--suites", "evals").returncode == 1
    result = tried("golden/b", "--suites", "evals")
    assert result.returncode == 2
    assert "no task 'golden/b' in evals; did you mean 'golden/a'?" in result.stderr
    result = tried("golden/a")
    assert result.returncode == 2
    assert "no task file golden/a, and no suites folder suites with a task of this name" in result.stderr


def tried(project: Project, agent: str) -> subprocess.CompletedProcess[str]:
    project.write("suites/golden/a.yaml", WRITES_OK.format(name="a"))
    return project.passgate("try", "suites/golden/a.yaml", "--agent", agent)


def test_a_crash_of_a_python_agent_is_shown_with_its_last_frames(bare_project: Project) -> None:
    agent_file(
        bare_project,
        """
        def look(order):
            raise LookupError(f"no order {order}")
        def agent(attempt):
            return look(17)
        """,
    )
    result = tried(bare_project, "python:agent:agent")
    assert (result.returncode, result.stderr) == (1, "")
    assert "transcript  crashed, " in result.stdout
    shown = " ".join(result.stdout.replace("│", "").split())  # long paths wrap the lines
    assert "the agent crashed: LookupError: no order 17" in shown
    assert "line 5, in agent" in shown
    assert "line 3, in look" in shown


def test_an_answer_of_a_wrong_type_has_completed_nothing(bare_project: Project) -> None:
    agent_file(bare_project, "def agent(attempt):\n    return 3\n")
    result = tried(bare_project, "python:agent:agent")
    assert (result.returncode, result.stderr) == (1, "")
    assert "transcript  unreadable" in result.stdout
    assert "completed" not in result.stdout
    assert "the agent gave int, not a text or a transcript" in result.stdout


def test_an_endpoint_that_answers_500_has_completed_nothing(bare_project: Project) -> None:
    with agent_server.running_agent() as server:
        server.replies = [agent_server.Says({"error": "no memory left"}, status=500)]
        result = tried(bare_project, server.url)
    assert (result.returncode, result.stderr) == (3, "")
    assert "transcript  broken off" in result.stdout
    assert "completed" not in result.stdout
    assert "answered 500" in result.stdout
    assert "no memory left" in result.stdout
