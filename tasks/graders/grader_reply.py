"""What a program or a judge says of a trial, in any of the three forms that eval files know."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, Final, NamedTuple

from passgate.tasks.errors import Raw
from passgate.tasks.graders.evidence import score_grade
from passgate.tasks.model.grade import RawCheck, RawGrade
from passgate.tasks.model.grader_options import AssertionOptions
from passgate.tasks.model.quotes import quote, raw

MOST_CHECKS: Final = 100  # Checks that are kept of one reply


class GraderReply(NamedTuple):
    """A score from 0 to 1 and what speaks for it."""

    score: float
    checks: tuple[RawCheck, ...] = ()
    reason: Raw = ""


def read_document(document: Any) -> GraderReply:
    """Return the reply in a JSON document: `{score, hits, misses, reasoning}`, `{score, assertions: [{text, passed,
    evidence}]}`, `{pass, score, reason, checks: [{text, pass, reason}]}`, or a mixture of them.

    Without a `score` it is the share of assertions or checks that passed, or 1 or 0 by `pass` alone. With `pass: false`
    it is 0, for whatever mean it goes into must not be lifted by it; `pass: true` lifts nothing. Raises `ValueError`
    when the document is none of the forms.
    """
    if not isinstance(document, Mapping):
        raise ValueError("it is not a JSON object")  # noqa: TRY004 - one error for every unusable reply
    entries = [*_entries(document, "assertions"), *_entries(document, "checks")]
    passed = document.get("pass")
    if passed is not None and not isinstance(passed, bool):
        raise ValueError("`pass` must be true or false")
    if document.get("score") is not None:
        own = share(document["score"], "`score`")
    elif entries:
        own = sum(entry.passed for entry in entries) / len(entries)
    elif passed is not None:
        own = float(passed)
    else:
        raise ValueError("it has no `score`")
    score, checks = own, entries
    if passed is False and own:
        score, message = 0.0, f"`pass` is false, so the score {own:.3g} does not count"
        checks = [RawCheck(passed=False, message=message), *entries]
    for name in ("hits", "misses"):
        texts = [] if document.get(name) is None else document[name]
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise ValueError(f"`{name}` must be a list of texts")
        checks += [RawCheck(passed=name == "hits", message=quote(text)) for text in texts]
    return GraderReply(score, tuple(checks[:MOST_CHECKS]), quote(first_text(document, ("reasoning", "reason"))))


def reply_grade(options: AssertionOptions, reply: GraderReply) -> RawGrade:
    """Return the grade of a reply, first a check with the score if it has a reason or no other check tells why."""
    grade = score_grade(options, reply.score, reply.checks)
    if not reply.reason and (grade.passed or any(not check.passed for check in reply.checks)):
        return grade
    wanted = f"expected at least {options.passing_score:g}"
    message = raw(f"score {reply.score:.3g}, {wanted}", ": " if reply.reason else "", reply.reason)
    return grade.model_copy(update={"checks": (RawCheck(passed=grade.passed, message=message), *reply.checks)})


def median_reply(replies: Sequence[GraderReply]) -> GraderReply:
    """Return the median score of several votes, with the checks and the reason of the vote that is nearest to it."""
    if len(replies) == 1:
        return replies[0]
    scores = [reply.score for reply in replies]
    score = median(scores)
    nearest = min(replies, key=lambda reply: abs(reply.score - score))
    spread = f"{len(replies)} votes, from {min(scores):.3g} to {max(scores):.3g}"
    return GraderReply(score, nearest.checks, raw(nearest.reason, " " if nearest.reason else "", f"({spread})"))


def share(value: Any, name: str, most: float = 1) -> float:
    """Return a number from 0 to `most`. Raises `ValueError` for anything else, a truth value too."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
        raise ValueError(f"{name} must be a number from 0 to {most:g}")
    return float(value)


def first_text(document: Mapping[str, Any], names: Sequence[str]) -> str:
    """Return the first of these entries that is a text and not blank; empty when none is."""
    texts = (document.get(name) for name in names)
    return next((text for text in texts if isinstance(text, str) and text.strip()), "")


def _entries(document: Mapping[str, Any], name: str) -> list[RawCheck]:
    entries = [] if document.get(name) is None else document[name]
    if not isinstance(entries, list):
        raise ValueError(f"`{name}` must be a list")  # noqa: TRY004
    checks = []
    for position, entry in enumerate(entries):
        place = f"`{name}[{position}]`"
        if not isinstance(entry, Mapping):
            raise ValueError(f"{place} must be an object")  # noqa: TRY004
        passed = entry.get("passed", entry.get("pass"))
        if not isinstance(passed, bool):
            raise ValueError(f"{place} must say whether it passed: true or false")  # noqa: TRY004
        texts = [first_text(entry, ("text", "message", "name", "id"))]
        texts.append(first_text(entry, ("evidence", "reason", "reasoning")))
        checks.append(RawCheck(passed=passed, message=quote(": ".join(filter(None, texts)) or place)))
    return checks
