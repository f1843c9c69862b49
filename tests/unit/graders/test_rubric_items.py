"""Answers marked by the items of a rubric."""

import json
from typing import Any

import pytest

from tests.unit.graders.trials import Graded, said
from tests.word_overlap_judge import WordOverlapJudge

RANGES = [{"low": 0, "high": 4, "outcome": "bad"}, {"low": 5, "high": 10, "outcome": "good"}]


def item(name: str, **fields: Any) -> dict[str, Any]:
    return {"id": name, "outcome": name.upper(), **fields}


def ranged(name: str, **fields: Any) -> dict[str, Any]:
    return item(name, score_ranges=RANGES, **fields)


def rubrics(*criteria: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"type": "rubrics", "criteria": criteria, **fields}


def marks(**marks: bool | float) -> str:
    checks = [
        {"id": name, "satisfied" if isinstance(mark, bool) else "score": mark, "reasoning": "because"}
        for name, mark in marks.items()
    ]
    return json.dumps({"checks": checks, "overall_reasoning": "r"})


AB = marks(a=True, b=False, z=True)
POINTS = marks(a=8, b=5)


@pytest.mark.parametrize(
    ("criteria", "said_of_them", "score"),
    [
        ([item("a"), item("b")], AB, 0.5),
        ([item("a", weight=9), item("b")], AB, 0.9),
        ([item("a"), item("c")], AB, 0.5),
        ([item("a"), item("b"), item("c", weight=0)], AB, 0.5),
        ([ranged("a"), ranged("b", weight=3)], POINTS, 0.575),
        ([ranged("a", weight=9), ranged("b", weight=0.1, min_score=0.6)], POINTS, 7.25 / 9.1),
        ([item("a"), ranged("b")], marks(a=True, b=5), 0.75),
        ([ranged("a"), ranged("c")], POINTS, 0.4),
        ([ranged("a", required=True)], POINTS, 0.8),
    ],
)
async def test_the_score_is_the_weighted_mean(
    criteria: list[dict[str, Any]], said_of_them: str, score: float, judged: Graded
) -> None:
    result, _ = await judged(rubrics(*criteria), said_of_them)
    assert result.score == pytest.approx(score, abs=1e-9)


NOT_MET = "required items are not met: "


@pytest.mark.parametrize(
    ("criterion", "said_of_it", "fatal"),
    [
        (item("b", required=True), AB, NOT_MET + "b"),
        (item("c", required=True), AB, NOT_MET + "c"),
        (item("b"), AB, ""),
        (item("b", required=True), marks(a=True, b=True), ""),
        (ranged("b", required=True), marks(a=True, b=0), NOT_MET + "b"),
        (ranged("b", required=True), marks(a=True, b=1), ""),
        (ranged("b", required=True, min_score=0.6), marks(a=True, b=5), NOT_MET + "b"),
        (ranged("b", required=True, min_score=0.5), marks(a=True, b=5), ""),
        (ranged("b", min_score=0.6), marks(a=True, b=5), ""),
    ],
)
async def test_a_required_item_that_is_not_met_is_fatal(
    criterion: dict[str, Any], said_of_it: str, fatal: str, judged: Graded
) -> None:
    rubric = rubrics(item("a", weight=99), criterion)
    result, _ = await judged(rubric, said_of_it)
    assert result.score >= 0.99
    assert (result.fatal, result.passed) == (fatal, not fatal)


async def test_each_item_has_a_check(judged: Graded) -> None:
    rubric = rubrics(item("a"), item("b"), ranged("c"), ranged("d", min_score=0.5))
    result, _ = await judged(rubric, marks(a=True, c=7, d=5))
    assert [(check.passed, check.message) for check in result.checks] == [
        (True, "[a] A: because"),
        (False, "[b] B: the judge did not mark this item"),
        (False, "[c] (7 of 10) C: because"),
        (True, "[d] (5 of 10) D: because"),
    ]


@pytest.mark.parametrize(
    ("criterion", "said_of_it"),
    [
        (item("a"), '{"score": 0.9, "assertions": []}'),
        (item("a"), '{"checks": {}}'),
        (item("a"), '{"checks": ["a"]}'),
        (item("a"), '{"checks": [{"id": "a", "satisfied": "yes"}]}'),
        (item("a"), marks(a=10)),
        (ranged("a"), marks(a=True)),
        (ranged("a"), marks(a=11)),
        (ranged("a"), marks(a=-1)),
        (item("a"), '{"checks": [{"id": "a", "satisfied": true}, {"id": "a", "satisfied": false}]}'),
        (item("a"), "It is fine."),
    ],
)
async def test_marks_that_stay_unusable_measure_nothing(
    criterion: dict[str, Any], said_of_it: str, judged: Graded
) -> None:
    result, _ = await judged(rubrics(criterion), said_of_it)
    assert "the judge's reply is unusable" in result.error


@pytest.mark.parametrize(
    ("criterion", "said_of_it", "error"),
    [
        (item("a"), '{"checks": []}', "it marks none of the items"),
        (item("a"), marks(z=True), "it marks none of the items"),
        (item("a", weight=0), marks(a=True), "rubrics: no item has a weight above 0"),
    ],
)
async def test_what_measures_nothing(criterion: Any, said_of_it: str, error: str, judged: Graded) -> None:
    result, _ = await judged(rubrics(criterion), said_of_it)
    assert error in result.error


async def test_unusable_marks_may_be_repaired_once(judged: Graded) -> None:
    assert (await judged(rubrics(item("a")), "Fine.", marks(a=True)))[0].passed


async def test_votes_are_made_one_item_by_item(judged: Graded) -> None:
    rubric = rubrics(item("a"), item("b"), ranged("c"))
    replies = [marks(a=True, b=False, c=2), marks(a=True, b=True, c=9), marks(b=False, c=5)]
    result, _ = await judged(rubric, *replies, votes=3)
    assert [check.passed for check in result.checks] == [True, False, False]
    assert result.score == pytest.approx((1 + 0 + 0.5) / 3)
    assert result.votes == pytest.approx((1.2 / 3, 2.9 / 3, 0.5 / 3))
    tie, _ = await judged(rubrics(item("a")), marks(a=True), marks(a=False), votes=2)
    assert (tie.score, tie.passed) == (0, False)


async def test_no_items_are_asked_of_an_agent_that_wrote_nothing(judged: Graded) -> None:
    result, requests = await judged(rubrics(item("a", required=True)), AB, answer="")
    assert (result.score, result.passed, result.fatal, requests) == (0, False, NOT_MET + "a", [])


async def test_the_judge_is_told_the_items(judged: Graded) -> None:
    rubric = rubrics(item("a", required=True), item("b", weight=2, operator="contradiction"), ranged("c"))
    _, (request,) = await judged(rubric, marks(a=True, b=True, c=10), criteria="Names it.")
    system = request.messages[0].content
    assert "[[ ## criteria ## ]]\nNames it.\n" in system
    assert "[[ ## rubrics ## ]]\n- [a] (weight: 1, required): A\n- [b] (weight: 2, contradiction): B\n" in system
    assert (
        "[[ ## scoring_criteria ## ]]\n### Criterion: c (weight: 1)\nDescription: C\nScore ranges:\n"
        "- 0 to 4: bad\n- 5 to 10: good\n"
    ) in system
    assert "satisfied unless the agent's work contradicts it" in system
    assert "    Paris" in request.messages[1].content
    kinds = request.reply_schema["properties"]["checks"]["items"]["anyOf"]
    assert [sorted(kind["properties"]) for kind in kinds] == [
        ["id", "reasoning", "satisfied"],
        ["id", "reasoning", "score"],
    ]


async def test_a_prompt_of_the_authors_has_the_items_as_variables(judged: Graded) -> None:
    rubric = rubrics(item("a"), prompt="{{ rubrics }}\n{{ rubrics_json }}\n{{ output }}")
    _, (request,) = await judged(rubric, marks(a=True))
    user = request.messages[1].content
    assert user.startswith("- [a] (weight: 1): A\n[\n")
    assert '"outcome": "A"' in user
    assert "[[ ## rubrics ## ]]" in request.messages[0].content


async def test_other_items_have_another_fingerprint(judged: Graded) -> None:
    found = [
        (await judged(rubric, said_of_it))[1][0].fingerprint
        for rubric, said_of_it in (
            (rubrics(item("a")), marks(a=True)),
            (rubrics(item("a", weight=2)), marks(a=True)),
            (rubrics(ranged("a")), marks(a=10)),
            (rubrics(item("a"), name="n"), marks(a=True)),
        )
    ]
    assert (len(set(found)), found[0]) == (3, found[3])


@pytest.mark.parametrize(
    ("criterion", "answer", "score"),
    [
        (item("r", outcome="Reasoning mentions complete service outage"), "a complete production outage", 1),
        (item("r", outcome="Response has a professional tone"), "Hello! How can I help you?", 0),
        (ranged("r", outcome="mentions Berlin, Paris and Munich"), "Paris", 0.3),
        (ranged("r", outcome=None), "bad", 0),
    ],
)
async def test_a_judge_of_shared_words_finds_the_items_and_the_answer(
    criterion: dict[str, Any], answer: str, score: float, graded: Graded
) -> None:
    rubric = rubrics(criterion, ranged("other", weight=0))
    result = await graded(rubric, said(answer), prompt="x", judge=WordOverlapJudge())
    assert result.error is None
    assert result.score == pytest.approx(score)
