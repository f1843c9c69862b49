"""Assertions of a repository are code graders, which `bun` runs as AgentV does."""

from pathlib import Path
from typing import Any

import pytest

from passgate.tasks.model.assertions import CodeGrader
from tests.unit.formats.evals.grader_lists import read

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


@pytest.mark.parametrize("name", ["../word-count", "a b", "w" * 200, "\0"])
def test_a_type_that_can_be_no_file_name_is_an_unknown_type(tmp_path: Path, name: str) -> None:
    assert "unknown evaluator" in read(tmp_path, {"type": name}).problems[0]
