"""Graders that ask a judge: settings, prompts, the items of rubrics."""

from pathlib import Path
from typing import Any

import pytest

from passgate.tasks.model.assertions import CodeGrader, Criterion, LlmGrader, Rubrics, ScoreRange
from tests.unit.formats.evals.grader_lists import Graders, read

PROMPTS = ["Look at ./notes.md\nand {{answer}}", "See the file a.md", "Rate it from 1/5 to 5/5.", "{{output}}.md"]


@pytest.mark.parametrize("prompt", PROMPTS)
def test_other_texts_are_prompts(tmp_path: Path, prompt: str) -> None:
    graders = read(tmp_path, {"type": "llm_judge", "prompt": prompt})
    assert graders.one == LlmGrader(type="llm_grader", prompt=prompt)
    assert graders.cannot_run == []


@pytest.mark.parametrize("path", ["./p/a.md", "p/a.md", "../evals/p/a.md", "file://p/a.md", "/evals/p/a.md", "a.md"])
def test_a_prompt_that_is_a_path_is_read(tmp_path: Path, path: str) -> None:
    files = {"evals/p/a.md": "Is {{answer}} good?\n", "a.md": "Is {{answer}} good?\n"}
    graders = read(tmp_path, {"type": "llm-grader", "prompt": path}, files=files)
    assert graders.one.prompt == "Is {{answer}} good?\n"
    assert graders.one.prompt_file == ("../a.md" if path == "a.md" else "p/a.md")
    assert graders.cannot_run == []


PROXY = "a proxy for the model calls of a grader is not to be had; let it call the model"
BY_A_PROGRAM = "[0].prompt: a prompt that a program makes is not to be had"
TWICE = "'criteria' holds the items of the rubric too; keep one"


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
def test_what_is_not_to_be_had_cannot_run(tmp_path: Path, said: dict[str, Any], cannot_run: str) -> None:
    graders = read(tmp_path, {"type": "llm_judge", "name": "q", **said}, files={"evals/p/a": ""})
    assert graders.one == LlmGrader(type="llm_grader", name="q")
    assert [found[: len(cannot_run)] for found in graders.cannot_run] == [cannot_run]


ITEM = {"id": "a", "outcome": "b"}
BAD = "invalid rubric:"


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ({"type": "llm_judge", "prompt": "../../etc/a.md"}, ".prompt: '../../etc/a.md' leaves the repository"),
        ({"type": "llm-grader", "rubrics": ["a"], "criteria": ["b"]}, f".rubrics: {TWICE}"),
        ({"type": "code-grader", "command": "a", "requred": True}, ".requred: unknown key; did you mean 'required'?"),
        ({"type": "rubrics", "criteria": []}, f".criteria: {BAD} must not be empty"),
        ({"type": "rubrics", "criteria": [ITEM, ITEM]}, f".criteria[1]: {BAD} the id 'a' stands here a second time"),
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
    assert with_target.cannot_run == [f"[0].target: {PROXY} itself, or write an `llm-rubric`"]


NAMED = "a score range is named by a whole number from 0 to 10"


def rubric(root: Path, *items: Any) -> Graders:
    return read(root, {"type": "rubrics", "criteria": list(items)})


def item(root: Path, said: Any) -> Criterion:
    (criterion,) = rubric(root, said).one.criteria
    return criterion


@pytest.mark.parametrize("key", ["outcome", "criteria", "expected_outcome", "description", "expectedOutcome"])
def test_what_must_be_so_has_several_names(tmp_path: Path, key: str) -> None:
    criteria = rubric(tmp_path, "a", {key: "b", "required": True}).one.criteria
    assert criteria == (Criterion(id="rubric-1", outcome="a"), Criterion(id="rubric-2", outcome="b", required=True))


def test_points_that_meet_an_item_are_a_share_and_required(tmp_path: Path) -> None:
    said = {"id": "a", "outcome": "b", "required_min_score": 7}
    assert item(tmp_path, said) == Criterion(id="a", outcome="b", min_score=0.7, required=True)
    assert item(tmp_path, {**said, "required": False}).required is False
    assert item(tmp_path, {**said, "min_score": 0.7}).min_score == 0.7


def test_spans_of_points_have_two_forms(tmp_path: Path) -> None:
    listed = [
        {"score_range": [5, 9], "outcome": "fair"},
        {"score_range": [0, 4], "outcome": "bad"},
        {"scoreRange": [10, 10], "expected_outcome": "good"},
    ]
    points = (0, 4, "bad"), (5, 9, "fair"), (10, 10, "good")
    spans = tuple(ScoreRange(low=low, high=high, outcome=outcome) for low, high, outcome in points)
    for ranges in ({"10": "good", "0": "bad", "5": "fair"}, listed):
        assert item(tmp_path, {"id": "a", "score_ranges": ranges}) == Criterion(id="a", score_ranges=spans)


def spans(*spans: tuple[int, ...]) -> list[dict[str, Any]]:
    return [{"score_range": span, "outcome": "a"} for span in spans]


@pytest.mark.parametrize(
    ("ranges", "problem"),
    [
        ({"5": "a", "10": "b"}, f": {BAD} the score ranges must start at 0, not at 5"),
        ({}, f": {BAD} the score ranges must go up to 10"),
        ({"0": 3}, ".0: expected a text, not 3"),
        (7, ": expected a mapping or a list, not 7"),
        ({"0": "a", "0.5": "b"}, f".0.5: {BAD} {NAMED}, not '0.5'"),
        ({"0": "a", "11": "b"}, f".11: {BAD} {NAMED}, not '11'"),
        ({"0": "a", "00": "b"}, f".00: {BAD} the score 0 stands here a second time"),
        (spans((0, 5), (5, 10)), f": {BAD} the next must start at 6, not at 5"),
        (spans((0, 4), (6, 10)), f": {BAD} the next must start at 5, not at 6"),
        (spans((0, 9)), f": {BAD} the score ranges must go up to 10"),
        (spans((4, 0)), f": {BAD} the span from 4 to 0 is empty"),
        (spans((0,)), f"[0].score_range: {BAD} expected the lowest and the highest score"),
        (spans((0, 12)), "[0].score_range[1]: must be at most 10, not 12"),
        ([{"outcome": "a"}], "[0]: the key 'score_range' is missing"),
        (["a"], f'[0]: {BAD} expected a mapping, not "a"'),
    ],
)
def test_spans_must_cover_the_points_without_overlap(tmp_path: Path, ranges: Any, problem: str) -> None:
    assert rubric(tmp_path, ITEM | {"score_ranges": ranges}).problems == [f"[0].criteria[0].score_ranges{problem}"]


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ({"id": "a"}, ": give `outcome` or `score_ranges`"),
        (ITEM | {"weight": -1}, ".weight: must be at least 0, not -1"),
        (ITEM | {"min_score": 2}, ".min_score: must be at most 1, not 2"),
        (ITEM | {"required": 1}, ".required: expected true or false, not 1"),
        (ITEM | {"required_min_score": 11}, ".required_min_score: must be at most 10, not 11"),
        (
            ITEM | {"required_min_score": 5, "min_score": 0.6},
            ".required_min_score: 'min_score' (of 1) and 'required_min_score' (of 10) differ; keep one of them",
        ),
        (ITEM | {"criteria": "c"}, ".criteria: 'outcome' and 'criteria' mean the same and differ; keep one of them"),
        (
            ITEM | {"operator": "contradicts"},
            ".operator: \"contradicts\" is not one of the allowed values; did you mean 'contradiction'?",
        ),
        ({"id": "a", "outcom": "b"}, ".outcom: unknown key; did you mean 'outcome'?"),
        (3, f": {BAD} expected a text or a mapping, not 3"),
    ],
)
def test_a_wrong_item_is_refused(tmp_path: Path, said: Any, problem: str) -> None:
    assert rubric(tmp_path, said).problems == [f"[0].criteria[0]{problem}"]
