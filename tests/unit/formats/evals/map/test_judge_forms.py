"""Graders that ask a judge, and those that are programs."""

from pathlib import Path
from typing import Any

import pytest

from passgate.tasks.model.assertions import CodeGrader, Criterion, LlmGrader, Rubrics
from tests.unit.formats.evals.grader_lists import read


def test_a_prompt_of_several_lines_is_the_prompt(tmp_path: Path) -> None:
    prompt = "Look at ./notes.md\nand {{answer}}"
    assert read(tmp_path, {"type": "llm_judge", "prompt": prompt}).one == LlmGrader(type="llm_grader", prompt=prompt)


@pytest.mark.parametrize("path", ["./p/a.md", "p/a.md", "../evals/p/a.md", "file://p/a.md", "/evals/p/a.md", "a.md"])
def test_a_prompt_that_is_a_path_is_read(tmp_path: Path, path: str) -> None:
    files = {"evals/p/a.md": "Is {{answer}} good?\n", "a.md": "Is {{answer}} good?\n"}
    graders = read(tmp_path, {"type": "llm-grader", "prompt": path}, files=files)
    assert graders.one.prompt == "Is {{answer}} good?\n"
    assert graders.one.prompt_file == ("../a.md" if path == "a.md" else "p/a.md")
    assert graders.cannot_run == []


@pytest.mark.parametrize("path", ["./missing.md", "missing.md", "file://missing"])
def test_a_missing_prompt_keeps_the_test_from_running(tmp_path: Path, path: str) -> None:
    graders = read(tmp_path, {"type": "llm_judge", "prompt": path, "name": "q"})
    assert graders.one == LlmGrader(type="llm_grader", name="q")
    assert graders.cannot_run == [f"[0].prompt: no file {path.removeprefix('file://')!r}"]


@pytest.mark.parametrize("prompt", ["See the file a.md", "Rate it from 1/5 to 5/5.", "{{output}}.md"])
def test_other_texts_are_prompts(tmp_path: Path, prompt: str) -> None:
    graders = read(tmp_path, {"type": "llm_judge", "prompt": prompt})
    assert graders.one.prompt == prompt
    assert graders.cannot_run == []


def test_a_prompt_outside_of_the_repository_is_refused(tmp_path: Path) -> None:
    graders = read(tmp_path, {"type": "llm_judge", "prompt": "../../etc/a.md"})
    assert graders.problems == ["[0].prompt: '../../etc/a.md' leaves the repository"]


@pytest.mark.parametrize("prompt", [{"command": ["bun", "p.ts"], "config": {}}, "./prompt.ts", "file://prompt.py:make"])
def test_a_prompt_that_a_program_makes_keeps_the_test_from_running(tmp_path: Path, prompt: Any) -> None:
    graders = read(tmp_path, {"type": "llm-grader", "prompt": prompt})
    assert graders.one == LlmGrader(type="llm_grader")
    assert len(graders.cannot_run) == 1
    assert graders.cannot_run[0].startswith("[0].prompt: a prompt that a program makes is not to be had")


def test_a_folder_is_no_prompt(tmp_path: Path) -> None:
    graders = read(tmp_path, {"type": "llm-grader", "prompt": "./p"}, files={"evals/p/a": ""})
    assert graders.cannot_run == ["[0].prompt: './p' is no file"]


def test_the_value_of_a_rubric_is_its_criteria(tmp_path: Path) -> None:
    said = {"type": "llm-rubric", "value": "Says {{ expected_output }}.", "threshold": 0.7, "provider": "openai:gpt"}
    assert read(tmp_path, said).one == LlmGrader(
        type="llm_grader", criteria="Says {{ expected_output }}.", target="openai:gpt", min_score=0.7
    )


def test_items_make_a_rubric(tmp_path: Path) -> None:
    criteria = (Criterion(id="rubric-1", outcome="a"), Criterion(id="b", outcome="c", required=True))
    items = ["a", {"id": "b", "outcome": "c", "required": True}]
    for said in (
        {"type": "llm-rubric", "value": items},
        {"type": "llm-grader", "rubrics": items},
        {"type": "llm_judge", "criteria": items},
    ):
        assert read(tmp_path, {**said, "prompt": "Mark {{rubrics}}", "target": "j"}).one == Rubrics(
            type="rubrics", criteria=criteria, prompt="Mark {{rubrics}}", target="j"
        )


def test_items_stand_in_one_place(tmp_path: Path) -> None:
    graders = read(tmp_path, {"type": "llm-grader", "rubrics": ["a"], "criteria": ["b"]})
    assert graders.problems == ["[0].rubrics: 'criteria' holds the items of the rubric too; keep one"]


def test_the_settings_of_a_judge_are_kept(tmp_path: Path) -> None:
    said = {"type": "llm_judge", "prompt": "a b", "config": {"temperature": 0}, "max_steps": 5, "model": "m"}
    assert read(tmp_path, said).one.config == {"temperature": 0, "max_steps": 5, "model": "m"}


@pytest.mark.parametrize("key", ["preprocessors", "transform"])
def test_what_passgate_has_not_for_judges_keeps_the_test_from_running(tmp_path: Path, key: str) -> None:
    graders = read(tmp_path, {"type": "llm-grader", key: "file://x.ts"})
    assert graders.cannot_run == [f"[0].{key}: passgate has no {key!r} for judges"]
    assert isinstance(graders.one, LlmGrader)


def test_a_code_grader_is_a_command_with_its_config(tmp_path: Path) -> None:
    said = {"type": "code_judge", "script": ["python", "./judge.py"], "expected_tools": ["a"], "config": {"limit": 3}}
    graders = read(tmp_path, said, files={"evals/judge.py": ""})
    assert graders.one == CodeGrader(
        type="code_grader", command=("python", "./judge.py"), config={"expected_tools": ["a"], "limit": 3}
    )
    assert graders.cannot_run == []


def test_a_misspelt_key_of_a_code_grader_is_not_for_its_config(tmp_path: Path) -> None:
    graders = read(tmp_path, {"type": "code-grader", "command": ["true"], "requred": True})
    assert graders.problems == ["[0].requred: unknown key; did you mean 'required'?"]


def test_a_proxy_for_model_calls_is_not_to_be_had(tmp_path: Path) -> None:
    graders = read(tmp_path, {"type": "code-grader", "command": ["true"], "target": {"max_calls": 3}})
    assert graders.one == CodeGrader(type="code_grader", command=("true",))
    assert graders.cannot_run == ["[0].target: a proxy for the model calls of a grader is not to be had"]
