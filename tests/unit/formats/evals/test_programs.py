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


@pytest.mark.parametrize(
    ("command", "said", "runs", "cwd"),
    [
        ("python ./graders/a.py", {}, ("sh", "-c", "python ./graders/a.py"), ".."),
        (["python", "./graders/a.py"], {}, ("python", "./graders/a.py"), ".."),
        (["python", "/tools/a.py", "/dev/null"], {}, ("python", "../tools/a.py", "/dev/null"), "."),
        (["python", "x.py", "/tools/a.py"], {"cwd": "../tools/x"}, ("python", "x.py", "../a.py"), "../tools/x"),
    ],
)
def test_it_runs_in_the_nearest_folder_with_its_scripts_unless_it_says_where(
    tmp_path: Path, command: Any, said: dict[str, str], runs: tuple[str, ...], cwd: str
) -> None:
    graders = code(tmp_path, command, "graders/a.py", "tools/a.py", "tools/x/x.py", **said)
    assert (graders.one.command, graders.one.cwd, graders.cannot_run) == (runs, cwd, [])


@pytest.mark.parametrize(
    ("command", "said", "cannot_run"),
    [
        (["python", "x.py"], {}, [".command: no file 'x.py' in '.'"]),
        (["uv", "run", "./x.ts"], {}, [".command: no file './x.ts' in '.'"]),
        ("bun x.mts --fast", {}, [".command: no file 'x.mts' in '.'"]),
        (["./judge"], {}, [".command: no file './judge' in '.'"]),
        (["node", "/no/such/x.js"], {}, [".command: no file '/no/such/x.js' in '.'"]),
        (["python", "b.py"], {"cwd": "../tools"}, [".command: no file 'b.py' in '../tools'"]),
        (["true"], {"cwd": "nowhere"}, [".cwd: no file 'nowhere'"]),
        (["true"], {"cwd": "EVAL.yaml"}, [".cwd: 'EVAL.yaml' is not a folder"]),
        (["python", "-c", "print(x.py)"], {}, []),
        (["cat", "answer.txt"], {}, []),
        (["sh", "-c", "echo $HOME/x.sh"], {}, []),
        ("echo 'unfinished", {}, []),
    ],
)
def test_a_missing_script_or_folder_keeps_the_test_from_running(
    tmp_path: Path, command: Any, said: dict[str, str], cannot_run: list[str]
) -> None:
    assert code(tmp_path, command, "tools/a.py", **said).cannot_run == [f"[0]{problem}" for problem in cannot_run]


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ([], ": must not be empty"),
        (" ", ": must not be empty"),
        (["a", 1], "[1]: expected a text, not 1"),
        (3, ": expected a text or a list, not 3"),
        (["a", ""], "[1]: must not be empty"),
        (["python", "../../outside.py"], ": '../../outside.py' leaves the repository"),
    ],
)
def test_a_wrong_command_is_refused(tmp_path: Path, command: Any, problem: str) -> None:
    (tmp_path / "outside.py").touch()
    assert code(tmp_path / "repository", command).problems == [f"[0].command{problem}"]


WORD_COUNT = (".agentv/assertions/word-count.ts",)


def of(tmp_path: Path, *names: str, type_name: str = "word-count", **said: Any) -> CodeGrader:
    grader = read(tmp_path, {"type": type_name, **said}, files=dict.fromkeys(names, "a")).one
    assert isinstance(grader, CodeGrader)
    return grader


def test_a_type_is_the_name_of_a_program_near_the_file_and_other_keys_are_its_configuration(tmp_path: Path) -> None:
    said: dict[str, Any] = {"weight": 2, "required": True, "min_score": 0.5}
    grader = of(tmp_path, *WORD_COUNT, min_words=3, config={"language": "en"}, **said)
    assert grader == CodeGrader(
        type="code_grader",
        name="word-count",
        command=("bun", "run", ".agentv/assertions/word-count.ts"),
        cwd="..",
        config={"min_words": 3, "language": "en"},
        **said,
    )
    assert of(tmp_path, *WORD_COUNT, name="words").name == "words"


@pytest.mark.parametrize("name", ["assertions/word-count.js", "graders/word-count.mts", "judges/word-count.mjs"])
def test_each_folder_and_ending_of_agentv_is_looked_at(tmp_path: Path, name: str) -> None:
    assert of(tmp_path, f".agentv/{name}").command == ("bun", "run", f".agentv/{name}")


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
