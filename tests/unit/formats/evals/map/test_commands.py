"""Commands of code graders."""

from pathlib import Path
from typing import Any

import pytest

from tests.unit.formats.evals.grader_lists import Graders, read


def code(root: Path, command: Any, *files: str, **more: Any) -> Graders:
    assertion = {"type": "code-grader", "command": command, **more}
    return read(root, assertion, files=dict.fromkeys(files, ""))


def test_a_text_is_for_a_shell(tmp_path: Path) -> None:
    assert code(tmp_path, "grep a | wc -l").one.command == ("sh", "-c", "grep a | wc -l")


def test_it_runs_in_the_folder_of_its_file(tmp_path: Path) -> None:
    one = code(tmp_path, ["node", "../scripts/a.js"], "scripts/a.js").one
    assert (one.command, one.cwd) == (("node", "../scripts/a.js"), ".")


@pytest.mark.parametrize("command", [["python", "./graders/a.py"], "python ./graders/a.py"])
def test_it_runs_in_the_nearest_folder_above_that_has_its_scripts(tmp_path: Path, command: Any) -> None:
    graders = code(tmp_path, command, "graders/a.py")
    assert graders.one.cwd == ".."
    assert graders.cannot_run == []


def test_it_runs_where_it_says(tmp_path: Path) -> None:
    graders = code(tmp_path, ["python", "a.py"], "tools/a.py", cwd="../tools")
    assert graders.one.cwd == "../tools"
    assert graders.cannot_run == []
    assert code(tmp_path, ["python", "b.py"], cwd="../tools").cannot_run == [
        "[0].command: no file 'b.py' in '../tools'"
    ]
    assert code(tmp_path, ["true"], cwd="nowhere").cannot_run == ["[0].cwd: no file 'nowhere'"]
    assert code(tmp_path, ["true"], cwd="EVAL.yaml").cannot_run == ["[0].cwd: 'EVAL.yaml' is not a folder"]


@pytest.mark.parametrize(
    "command", [["python", "x.py"], ["uv", "run", "./x.ts"], "bun x.mts --fast", ["./judge"], ["node", "/no/such/x.js"]]
)
def test_a_missing_script_keeps_the_test_from_running(tmp_path: Path, command: Any) -> None:
    graders = code(tmp_path, command)
    assert graders.one.cwd == "."
    (found,) = graders.cannot_run
    assert found.startswith("[0].command: no file ")


def test_an_absolute_script_is_absolute_in_the_repository(tmp_path: Path) -> None:
    graders = code(tmp_path, ["python", "/shared/a.py", "/dev/null"], "shared/a.py")
    assert graders.one.command == ("python", "../shared/a.py", "/dev/null")
    assert graders.cannot_run == []
    moved = code(tmp_path, ["python", "/shared/a.py"], "shared/a.py", "tools/x/a", cwd="../tools/x")
    assert (moved.one.command, moved.one.cwd) == (("python", "../../shared/a.py"), "../tools/x")


@pytest.mark.parametrize(
    "command",
    [
        ["python", "-c", "print(x.py)"],
        ["python", "-m", "tool.py"],
        ["cat", "answer.txt"],
        ["sh", "-c", "echo $HOME/x.sh"],
        "echo 'unfinished",
    ],
)
def test_other_words_are_not_taken_for_scripts(tmp_path: Path, command: Any) -> None:
    assert code(tmp_path, command).cannot_run == []


def test_a_script_outside_of_the_repository_is_refused(tmp_path: Path) -> None:
    (tmp_path / "outside.py").touch()
    graders = code(tmp_path / "repository", ["python", "../../outside.py"])
    assert graders.problems == ["[0].command: '../../outside.py' leaves the repository"]


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ([], "[0].command: must not be empty"),
        (" ", "[0].command: must not be empty"),
        (["a", 1], "[0].command[1]: expected a text, not 1"),
        (3, "[0].command: expected a text or a list, not 3"),
        (["a", ""], "[0].command[1]: must not be empty"),
    ],
)
def test_a_wrong_command_is_refused(tmp_path: Path, command: Any, problem: str) -> None:
    assert code(tmp_path, command).problems == [problem]
