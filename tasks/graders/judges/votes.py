"""Several votes of a judge made one."""

from collections.abc import Sequence
from statistics import median

from passgate.tasks.graders.judges.judge_reply import Mark
from passgate.tasks.model.grade import Check


def combined(marks: Sequence[Mark]) -> Mark:
    """One mark of one or more: the median of the scores, or of each assertion what the majority says.

    An assertion with as many votes for as against it is not true. The reason is that of a vote on the side that won.
    """
    if len(marks) == 1:
        return marks[0]
    if not marks[0].checks:
        return _median(marks)
    checks = tuple(_majority(votes) for votes in zip(*(mark.checks for mark in marks), strict=True))
    return Mark(sum(check.passed for check in checks) / len(checks), "", checks)


def _median(marks: Sequence[Mark]) -> Mark:
    scores = [mark.score for mark in marks]
    score = median(scores)
    nearest = min(marks, key=lambda mark: abs(mark.score - score))
    spread = f"{len(marks)} votes, from {min(scores):.3g} to {max(scores):.3g}"
    return Mark(score, f"{nearest.reason} ({spread})", ())


def _majority(votes: Sequence[Check]) -> Check:
    true = sum(vote.passed for vote in votes)
    passed = 2 * true > len(votes)
    winner = next(vote for vote in votes if vote.passed is passed)
    return Check(passed=passed, message=f"{winner.message} ({true} of {len(votes)} votes: true)")
