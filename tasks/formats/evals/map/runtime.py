"""How the tests of an eval file are run: time, target, threshold, repeats, wherever a file says so."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from passgate.tasks.formats.evals.map.sources import Sources, present
from passgate.tasks.formats.evals.map.workspaces import workspace_of
from passgate.tasks.formats.evals.read.node import (
    Complaints,
    Key,
    Keys,
    Node,
    Parts,
    agreed,
    as_count,
    as_mapping,
    as_number,
    as_one_of,
    take_apart,
)
from passgate.tasks.formats.evals.read.raw import RawTest
from passgate.tasks.formats.evals.read.top_level import check_execution, is_timeout
from passgate.tasks.formats.schema_check import Kind, shown, wrong_kind
from passgate.tasks.model.task import Budgets, Environment, Metric, Scoring, SimulatedUser, Trials

_ANY, _NUMBER, _TRUTH, _COUNT = Key(), Key((Kind.NUMBER,)), Key((Kind.TRUTH,)), Key((Kind.WHOLE, Kind.MAPPING))

RUN_KEYS: Keys = {
    # `budget_usd` is no budget of a trial; there is a warning that says where it is said.
    **dict.fromkeys(("threshold", "timeout_seconds", "budget_usd"), _NUMBER),
    "repeat": _COUNT,
    "runs": Key((Kind.WHOLE,)),
    "early_exit": _TRUTH,
}
POLICY_KEYS: Keys = {
    **RUN_KEYS,
    "trials": _COUNT,
    "target": Key((Kind.TEXT, Kind.MAPPING)),
    "workspace": Key((Kind.MAPPING, Kind.TEXT)),
    "targets": Key((Kind.LIST, Kind.TEXT)),
    "skip_defaults": _TRUTH,
    **dict.fromkeys(("evaluators", "assert", "assertions"), Key((Kind.LIST,))),
    **dict.fromkeys(("sandbox", "model", "agent", "agent_options", "name", "workers", "cache", "cache_path"), _ANY),
    **dict.fromkeys(("fail_on_error", "verbose", "keep_workspaces", "trace_file", "max_retries", "retry_errors"), _ANY),
    **dict.fromkeys(("otel_file", "export_otel", "otel_backend", "otel_capture_content", "otel_group_turns"), _ANY),
    **dict.fromkeys(("pool_workspaces", "pool_slots", "agent_rules", "dependency_policy"), _ANY),
}
OPTIONS_KEYS: Keys = {
    **RUN_KEYS,
    "timeout_ms": _NUMBER,
    **dict.fromkeys(("max_concurrency", "cache", "delay", "filter_range", "filter_pattern", "filter_sample"), _ANY),
    **dict.fromkeys(("show_progress_bar", "generate_suggestions", "max_eval_time_ms", "cost_limit_usd"), _ANY),
}
BLOCKS = {
    "run": RUN_KEYS,
    "execution": {**POLICY_KEYS, "timeout_seconds": _ANY},
    "experiment": POLICY_KEYS,
    "policy": POLICY_KEYS,
    "evaluate_options": OPTIONS_KEYS,
}
STRATEGIES = {
    "pass_all": Metric.PASS_HAT_K,
    "pass_any": Metric.PASS_AT_K,
    "pass_at_k": Metric.PASS_AT_K,
    "mean": Metric.MEAN,
    "confidence_interval": Metric.CONFIDENCE_INTERVAL,
}
REPEAT_KEYS: Keys = {
    "count": Key((Kind.WHOLE,), needed=True),
    "strategy": Key((Kind.TEXT,)),
    "cost_limit_usd": _NUMBER,
    "early_exit": _TRUTH,
}
_MOST_TRIALS = 1000
_NOT_HAD = {key: f"passgate has no `{key}` of another tool" for key in ("sandbox", "agent_options")}
_NAME_OF_RUN = "the name of a run stands under `tags`, as in {experiment: NAME}; here stand target, repeat and the like"


@dataclass(frozen=True)
class Runtime:
    """The mappings that have a say in how a test is run, those that go before first."""

    levels: tuple[tuple[Node, ...], ...]
    """Mappings of one level have to agree."""
    keys: frozenset[str]
    """Those that any of the mappings has."""

    def said(self, names: Sequence[str], complaints: Complaints) -> Node | None:
        """The value of the first level that says something under one of the names."""
        if self.keys.isdisjoint(names):
            return None
        for level in self.levels:
            said = [value for block in level for name in names if (value := block.get(name)) is not None]
            if said:
                return agreed(said, complaints)
        return None


def run_of(test: Parts, raw: RawTest, user: SimulatedUser | None, compat: Any, sources: Sources) -> dict[str, Any]:
    """How a test is run and scored, by the fields of tasks."""
    runtime, complaints = _runtime_of(raw), sources.complaints
    _warn_of_budgets(runtime, sources)
    environment = Environment(
        budgets=Budgets(max_seconds=_max_seconds_of(runtime, complaints)),
        workspace=workspace_of(test, raw, sources),
        user=user,
    )
    trials, threshold = _trials_of(runtime, complaints), _threshold_of(runtime, complaints)
    given = {} if threshold is None else {"threshold": threshold}
    return {
        "environment": environment,
        "trials": trials,
        "scoring": Scoring(rule="weighted_average", compat=compat, **given),
        "target": _target_of(runtime, sources),
    }


def _runtime_of(raw: RawTest) -> Runtime:
    """What has a say: the test's `run`, those of its includes, the rest of the test, then the file that is run."""
    test, root = raw.node, raw.runtime.root
    levels = [present([as_mapping(run)]) for run in (test.get("run"), *raw.runs)]
    levels.append(present((test, as_mapping(test.get("execution")))))
    levels.append((*present(as_mapping(root.get(name)) for name in BLOCKS), root))
    said = tuple(level for level in levels if level)
    return Runtime(said, frozenset(key for level in said for block in level for key in block.value))


def check_runtime(node: Node, sources: Sources) -> None:
    """What is wrong with the runtime mappings of a test or a file, and what they ask for that is not to be had."""
    for name, keys in BLOCKS.items():
        block = node.get(name) if name in node.value else None
        if block is None:
            continue
        message = wrong_kind(block.value, (Kind.MAPPING,))
        if message is not None:
            is_name = name == "experiment" and isinstance(block.value, str)
            sources.refuse(block, f"{message}: {_NAME_OF_RUN}" if is_name else message)
            continue
        take_apart(block, keys, sources.complaints)
        if name == "execution":
            check_execution(block, sources.complaints)
        sources.cannot_have(block, _NOT_HAD)


def _max_seconds_of(runtime: Runtime, complaints: Complaints) -> float | None:
    """How long a trial may take."""
    said = runtime.said(("timeout_seconds", "timeout_ms"), complaints)
    if said is not None and said.path[-2:] == ("execution", "timeout_seconds"):
        return float(said.value) if is_timeout(said.value) else None
    number = as_number(said, complaints)
    if said is not None and number == 0:
        complaints.problems.append(said.problem("must be more than 0"))
    if said is None or not number:
        return None
    return number / 1000 if said.path[-1] == "timeout_ms" else number


def _threshold_of(runtime: Runtime, complaints: Complaints) -> float | None:
    """The least score that passes a test; one of 0 is a problem."""
    said = runtime.said(("threshold",), complaints)
    threshold = as_number(said, complaints, most=1)
    if said is not None and threshold == 0:
        complaints.problems.append(said.problem("with a threshold of 0 nothing can fail"))
    return threshold or None


def _target_of(runtime: Runtime, sources: Sources) -> str | None:
    """The first target of a test. passgate runs one agent, the one of `--agent`: of others there is a warning."""
    one = runtime.said(("target", "provider", "model", "agent"), sources.complaints)
    several = runtime.said(("targets", "providers"), sources.complaints)
    names = [_target_name(node, sources) for node in (*_targets(one), *_targets(several))]
    known = list(dict.fromkeys(name for name in names if name))
    if several is not None and len(known) > 1:
        others = ", ".join(known[1:])
        sources.warn(several, f"a run has one agent, that of --agent: it is not run with {others} too", at_key=True)
    return known[0] if known else None


def _targets(node: Node | None) -> tuple[Node, ...]:
    if node is None:
        return ()
    return tuple(node.items()) if isinstance(node.value, list) else (node,)


def _target_name(node: Node, sources: Sources) -> str | None:
    """The name of a target, which is a text or a mapping with one."""
    if isinstance(node.value, str):
        return node.value
    if not isinstance(node.value, dict):
        sources.refuse(node, f"expected the name of a target, not {shown(node.value)}")
        return None
    sources.cannot_have(node, {"hooks": "passgate has no hooks of targets"})
    named = next((said for key in ("name", "label", "id", "use_target") if (said := node.get(key))), None)
    return str(named.value) if named else None


def _warn_of_budgets(runtime: Runtime, sources: Sources) -> None:
    """What a whole run may cost is none of a trial's budgets."""
    said = runtime.said(("budget_usd",), sources.complaints)
    if said is not None and as_number(said, sources.complaints) is not None:
        sources.warn(said, "what a run may cost is said on the command line, with --max-cost", at_key=True)


def _trials_of(runtime: Runtime, complaints: Complaints) -> Trials:
    """The trials of a test; what it does not say is what its suite says."""
    said = runtime.said(("repeat", "trials", "runs"), complaints)
    if said is None:
        return Trials()
    if not isinstance(said.value, dict):
        return Trials(k=as_count(said, complaints, least=1, most=_MOST_TRIALS))
    parts = take_apart(said, REPEAT_KEYS, complaints)
    as_number(parts.get("cost_limit_usd"), complaints)
    k = as_count(parts.get("count"), complaints, least=1, most=_MOST_TRIALS)
    name = as_one_of(parts.get("strategy"), tuple(STRATEGIES), complaints)
    metric = None if name is None else STRATEGIES[name]
    if metric is Metric.CONFIDENCE_INTERVAL and k == 1:
        complaints.problems.append(said.problem("a confidence interval needs a count of 2 or more"))
    return Trials(k=k, metric=metric)
