from hypothesis import given
from hypothesis import strategies as st

from passgate.tasks.graders.judges.llm_rubric import combined
from passgate.tasks.graders.programs.grader_reply import GraderReply
from passgate.tasks.model.grade import Check

SHARES = st.floats(0, 1)
BALLOTS = st.integers(1, 6).flatmap(
    lambda width: st.lists(st.lists(st.booleans(), min_size=width, max_size=width), min_size=1, max_size=9)
)


def mark(score: float) -> GraderReply:
    return GraderReply(score, reason=f"reason {score}")


def marks(passed: list[bool]) -> GraderReply:
    checks = tuple(Check(passed=one, message=str(one)) for one in passed)
    return GraderReply(sum(passed) / len(passed), checks)


def test_one_vote_stays_as_it_is() -> None:
    assert combined([mark(0.3)]) == mark(0.3)
    assert combined([marks([True, False])]) == marks([True, False])


def test_the_reason_is_that_of_the_vote_in_the_middle() -> None:
    assert combined([mark(0.1), mark(0.9), mark(0.6)]).reason == "reason 0.6 (3 votes, from 0.1 to 0.9)"


@given(st.lists(SHARES, min_size=1, max_size=15), st.randoms())
def test_the_combined_score_is_a_median_in_any_order(scores: list[float], random) -> None:
    score = combined([mark(one) for one in scores]).score
    assert min(scores) <= score <= max(scores)
    assert 2 * sum(one <= score for one in scores) >= len(scores)
    assert 2 * sum(one >= score for one in scores) >= len(scores)
    random.shuffle(scores)
    assert combined([mark(one) for one in scores]).score == score


@given(BALLOTS)
def test_every_assertion_goes_with_its_majority_and_the_score_with_the_assertions(ballots: list[list[bool]]) -> None:
    result = combined([marks(ballot) for ballot in ballots])
    for number, check in enumerate(result.checks):
        true = sum(ballot[number] for ballot in ballots)
        assert check.passed is (true > len(ballots) - true)
        assert check.message.startswith(str(check.passed))
    assert result.score == sum(check.passed for check in result.checks) / len(result.checks)
