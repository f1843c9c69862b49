import json
from typing import Any

import pytest

from passgate.tasks.graders import grade
from passgate.tasks.graders.interface import Evidence
from passgate.tasks.model.assertions import Criterion, Rubrics, ScoreRange
from passgate.tasks.model.grade import Grade
from passgate.tasks.model.task import Scoring
from tests.unit.graders.trials import MakeEvidence, RecordedJudge, said
from tests.word_overlap_judge import WordOverlapJudge

AGENTV = Scoring(compat="agentv")
RANGES = (ScoreRange(low=0, high=4, outcome="bad"), ScoreRange(low=5, high=10, outcome="good"))


def item(name: str, **fields: Any) -> Criterion:
    return Criterion(**{"id": name, "outcome": name.upper(), **fields})


def graded(name: str, **fields: Any) -> Criterion:
    return item(name, score_ranges=RANGES, **fields)


def options(*criteria: Criterion, **fields: Any) -> Rubrics:
    return Rubrics(type="rubrics", criteria=criteria, **fields)


def reply(**marks: bool | float) -> str:
    checks = [
        {"id": name, "satisfied" if isinstance(mark, bool) else "score": mark, "reasoning": "because"}
        for name, mark in marks.items()
    ]
    return json.dumps({"checks": checks, "overall_reasoning": "r"})


@pytest.fixture
def mark(make_evidence: MakeEvidence) -> Any:
    async def ask(rubric: Rubrics, *replies: str, scoring: Scoring | None = None, votes: int = 1) -> Grade:
        judge = RecordedJudge(*replies, votes=votes)
        return await grade(rubric, make_evidence(transcript=said("Paris"), judge=judge, scoring=scoring or Scoring()))

    return ask


AB = reply(a=True, b=False, z=True)
POINTS = reply(a=8, b=5)


@pytest.mark.parametrize(
    ("criteria", "said_of_them", "score", "theirs"),
    [
        ([item("a"), item("b")], AB, 0.5, 0.5),
        ([item("a", weight=9), item("b")], AB, 0.9, 0.9),
        ([item("a"), item("c")], AB, 0.5, 1),
        ([item("a"), item("b"), item("c", weight=0)], AB, 0.5, 0.5),
        ([graded("a"), graded("b", weight=3)], POINTS, 0.575, 0.575),
        ([graded("a", weight=9), graded("b", weight=0.1, min_score=0.6)], POINTS, 7.25 / 9.1, 7.25 / 9.1),
        ([item("a"), graded("b")], reply(a=True, b=5), 0.75, 0.75),
        ([graded("a"), graded("c")], POINTS, 0.4, 0.8),
    ],
)
async def test_the_score_is_the_weighted_mean(
    criteria: list[Criterion], said_of_them: str, score: float, theirs: float, mark: Any
) -> None:
    assert (await mark(options(*criteria), said_of_them)).score == pytest.approx(score, abs=1e-9)
    as_agentv = await mark(options(*criteria), said_of_them, scoring=AGENTV)
    assert as_agentv.score == pytest.approx(theirs, abs=1e-9)


@pytest.mark.parametrize(
    ("criterion", "said_of_it", "fatal"),
    [
        (item("b", required=True), AB, "required items are not met: b"),
        (item("c", required=True), AB, "required items are not met: c"),
        (item("b"), AB, ""),
        (item("b", required=True), reply(a=True, b=True), ""),
        (graded("b", required=True), reply(a=True, b=0), "required items are not met: b"),
        (graded("b", required=True), reply(a=True, b=1), ""),
        (graded("b", required=True, min_score=0.6), reply(a=True, b=5), "required items are not met: b"),
        (graded("b", required=True, min_score=0.5), reply(a=True, b=5), ""),
        (graded("b", min_score=0.6), reply(a=True, b=5), ""),
    ],
)
async def test_a_required_item_that_is_not_met_is_fatal_but_in_agentv(
    criterion: Criterion, said_of_it: str, fatal: str, mark: Any
) -> None:
    rubric = options(item("a", weight=99), criterion)
    result = await mark(rubric, said_of_it)
    assert result.score >= 0.99
    assert (result.fatal, result.passed) == (fatal, not fatal)
    as_agentv = await mark(rubric, said_of_it, scoring=AGENTV)
    assert (as_agentv.fatal, as_agentv.passed) == ("", True)


async def test_each_item_has_a_check(mark: Any) -> None:
    result = await mark(options(item("a"), item("b"), graded("c"), graded("d", min_score=0.5)), reply(a=True, c=7, d=5))
    assert [(check.passed, check.message) for check in result.checks] == [
        (True, "[a] A: because"),
        (False, "[b] B: the judge did not mark this item"),
        (False, "[c] (7 of 10) C: because"),
        (True, "[d] (5 of 10) D: because"),
    ]


@pytest.mark.parametrize("scoring", [Scoring(), AGENTV])
@pytest.mark.parametrize(
    ("criterion", "said_of_it"),
    [
        (item("a"), '{"score": 0.9, "assertions": []}'),
        (item("a"), '{"checks": {}}'),
        (item("a"), '{"checks": ["a"]}'),
        (item("a"), '{"checks": [{"id": "a", "satisfied": "yes"}]}'),
        (item("a"), reply(a=10)),
        (graded("a"), reply(a=True)),
        (graded("a"), reply(a=11)),
        (graded("a"), reply(a=-1)),
        (item("a"), '{"checks": [{"id": "a", "satisfied": true}, {"id": "a", "satisfied": false}]}'),
        (item("a"), "It is fine."),
    ],
)
async def test_a_reply_that_stays_unusable_measures_nothing(
    criterion: Criterion, said_of_it: str, scoring: Scoring, mark: Any
) -> None:
    result = await mark(options(criterion), said_of_it, scoring=scoring)
    assert "the judge's reply is unusable" in result.error
    assert (result.score, result.passed) == (None, False)


@pytest.mark.parametrize("said_of_it", ['{"checks": []}', reply(z=True)])
async def test_a_reply_that_marks_no_item_measures_nothing_but_in_agentv(said_of_it: str, mark: Any) -> None:
    assert "it marks none of the items" in (await mark(options(item("a")), said_of_it)).error
    assert (await mark(options(item("a")), said_of_it, scoring=AGENTV)).score == 0


async def test_an_unusable_reply_may_be_repaired_once(mark: Any) -> None:
    assert (await mark(options(item("a")), "Fine.", reply(a=True))).passed


async def test_weights_of_nothing_measure_nothing(mark: Any) -> None:
    rubric = options(item("a", weight=0))
    assert (await mark(rubric, reply(a=True))).error == "rubrics: no item has a weight above 0"
    assert (await mark(rubric, reply(a=True), scoring=AGENTV)).score == 0


async def test_votes_are_made_one_item_by_item(mark: Any) -> None:
    rubric = options(item("a"), item("b"), graded("c"))
    replies = [reply(a=True, b=False, c=2), reply(a=True, b=True, c=9), reply(b=False, c=5)]
    result = await mark(rubric, *replies, votes=3)
    assert [check.passed for check in result.checks] == [True, False, False]
    assert result.score == pytest.approx((1 + 0 + 0.5) / 3)
    assert result.votes == pytest.approx((1.2 / 3, 2.9 / 3, 0.5 / 3))
    tie = await mark(options(item("a")), reply(a=True), reply(a=False), votes=2)
    assert (tie.score, tie.passed) == (0, False)


async def test_nobody_is_asked_about_an_agent_that_wrote_nothing(make_evidence: MakeEvidence) -> None:
    for scoring, fatal in ((Scoring(), "required items are not met: a"), (AGENTV, "")):
        judge = RecordedJudge(reply(a=True))
        evidence = make_evidence(transcript=said(""), judge=judge, scoring=scoring)
        result = await grade(options(item("a", required=True)), evidence)
        assert (result.score, result.passed, result.fatal, judge.requests) == (0, False, fatal, [])


async def request_of(rubric: Rubrics, evidence: Evidence) -> Any:
    result = await grade(rubric, evidence)
    assert result.error is None
    return evidence.judge.requests[0]  # type: ignore[union-attr]


async def test_the_judge_is_told_the_items(make_evidence: MakeEvidence) -> None:
    rubric = options(item("a", required=True), item("b", weight=2, operator="contradiction"), graded("c"))
    judge = RecordedJudge(reply(a=True, b=True, c=10))
    request = await request_of(rubric, make_evidence(transcript=said("Paris"), judge=judge, criteria="Names it."))
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


async def test_a_prompt_of_the_authors_has_the_items_as_variables(make_evidence: MakeEvidence) -> None:
    rubric = options(item("a"), prompt="{{ rubrics }}\n{{ rubrics_json }}\n{{ output }}")
    request = await request_of(rubric, make_evidence(transcript=said("Paris"), judge=RecordedJudge(reply(a=True))))
    user = request.messages[1].content
    assert user.startswith("- [a] (weight: 1): A\n[\n")
    assert '"outcome": "A"' in user
    assert "[[ ## rubrics ## ]]" in request.messages[0].content


async def test_other_items_have_another_fingerprint(make_evidence: MakeEvidence) -> None:
    found = set()
    for rubric in (
        options(item("a")),
        options(item("a", weight=2)),
        options(graded("a")),
        options(item("a"), name="n"),
    ):
        judge = RecordedJudge(reply(a=bool(not rubric.criteria[0].score_ranges) or 10))
        found.add((await request_of(rubric, make_evidence(transcript=said("Paris"), judge=judge))).fingerprint)
    assert len(found) == 3


@pytest.mark.parametrize(
    ("criterion", "answer", "score"),
    [
        (item("r", outcome="Reasoning mentions complete service outage"), "a complete production outage", 1),
        (item("r", outcome="Response has a professional tone"), "Hello! How can I help you?", 0),
        (graded("r", outcome="mentions Berlin, Paris and Munich"), "Paris", 0.3),
        (graded("r", outcome=None), "bad", 0),
    ],
)
@pytest.mark.parametrize("scoring", [Scoring(), AGENTV])
async def test_a_judge_of_shared_words_finds_the_items_and_the_answer(
    criterion: Criterion, answer: str, score: float, scoring: Scoring, make_evidence: MakeEvidence
) -> None:
    evidence = make_evidence(transcript=said(answer), prompt="x", judge=WordOverlapJudge(), scoring=scoring)
    result = await grade(options(criterion, graded("other", weight=0)), evidence)
    assert result.error is None
    assert result.score == pytest.approx(score)
