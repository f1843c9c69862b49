"""Graders that are programs, also those of `.agentv/`."""

from pathlib import Path
from typing import Any

import pytest

from passgate.tasks.model.assertions import CodeGrader
from tests.unit.formats.evals.grader_lists import Graders, read


def code(root: Path, command: Any, *files: str, **more: Any) -> Graders:
    assertion = {"type": "code-grader", "command": command, **more}
    return read(root, assertion, files=dict.fromkeys(files, ""))


def test_a_text_is_for_a_shell_and_it_runs_in_the_folder_of_its_file(tmp_path: Path) -> None:
    assert code(tmp_path, "grep a | wc -l").one.command == ("sh", "-c", "grep a | wc -l")
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


WORD_COUNT = {".agentv/assertions/word-count.ts": "a"}


def of(tmp_path: Path, *names: str, type_name: str = "word-count", **said: Any) -> CodeGrader:
    grader = read(tmp_path, {"type": type_name, **said}, files=dict.fromkeys(names, "a")).one
    assert isinstance(grader, CodeGrader)
    return grader


def test_a_type_is_the_name_of_a_program_near_the_file(tmp_path: Path) -> None:
    assert of(tmp_path, ".agentv/assertions/word-count.ts", weight=2, required=True) == CodeGrader(
        type="code_grader",
        name="word-count",
        command=("bun", "run", ".agentv/assertions/word-count.ts"),
        cwd="..",
        weight=2,
        required=True,
    )


@pytest.mark.parametrize("suffix", ["ts", "js", "mts", "mjs"])
@pytest.mark.parametrize("folder", ["assertions", "graders", "judges"])
def test_each_folder_and_ending_of_agentv_is_looked_at(tmp_path: Path, folder: str, suffix: str) -> None:
    name = f".agentv/{folder}/word-count.{suffix}"
    assert of(tmp_path, name).command == ("bun", "run", name)


def test_the_nearest_counts_and_assertions_before_graders(tmp_path: Path) -> None:
    above, near = ".agentv/assertions/word-count.ts", "evals/.agentv/assertions/word-count.js"
    grader = of(tmp_path, above, near)
    assert (grader.cwd, grader.command[2]) == (".", ".agentv/assertions/word-count.js")
    (tmp_path / near).unlink()
    assert of(tmp_path, above, "evals/.agentv/graders/word-count.ts").cwd == ".."


def test_underscores_stand_for_hyphens_and_not_negates(tmp_path: Path) -> None:
    assert of(tmp_path, *WORD_COUNT, type_name="word_count").name == "word_count"
    negated = of(tmp_path, *WORD_COUNT, type_name="not-word-count")
    assert (negated.negate, negated.command[2]) == (True, ".agentv/assertions/word-count.ts")
    own = of(tmp_path, ".agentv/assertions/not-empty.ts", type_name="not-empty")
    assert (own.negate, own.command[2]) == (False, ".agentv/assertions/not-empty.ts")


def test_its_other_keys_are_its_configuration(tmp_path: Path) -> None:
    grader = of(tmp_path, *WORD_COUNT, min_words=3, config={"language": "en"}, name="words", min_score=0.5)
    assert grader.config == {"min_words": 3, "language": "en"}
    assert (grader.name, grader.min_score) == ("words", 0.5)


@pytest.mark.parametrize(("type_name", "said"), [("contains", {"value": "a"}), ("tool_calls", {"forbidden": ["rm"]})])
def test_no_program_takes_the_name_of_a_type(tmp_path: Path, type_name: str, said: dict[str, Any]) -> None:
    known = read(tmp_path, {"type": type_name, **said}, files={f".agentv/assertions/{type_name}.ts": "a"})
    assert known.one.type == type_name


@pytest.mark.parametrize("name", ["word-count.py", "word-count.cts", "word-count", "word-count/index.ts"])
def test_what_agentv_does_not_run_is_an_unknown_type(tmp_path: Path, name: str) -> None:
    unknown = read(tmp_path, {"type": "word-count"}, files={f".agentv/assertions/{name}": "a"})
    assert unknown.graders == ()
    assert unknown.problems[0].startswith("[0].type: unknown evaluator 'word-count'; known: assert-set, ")
    for kind in ("../word-count", "a b", "w" * 200, "\0"):
        assert "unknown evaluator" in read(tmp_path, {"type": kind}).problems[0]
