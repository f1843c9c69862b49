"""Where passgate's score is not AgentV's in compatibility mode either, and why: as docs/compatibility.md has it."""

from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import NamedTuple

from tests.conformance.compare import TRIAL, Compared


class Explanation(NamedTuple):
    """A known difference."""

    name: str
    """As docs/compatibility.md calls it."""
    applies: Callable[[Compared], bool]


def _is(path: str, *tests: str) -> Callable[[Compared], bool]:
    """Tests of an eval file, by patterns."""

    def applies(compared: Compared) -> bool:
        row = compared.row
        return fnmatchcase(row.path, path) and any(fnmatchcase(row.test_id, test) for test in tests)

    return applies


def _dropped(compared: Compared) -> bool:
    """AgentV has no grade of a grader that the test has: the others, or its own judge, made the score."""
    return bool(compared.dropped) and (compared.type == TRIAL or "no such grader" in compared.detail)


def _broke_down(compared: Compared) -> bool:
    return any(theirs.crashed for theirs in compared.row.graders)


EXPLANATIONS: tuple[Explanation, ...] = (
    Explanation("dropped member", _is("*/composite.eval.yaml", "member-unnamed", "member-snake")),
    Explanation("conversation breaks down", _broke_down),
    Explanation("skipped after a crash", _is("*/deps.eval.yaml", "d", "f")),
    Explanation("weights of 0", _is("*/deterministic.eval.yaml", "weight-all-zero")),
    Explanation("unknown judge", _is("*/rubric.eval.yaml", "no-target-found")),
    Explanation("unusable judge", _is("probes-head/evals/rubric.eval.yaml", "garbage-plus")),
    Explanation("items without an id", _is("*/readme-quickstart/*", "fizzbuzz")),
    Explanation("working folder of code graders", _is("*/codegrader.eval.yaml", "dump")),
    Explanation("assertions of code graders", _is("probes-head/evals/codegrader.eval.yaml", "asserts")),
    Explanation("dropped grader", _dropped),
)


def explanation_of(compared: Compared) -> Explanation | None:
    """Why two scores differ; `None` when nobody knows."""
    return next((known for known in EXPLANATIONS if known.applies(compared)), None)
