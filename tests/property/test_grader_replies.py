"""Whatever a program or a judge says: a score from 0 to 1, or an error that is ours."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.property.documents import nested

from passgate.tasks.errors import MeasurementError
from passgate.tasks.graders.code_grader import read_code_reply
from passgate.tasks.graders.grader_reply import read_document
from passgate.tasks.graders.judge import UnusableReplyError, read_object
from passgate.tasks.graders.judge_prompt import Variable, fill
from passgate.tasks.graders.rubric import ItemResult, item_mean, item_results, majority_result
from passgate.tasks.model.assertions import Criterion, ScoreRange

VALUES = nested(st.none() | st.booleans() | st.integers() | st.floats() | st.text())
ENTRIES = st.lists(
    st.dictionaries(st.sampled_from(["text", "passed", "pass", "evidence", "id", "satisfied", "score"]), VALUES)
    | VALUES,
    max_size=3,
)
REPLIES = st.fixed_dictionaries(
    {},
    optional={
        "score": VALUES | st.floats(0, 1),
        "pass": VALUES,
        "hits": VALUES,
        "misses": st.lists(st.text(), max_size=3),
        "assertions": ENTRIES,
        "checks": ENTRIES,
        "reasoning": VALUES,
    },
).map(json.dumps)
OUTPUTS = st.text() | REPLIES | st.tuples(st.text(), REPLIES, st.text()).map("".join)
SHARES = st.floats(0, 1)
RANGES = (ScoreRange(low=0, high=10, outcome="any"),)


@given(OUTPUTS, st.text(max_size=3), st.integers(-20, 260))
def test_what_a_program_prints_is_a_score_or_an_error(stdout: str, stderr: str, exit_code: int) -> None:
    try:
        reply = read_code_reply(stdout, stderr, exit_code)
    except MeasurementError:
        return
    assert 0 <= reply.score <= 1
    if exit_code != 0:
        assert reply.score == 0
    if "{" in stdout:
        assert isinstance(json.loads(stdout[stdout.index("{") :]), dict)


@given(SHARES, st.sampled_from([True, False, None]))
def test_a_score_is_kept_unless_it_did_not_pass(score: float, passed: bool | None) -> None:
    document = {"score": score} | ({} if passed is None else {"pass": passed})
    assert read_code_reply(json.dumps(document), "", 0).score == (0 if passed is False else score)


@given(st.lists(st.booleans(), min_size=1))
def test_without_a_score_it_is_the_share_that_passed(passed: list[bool]) -> None:
    entries = [{"text": "t", "passed": one} for one in passed]
    reply = read_code_reply(json.dumps({"assertions": entries}), "", 0)
    assert reply.score == pytest.approx(sum(passed) / len(passed))


@given(OUTPUTS)
def test_what_a_judge_says_is_a_score_or_unusable(text: str) -> None:
    try:
        assert 0 <= read_object(text, read_document).score <= 1
    except UnusableReplyError:
        return


@given(OUTPUTS)
def test_what_a_judge_says_of_items_is_marks_or_unusable(text: str) -> None:
    criteria = [Criterion(id="a", outcome="A"), Criterion(id="b", outcome="B")]
    try:
        marks = read_object(text, lambda document: item_results(document, criteria))
    except UnusableReplyError:
        return
    assert marks.keys() <= {"a", "b"}
    assert all(mark.share in {0, 1} for mark in marks.values())


@given(st.lists(st.tuples(st.floats(0.001, 1000), SHARES), min_size=1))
def test_a_weighted_mean_lies_between_its_shares(pairs: list[tuple[float, float]]) -> None:
    criteria = [Criterion(id=str(number), outcome="x", weight=weight) for number, (weight, _) in enumerate(pairs)]
    marks = [ItemResult(share) for _, share in pairs]
    shares = [share for _, share in pairs]
    assert min(shares) - 1e-9 <= item_mean(criteria, marks) <= max(shares) + 1e-9


@given(st.lists(st.integers(0, 10), min_size=1, max_size=9), st.randoms())
def test_votes_count_in_any_order(points: list[int], random: Any) -> None:
    graded = Criterion(id="a", score_ranges=RANGES)
    plain = Criterion(id="a", outcome="A")
    mixed = random.sample(points, len(points))
    for criterion, scale in ((graded, 10), (plain, 1)):
        votes = [[ItemResult(min(vote, scale) / scale) for vote in order] for order in (points, mixed)]
        assert majority_result(votes[0], criterion).share == majority_result(votes[1], criterion).share


@given(st.text(), st.text())
def test_what_is_put_in_is_not_looked_at_again(before: str, answer: str) -> None:
    template = f"{before.replace('{', '')}{{{{ output }}}}"
    variables = {"output": Variable(answer, is_material=True), "criteria": Variable("SECRET", is_material=False)}
    prompt = fill(template, variables, "===")
    assert prompt == f"{before.replace('{', '')}===\n{answer}\n==="
