"""Where passgate's score is not AgentV's, and why: as docs/compatibility.md has it."""

from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import NamedTuple

from tests.conformance.compare import TRIAL, Compared, types_of

Applies = Callable[[Compared], bool]


class Explanation(NamedTuple):
    """A known difference."""

    name: str
    """As docs/compatibility.md calls it; of formulas that differ, the types of their graders."""
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


def _formula(kinds: str, rows: Applies) -> Explanation:
    """Of these rows the scores of graders whose formulas differ, and of the whole tests that they are in."""
    known = set(kinds.split(", "))
    return Explanation(kinds, lambda one: rows(one) and (one.type == TRIAL or not known.isdisjoint(types_of(one.type))))


def _broke_down(compared: Compared) -> bool:
    return any(theirs.crashed for theirs in compared.row.graders)


_NAMES = ("llm-judge*", "code-judge*", "rubric-gate", "rubric-expected-outcome")
_AGGREGATORS = ("no-aggregator", "minimum", "maximum", "safety-gate*", "all-or-nothing")
_TRAJECTORIES = ("any-expected-only", "no-mode")

_REPLIES = ("over", "neg", "strscore", "empty", "array", "scalar", "json1", "err1", "badjson", "prefix", "passfield")
_MEMBERS = ("wavg-member-weight", "member-required", "member-negate")
_SETS = ("assertset-nothr", "assertset-required-child")
_ORDERS = ("inorder-wrong", "inorder-args-second", "inorder-latency-fail", "nodur", "subset-bad", "none")
_EXACT = ("exact-extra-actual", "exact-missing-actual", "exact-latency")
_VALIDATION = "*/features/tool-trajectory-advanced/evals/trace-file-demo.eval.yaml"
_SHELLS = ("forbid-shell", "forbid-exec-command", "used-shell", "seq-exact-ignores-shell", "none")
_FIELDS = ("missing-required", "no-expected", "no-expected-value", "agg-minimum", "date-amb")
_ITEMS = ("checks-required", "checks-required-fail", "checks-omitted", "checks-omitted-c")
_LIMITS = ("em-partial", "em-all-pass", "nodata")

FORMULAS: tuple[Explanation, ...] = (
    _formula("code_grader", _is("probes*/evals/codegrader.eval.yaml", *_REPLIES)),
    _formula("llm_grader", _is("probes-head/evals/rubric.eval.yaml", "failhigh")),
    _formula("rubrics", _is("probes*/evals/rubric.eval.yaml", *_ITEMS)),
    _formula("composite", _is("probes/evals/composite.eval.yaml", *_MEMBERS)),
    _formula("composite", _is("probes-head/evals/determ.eval.yaml", *_SETS)),
    _formula("composite", _is("*/features/assert-set/evals/suite.yaml", "safety-gate")),
    Explanation("turns", _is("probes/evals/conv.eval.yaml", "mean")),
    _formula("tool_trajectory", _is(_VALIDATION, "combined-validation")),
    _formula("tool_trajectory", _is("probes/evals/trajectory.eval.yaml", *_ORDERS, *_EXACT)),
    _formula("tool_used, tool_sequence", _is("probes-head/evals/trajectory.eval.yaml", *_SHELLS)),
    _formula("step_count", _is("probes-head/evals/trajectory.eval.yaml", "step-tool", "step-command")),
    _formula("field_accuracy", _is("probes/evals/fields.eval.yaml", *_FIELDS)),
    _formula("execution_metrics", _is("probes/evals/metrics*.eval.yaml", *_LIMITS)),
    _formula("latency, cost, token_usage", _is("probes/evals/metrics.eval.yaml", "tokens-total-cached", "nodata")),
)
"""Where the formulas differ, by the types of graders that have them."""
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
    return next((known for known in (*EXPLANATIONS, *FORMULAS) if known.applies(compared)), None)
