"""How tests are run, wherever an eval file says so: time, target, threshold and repeats."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from passgate.tasks.formats.evals.forms import LIST, MAPPING, NUMBER, TEXT, TRUTH, WHOLE
from passgate.tasks.formats.evals.node import (
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
from passgate.tasks.formats.evals.raw import RawTest
from passgate.tasks.formats.evals.sources import Sources, present
from passgate.tasks.formats.evals.top_level import check_execution, is_timeout
from passgate.tasks.formats.evals.workspaces import target_hooks, workspace_of
from passgate.tasks.formats.schema_check import shown, wrong_kind
from passgate.tasks.model.task import Budgets, Metric, Scoring, TargetHooks, Trials

_ANY, _TEXT, _NUMBER, _TRUTH = Key(), Key(TEXT), Key(NUMBER), Key(TRUTH)
_COUNT = Key((*WHOLE, *MAPPING))
RUN_KEYS: Keys = {
    # `budget_usd` is no budget of a trial; a warning names the option for it.
    **dict.fromkeys(("threshold", "timeout_seconds", "budget_usd"), _NUMBER),
    "repeat": _COUNT,
    "runs": Key(WHOLE),
    "early_exit": _TRUTH,
}
POLICY_KEYS: Keys = {
    **RUN_KEYS,
    "trials": _COUNT,
    "target": Key((*TEXT, *MAPPING)),
    "workspace": Key((*MAPPING, *TEXT)),
    "targets": Key((*LIST, *TEXT)),
    "skip_defaults": _TRUTH,
    **dict.fromkeys(("evaluators", "assert", "assertions"), Key(LIST)),
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
    "execution": {**POLICY_KEYS, "timeout_seconds": _ANY},  # `check_execution` has the rule of its time-out
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
    "count": Key(WHOLE, needed=True),
    "strategy": _TEXT,
    "cost_limit_usd": _NUMBER,
    "early_exit": _TRUTH,
}
_TARGET_NAMES = ("name", "label", "id", "use_target")  # the keys that may hold the name of a target
_MOST_TRIALS = 1000
_FILTERS = ("filter_range", "filter_pattern", "filter_sample")
# What a target says of how it is asked and what it answers.
_OF_TARGETS = ("transform", "prompts", "environment", "env", "inputs", "delay", "runtime")
_NOT_OF_TARGETS = "is not used: the agent is that of --agent, described in agents.yaml"
_NOT_HAD = {key: f"passgate has no `{key}` of another tool" for key in ("sandbox", "agent_options")}
_NAME_OF_RUN = "the name of a run stands under `tags`, as in {experiment: NAME}; here stand target, repeat and the like"


class Runtime(NamedTuple):
    """The mappings that say how a test is run, the strongest first."""

    levels: tuple[tuple[Node, ...], ...]  # mappings of one level have to agree
    keys: frozenset[str]  # those that any of the mappings has

    def said(self, names: Sequence[str], complaints: Complaints) -> Node | None:
        """The value of the first level that says something under one of the names."""
        if self.keys.isdisjoint(names):
            return None
        for level in self.levels:
            said = [value for block in level for name in names if (value := block.get(name)) is not None]
            if said:
                return agreed(said, complaints)
        return None


def run_of(test: Parts, raw: RawTest, sources: Sources) -> dict[str, Any]:
    """How a test is run and scored, as fields of a task; `environment` is a mapping of its fields."""
    root, complaints = raw.runtime.root, sources.complaints
    # Strongest first: the test's `run`, the `run` of its includes, the rest of the test, the file that is run.
    levels = [present([as_mapping(run)]) for run in (raw.node.get("run"), *raw.runs)]
    levels.append(present((raw.node, as_mapping(raw.node.get("execution")))))
    levels.append((*present(as_mapping(root.get(name)) for name in BLOCKS), root))
    said = tuple(level for level in levels if level)
    runtime = Runtime(said, frozenset(key for level in said for block in level for key in block.value))
    # What a whole run may cost is none of a trial's budgets.
    cost = runtime.said(("budget_usd",), complaints)
    if cost is not None and as_number(cost, complaints) is not None:
        sources.warn(cost, "what a run may cost is said on the command line, with --max-cost", at_key=True)
    budgets = Budgets(max_seconds=_max_seconds_of(runtime, complaints))
    target, hooks = _target_of(runtime, sources)
    environment = {"budgets": budgets, "workspace": workspace_of(test, raw, hooks, sources)}
    trials = _trials_of(runtime, complaints)
    said_threshold = runtime.said(("threshold",), complaints)
    threshold = as_number(said_threshold, complaints, most=1)
    if said_threshold is not None and threshold == 0:
        complaints.problems.append(said_threshold.problem("with a threshold of 0 nothing can fail"))
    given = {"threshold": threshold} if threshold else {}
    return {
        "environment": environment,
        "trials": trials,
        "scoring": Scoring(rule="weighted_average", **given),
        "target": target,
    }


def check_runtime(node: Node, sources: Sources) -> None:
    """Complain about the runtime mappings of a test or a file: what is wrong, and what passgate does not have."""
    for name, keys in BLOCKS.items():
        block = node.get(name)
        if block is None:
            continue
        if message := wrong_kind(block.value, MAPPING):
            is_name = name == "experiment" and isinstance(block.value, str)
            sources.refuse(block, f"{message}: {_NAME_OF_RUN}" if is_name else message)
            continue
        take_apart(block, keys, sources.complaints)
        if name == "execution":
            check_execution(block, sources.complaints)
        sources.cannot_have(block, _NOT_HAD)
        for asked in present(block.get(key) for key in _FILTERS):
            sources.warn(asked, "all tests are run; choose some with --task", at_key=True)


def _max_seconds_of(runtime: Runtime, complaints: Complaints) -> float | None:
    said = runtime.said(("timeout_seconds", "timeout_ms"), complaints)
    if said is None:
        return None
    if said.path[-2:] == ("execution", "timeout_seconds"):
        # `check_execution` reports what is wrong with it.
        return float(said.value) if is_timeout(said.value) else None
    number = as_number(said, complaints)
    if number == 0:
        complaints.problems.append(said.problem("must be more than 0"))
    in_milliseconds = said.path[-1] == "timeout_ms"
    return (number / 1000 if in_milliseconds else number) if number else None


def _trials_of(runtime: Runtime, complaints: Complaints) -> Trials:
    """The trials of a test. What is not set here comes from its suite."""
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


def _target_of(runtime: Runtime, sources: Sources) -> tuple[str | None, Sequence[TargetHooks]]:
    """The name of the first target, and the hooks of all of them where any has hooks."""
    one = runtime.said(("target", "provider", "model", "agent"), sources.complaints)
    several = runtime.said(("targets", "providers"), sources.complaints)
    named: dict[str, TargetHooks] = {}
    for said in present((one, several)):
        for target in said.items() if isinstance(said.value, list) else (said,):
            name = target.value
            if isinstance(name, dict):
                target = _by_its_id(target)
                name = next(
                    (str(target.value[key]) for key in _TARGET_NAMES if target.value.get(key) is not None), None
                )
                for asked in present(target.get(key) for key in _OF_TARGETS):
                    sources.warn(asked, _NOT_OF_TARGETS, at_key=True)
            elif not isinstance(name, str):
                sources.refuse(target, f"expected the name of a target, not {shown(name)}")
            if isinstance(name, str) and name:
                own = target_hooks(target, name, sources) if isinstance(target.value, dict) else None
                if own is not None or name not in named:
                    named[name] = own or TargetHooks(target=name)
            elif isinstance(target.value, dict) and "hooks" in target.value:
                sources.refuse(target, "a target with hooks needs a `name`")
    known, hooks = list(named), [each for each in named.values() if each != TargetHooks(target=each.target)]
    if several is not None and len(known) > 1:
        others = ", ".join(known[1:])
        what = f"a run has one agent, that of --agent: it is not run with {others} too"
        chosen = f"; the hooks are those of the target that has the agent's name, else of {known[0]}" if hooks else ""
        sources.warn(several, f"{what}{chosen}", at_key=True)
    return (known[0] if known else None), (tuple(named.values()) if hooks else ())


def _by_its_id(target: Node) -> Node:
    """A target that is written as the key of what is said of it, as in `{"openai:gpt-5": {label: gpt}}`."""
    (name, said), *others = target.value.items() or [("", None)]
    if others or not isinstance(said, dict):
        return target
    return target.child(name).with_value({"id": name, **said})
