"""Where passgate's score is not AgentV's in compatibility mode either, and why: as docs/compatibility.md has it."""

from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import NamedTuple

from tests.conformance.compare import TRIAL, Compared

Applies = Callable[[Compared], bool]


class Explanation(NamedTuple):
    """A known difference."""

    name: str
    """As docs/compatibility.md calls it."""
    applies: Applies


def _is(path: str, *tests: str) -> Applies:
    """Tests of an eval file, by patterns."""

    def applies(compared: Compared) -> bool:
        row = compared.row
        return fnmatchcase(row.path, path) and any(fnmatchcase(row.test_id, test) for test in tests)

    return applies


def _dropped(rows: Applies) -> Applies:
    """Of these rows the scores of whole tests that AgentV makes without a grader that it has dropped."""
    return lambda compared: compared.type == TRIAL and bool(compared.dropped) and rows(compared)


def _without_agent(rows: Applies) -> Applies:
    """Of these rows those in which AgentV's agent did not run: they have an error, and no grade."""
    return lambda one: one.row.status == "execution_error" and not one.row.graders and rows(one)


def _broke_down(compared: Compared) -> bool:
    return any(theirs.crashed for theirs in compared.row.graders)


_NAMES = ("llm-judge*", "code-judge*", "rubric-gate", "rubric-expected-outcome")
_AGGREGATORS = ("no-aggregator", "minimum", "maximum", "safety-gate*", "all-or-nothing")
_TRAJECTORIES = ("any-expected-only", "no-mode")

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
    Explanation("dropped name", _dropped(_is("probes/evals/*.eval.yaml", *_NAMES))),
    Explanation("dropped aggregator", _dropped(_is("probes/evals/composite.eval.yaml", *_AGGREGATORS))),
    Explanation("dropped number", _dropped(_is("probes*/evals/determ*.eval.yaml", "eq-number*"))),
    Explanation("dropped field", _dropped(_is("probes/evals/fields.eval.yaml", "match-contains", "match-default"))),
    Explanation("dropped limit", _dropped(_is("probes/evals/metrics.eval.yaml", "em-input-tokens"))),
    Explanation("dropped trajectory", _dropped(_is("probes/evals/trajectory.eval.yaml", *_TRAJECTORIES))),
    Explanation("dropped prompt", _dropped(_is("*/multi-turn-conversation/evals/suite.yaml", "support-context-*"))),
    Explanation("agent that did not start", _without_agent(_is("*/exp_runs.eval.yaml", "mixed", "all-pass"))),
)


def explanation_of(compared: Compared) -> Explanation | None:
    """Why two scores differ; `None` when nobody knows."""
    return next((known for known in EXPLANATIONS if known.applies(compared)), None)
