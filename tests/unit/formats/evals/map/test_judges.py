"""Graders that ask a judge: settings, prompts, the items of rubrics."""

from pathlib import Path
from typing import Any

import pytest

from passgate.tasks.model.assertions import CodeGrader, Criterion, LlmGrader, Rubrics, ScoreRange
from tests.unit.formats.evals.grader_lists import Graders, read


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


@pytest.mark.parametrize("prompt", ["See the file a.md", "Rate it from 1/5 to 5/5.", "{{output}}.md"])
def test_other_texts_are_prompts(tmp_path: Path, prompt: str) -> None:
    graders = read(tmp_path, {"type": "llm_judge", "prompt": prompt})
    assert graders.one.prompt == prompt
    assert graders.cannot_run == []


BY_A_PROGRAM = "[0].prompt: a prompt that a program makes is not to be had"


@pytest.mark.parametrize(
    ("said", "cannot_run"),
    [
        ({"prompt": "./missing.md"}, "[0].prompt: no file './missing.md'"),
        ({"prompt": "missing.md"}, "[0].prompt: no file 'missing.md'"),
        ({"prompt": "file://missing"}, "[0].prompt: no file 'missing'"),
        ({"prompt": "./p"}, "[0].prompt: './p' is no file"),
        ({"prompt": {"command": ["bun", "p.ts"], "config": {}}}, BY_A_PROGRAM),
        ({"prompt": "./prompt.ts"}, BY_A_PROGRAM),
        ({"prompt": "file://prompt.py:make"}, BY_A_PROGRAM),
        ({"preprocessors": "file://x.ts"}, "[0].preprocessors: passgate has no 'preprocessors' for judges"),
        ({"transform": "file://x.ts"}, "[0].transform: passgate has no 'transform' for judges"),
    ],
)
def test_what_is_not_to_be_had_keeps_the_test_from_running(
    tmp_path: Path, said: dict[str, Any], cannot_run: str
) -> None:
    graders = read(tmp_path, {"type": "llm_judge", "name": "q", **said}, files={"evals/p/a": ""})
    assert graders.one == LlmGrader(type="llm_grader", name="q")
    assert [found[: len(cannot_run)] for found in graders.cannot_run] == [cannot_run]


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ({"type": "llm_judge", "prompt": "../../etc/a.md"}, ".prompt: '../../etc/a.md' leaves the repository"),
        (
            {"type": "llm-grader", "rubrics": ["a"], "criteria": ["b"]},
            ".rubrics: 'criteria' holds the items of the rubric too; keep one",
        ),
        (
            {"type": "code-grader", "command": ["true"], "requred": True},
            ".requred: unknown key; did you mean 'required'?",
        ),
        ({"type": "rubrics", "criteria": []}, ".criteria: invalid rubric: must not be empty"),
        (
            {"type": "rubrics", "criteria": [{"id": "rubric-2", "outcome": "a"}, "b"]},
            ".criteria[1]: invalid rubric: the id 'rubric-2' stands here a second time",
        ),
    ],
)
def test_what_is_wrong_is_told(tmp_path: Path, said: dict[str, Any], problem: str) -> None:
    assert read(tmp_path, said).problems == [f"[0]{problem}"]


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


def test_the_settings_of_a_judge_are_kept(tmp_path: Path) -> None:
    said = {"type": "llm_judge", "prompt": "a b", "config": {"temperature": 0}, "max_steps": 5, "model": "m"}
    assert read(tmp_path, said).one.config == {"temperature": 0, "max_steps": 5, "model": "m"}
    targets = {"id": "m"}, {"label": "m"}, {"name": "m"}, {"temperature": 0}
    names = [read(tmp_path, {"type": "llm_judge", "target": target}).one.target for target in targets]
    assert names == ["m", "m", "m", "inline"]


def test_a_code_grader_is_a_command_with_its_config(tmp_path: Path) -> None:
    said = {"type": "code_judge", "script": ["python", "./judge.py"], "expected_tools": ["a"], "config": {"limit": 3}}
    graders = read(tmp_path, said, files={"evals/judge.py": ""})
    assert graders.one == CodeGrader(
        type="code_grader", command=("python", "./judge.py"), config={"expected_tools": ["a"], "limit": 3}
    )
    assert graders.cannot_run == []
    with_target = read(tmp_path, {"type": "code-grader", "command": ["true"], "target": {"max_calls": 3}})
    assert with_target.one == CodeGrader(type="code_grader", command=("true",))
    assert with_target.cannot_run == ["[0].target: a proxy for the model calls of a grader is not to be had"]


FIRST = "[0].criteria[0]"


def rubric(root: Path, *items: Any) -> Graders:
    return read(root, {"type": "rubrics", "criteria": list(items)})


def item(root: Path, said: Any) -> Criterion:
    (criterion,) = rubric(root, said).one.criteria
    return criterion


@pytest.mark.parametrize("key", ["outcome", "criteria", "expected_outcome", "description", "expectedOutcome"])
def test_what_must_be_so_has_several_names(tmp_path: Path, key: str) -> None:
    criteria = rubric(tmp_path, "a", {key: "b", "required": True}, {"id": "c", key: "d"}).one.criteria
    assert criteria == (
        Criterion(id="rubric-1", outcome="a"),
        Criterion(id="rubric-2", outcome="b", required=True),
        Criterion(id="c", outcome="d", required=False),
    )


def test_points_that_meet_an_item_are_a_share_and_required(tmp_path: Path) -> None:
    said = {"id": "a", "outcome": "b", "required_min_score": 7}
    assert item(tmp_path, said) == Criterion(id="a", outcome="b", min_score=0.7, required=True)
    assert item(tmp_path, {**said, "required": False}).required is False
    assert item(tmp_path, {**said, "min_score": 0.7}).min_score == 0.7


SPANS = (
    ScoreRange(low=0, high=4, outcome="bad"),
    ScoreRange(low=5, high=9, outcome="fair"),
    ScoreRange(low=10, high=10, outcome="good"),
)


@pytest.mark.parametrize(
    "ranges",
    [
        {"0": "bad", "5": "fair", "10": "good"},
        {"10": "good", "0": "bad", "5": "fair"},
        [
            {"score_range": [5, 9], "outcome": "fair"},
            {"score_range": [0, 4], "outcome": "bad"},
            {"scoreRange": [10, 10], "expected_outcome": "good"},
        ],
    ],
)
def test_spans_of_points_have_two_forms(tmp_path: Path, ranges: Any) -> None:
    assert item(tmp_path, {"id": "a", "score_ranges": ranges}) == Criterion(id="a", score_ranges=SPANS)


@pytest.mark.parametrize(
    ("ranges", "problem"),
    [
        ({"5": "a", "10": "b"}, "score_ranges: invalid rubric: the score ranges must start at 0, not at 5"),
        ({}, "score_ranges: invalid rubric: the score ranges must go up to 10"),
        ({"0": 3}, "score_ranges.0: expected a text, not 3"),
        (7, "score_ranges: expected a mapping or a list, not 7"),
        (
            {"0": "a", "0.5": "b"},
            "score_ranges.0.5: invalid rubric: a score range is named by a whole number from 0 to 10, not '0.5'",
        ),
        (
            {"0": "a", "11": "b"},
            "score_ranges.11: invalid rubric: a score range is named by a whole number from 0 to 10, not '11'",
        ),
        ({"0": "a", "00": "b"}, "score_ranges.00: invalid rubric: the score 0 stands here a second time"),
        (
            [{"score_range": [0, 5], "outcome": "a"}, {"score_range": [5, 10], "outcome": "b"}],
            "score_ranges: invalid rubric: the next must start at 6, not at 5",
        ),
        (
            [{"score_range": [0, 4], "outcome": "a"}, {"score_range": [6, 10], "outcome": "b"}],
            "score_ranges: invalid rubric: the next must start at 5, not at 6",
        ),
        ([{"score_range": [0, 9], "outcome": "a"}], "score_ranges: invalid rubric: the score ranges must go up to 10"),
        ([{"score_range": [4, 0], "outcome": "a"}], "score_ranges: invalid rubric: the span from 4 to 0 is empty"),
        (
            [{"score_range": [0], "outcome": "a"}],
            "score_ranges[0].score_range: invalid rubric: expected the lowest and the highest score",
        ),
        ([{"score_range": [0, 12], "outcome": "a"}], "score_ranges[0].score_range[1]: must be at most 10, not 12"),
        ([{"outcome": "a"}], "score_ranges[0]: the key 'score_range' is missing"),
        (["a"], 'score_ranges[0]: invalid rubric: expected a mapping, not "a"'),
    ],
)
def test_spans_must_cover_the_points_without_overlap(tmp_path: Path, ranges: Any, problem: str) -> None:
    assert rubric(tmp_path, {"id": "a", "outcome": "b", "score_ranges": ranges}).problems == [
        f"[0].criteria[0].{problem}"
    ]


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ({"id": "a"}, "[0].criteria[0]: give `outcome` or `score_ranges`"),
        ({"id": "a", "outcome": "b", "weight": -1}, "[0].criteria[0].weight: must be at least 0, not -1"),
        ({"id": "a", "outcome": "b", "min_score": 2}, "[0].criteria[0].min_score: must be at most 1, not 2"),
        ({"id": "a", "outcome": "b", "required": 1}, "[0].criteria[0].required: expected true or false, not 1"),
        (
            {"id": "a", "outcome": "b", "required_min_score": 11},
            "[0].criteria[0].required_min_score: must be from 0 to 10, not 11",
        ),
        (
            {"id": "a", "outcome": "b", "required_min_score": 5, "min_score": 0.6},
            f"{FIRST}.required_min_score: 'min_score' (of 1) and 'required_min_score' (of 10) differ; keep one of them",
        ),
        (
            {"id": "a", "outcome": "b", "criteria": "c"},
            "[0].criteria[0].criteria: 'outcome' and 'criteria' mean the same and differ; keep one of them",
        ),
        (
            {"id": "a", "outcome": "b", "operator": "contradicts"},
            "[0].criteria[0].operator: \"contradicts\" is not one of the allowed values; did you mean 'contradiction'?",
        ),
        ({"id": "a", "outcom": "b"}, "[0].criteria[0].outcom: unknown key; did you mean 'outcome'?"),
        (3, "[0].criteria[0]: invalid rubric: expected a text or a mapping, not 3"),
    ],
)
def test_a_wrong_item_is_refused(tmp_path: Path, said: Any, problem: str) -> None:
    assert rubric(tmp_path, said).problems == [problem]
