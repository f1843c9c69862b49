"""Items of rubrics."""

from pathlib import Path
from typing import Any

import pytest

from passgate.tasks.model.assertions import Criterion, ScoreRange
from tests.unit.formats.evals.grader_lists import Graders, read

FIRST = "[0].criteria[0]"


def rubric(root: Path, *items: Any) -> Graders:
    return read(root, {"type": "rubrics", "criteria": list(items)})


def item(root: Path, said: Any) -> Criterion:
    (criterion,) = rubric(root, said).one.criteria
    return criterion


@pytest.mark.parametrize("key", ["outcome", "criteria", "expected_outcome", "description", "expectedOutcome"])
def test_what_must_be_so_has_several_names(tmp_path: Path, key: str) -> None:
    assert item(tmp_path, {"id": "a", key: "b"}) == Criterion(id="a", outcome="b")


def test_an_item_may_be_a_text_and_go_without_an_id(tmp_path: Path) -> None:
    criteria = rubric(tmp_path, "a", {"outcome": "b"}, {"id": "c", "outcome": "d"}).one.criteria
    assert [criterion.id for criterion in criteria] == ["rubric-1", "rubric-2", "c"]


def test_an_item_is_not_required_unless_it_says_so(tmp_path: Path) -> None:
    assert item(tmp_path, {"outcome": "b"}).required is False
    assert item(tmp_path, {"outcome": "b", "required": True}).required is True


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


def test_an_id_is_there_once(tmp_path: Path) -> None:
    graders = rubric(tmp_path, {"id": "rubric-2", "outcome": "a"}, "b")
    assert graders.problems == ["[0].criteria[1]: invalid rubric: the id 'rubric-2' stands here a second time"]


def test_a_rubric_has_items(tmp_path: Path) -> None:
    assert rubric(tmp_path).problems == ["[0].criteria: invalid rubric: must not be empty"]
