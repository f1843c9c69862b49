"""How tests run, wherever an eval file sets it: time, target, threshold and repeats."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from passgate.tasks.formats.evals.node import Node, as_mapping
from passgate.tasks.formats.evals.raw import RawTest
from passgate.tasks.formats.evals.words import AS_WHOLE, EvalWords, Parts, Sources, present, take_apart, word
from passgate.tasks.formats.evals.workspaces import read_hooks, read_workspace
from passgate.tasks.formats.schema_check import shown, wrong_type
from passgate.tasks.model.base import Amount, Seconds, Share
from passgate.tasks.model.task import Budgets, Metric, Scoring, TargetHooks, Trials

Repeats = Annotated[int, Field(ge=1, le=1000), AS_WHOLE]
STRATEGIES = {
    "pass_all": Metric.PASS_HAT_K,
    "pass_any": Metric.PASS_AT_K,
    "pass_at_k": Metric.PASS_AT_K,
    "mean": Metric.MEAN,
    "confidence_interval": Metric.CONFIDENCE_INTERVAL,
}


class LimitWords(EvalWords):
    """What a trial may take and must reach."""

    threshold: Share = word("The least score that passes a test.")
    timeout_seconds: Seconds = word("How long a trial may take.")
    budget_usd: Amount = word("US dollars that a run may cost; `--max-cost` holds it.")


class GraderLists(EvalWords):
    """The graders, in the names that their list has had."""

    assertions: list[Any] = word("Graders; a text is an item of a rubric.", "assertions", "assert", "evaluators")


class Run(LimitWords):
    """What goes before the file's policy."""

    repeat: Repeats | dict[str, Any] = word("How often a test is tried.")
    runs: Repeats = word("How often a test is tried.")
    early_exit: bool = word("Whether trials stop when the test is decided; passgate has its own rule.")


class PolicyWords(Run, GraderLists):
    """How the tests are run."""

    UNUSED = (
        *("name", "workers", "cache", "cache_path", "fail_on_error", "verbose", "keep_workspaces", "trace_file"),
        *("max_retries", "retry_errors", "otel_file", "export_otel", "otel_backend", "otel_capture_content"),
        *("otel_group_turns", "pool_workspaces", "pool_slots", "agent_rules", "dependency_policy"),
    )

    trials: Repeats | dict[str, Any] = word("The same as `repeat`.")
    target: str | dict[str, Any] = word("An agent of targets.yaml; passgate takes the one of --agent.")
    targets: list[Any] | str = word("Agents of targets.yaml; passgate takes the one of --agent.")
    workspace: dict[str, Any] | str = word("How the workspace is kept.")
    skip_defaults: bool = word("Of a test: without the input and graders of the file.")
    agent: Any = word("The agent.")
    model: Any = word("The agent's model.")
    agent_options: Any = word("Options of the agent; passgate has none.")
    sandbox: Any = word("Sandbox of the agent; passgate has its own.")


class Execution(PolicyWords):
    """How the tests are run."""

    NULL = frozenset({"timeout_seconds"})

    timeout_seconds: Annotated[int, Field(ge=1, le=3600), AS_WHOLE] = word("How long a trial may take.")


class EvaluateOptions(Run):
    """Repeats and limits of files with `prompts`."""

    UNUSED = (
        *("max_concurrency", "cache", "delay", "show_progress_bar", "generate_suggestions", "max_eval_time_ms"),
        "cost_limit_usd",
    )

    timeout_ms: Annotated[float, Field(gt=0)] = word("How long a trial may take.")
    filter_range: Any = word("Which tests are run; passgate has `--task`.")
    filter_pattern: Any = word("Which tests are run; passgate has `--task`.")
    filter_sample: Any = word("Which tests are run; passgate has `--task`.")


class RepeatWords(EvalWords):
    """How often a test is tried, and how the trials decide."""

    count: Repeats = word("How many trials.", needed=True)
    strategy: Literal["pass_all", "pass_any", "pass_at_k", "mean", "confidence_interval"] = word(
        "How the trials decide the test."
    )
    cost_limit_usd: Amount = word("US dollars that the trials may cost together; not used.")
    early_exit: bool = word("Whether trials stop when the test is decided; passgate has its own rule.")


BLOCKS: dict[str, type[EvalWords]] = {
    "run": Run,
    "execution": Execution,
    "experiment": PolicyWords,
    "policy": PolicyWords,
    "evaluate_options": EvaluateOptions,
}
_TARGET_NAMES = ("name", "label", "id", "use_target")  # the keys that may hold the name of a target
_FILTERS = ("filter_range", "filter_pattern", "filter_sample")
# What a target says of how it is asked and what it answers.
_OF_TARGETS = ("transform", "prompts", "environment", "env", "inputs", "delay", "runtime")
_NOT_OF_TARGETS = "is not used: the agent is that of --agent, described in agents.yaml"
_NOT_HAD = {name: f"passgate has no `{name}` of another tool" for name in ("sandbox", "agent_options")}
_NAME_OF_RUN = "the name of a run stands under `tags`, as in {experiment: NAME}; here stand target, repeat and the like"
Level = Sequence[Parts]  # mappings of one level must agree


def runtime_fields(test: Parts, raw: RawTest, sources: Sources) -> dict[str, Any]:
    """Return how a test is run and scored, as fields of a task; `environment` is a mapping of its fields."""
    root, own = raw.runtime.root, read_blocks(test, sources)
    of_includes = [take_apart(run, Run, sources) for run in raw.runs]
    of_file = (*read_blocks(root, sources).values(), root)
    # Strongest first: the test's `run`, the `run` of its includes, the rest of the test, the file that is run.
    strongest = [[run] for run in (*present([own.get("run")]), *of_includes)]
    levels: list[Level] = [*strongest, present((test, own.get("execution"))), of_file]
    # What a whole run may cost is none of a trial's budgets.
    if (cost := _first_value(levels, ("budget_usd",), sources)) is not None:
        sources.warn(cost[1], "what a run may cost is said on the command line, with --max-cost", at_key=True)
    target, hooks = _target(levels, sources)
    limit = _first_value(levels, ("timeout_seconds", "timeout_ms"), sources)
    seconds = None if limit is None else limit[1].value / (1000 if limit[0] == "timeout_ms" else 1)
    trials = _trials(levels, sources)
    threshold = _first_value(levels, ("threshold",), sources)
    if threshold is not None and threshold[1].value == 0:
        sources.refuse(threshold[1], "with a threshold of 0 nothing can fail")
    given = {"threshold": threshold[1].value} if threshold is not None else {}
    workspace = read_workspace(test, raw, hooks, sources)
    return {
        "environment": {"budgets": Budgets(max_seconds=seconds), "workspace": workspace},
        "trials": trials,
        "scoring": Scoring(rule="weighted_average", **given),
        "target": target,
    }


def read_blocks(said: Parts, sources: Sources) -> dict[str, Parts]:
    """Return the runtime mappings of a test or a file; what is wrong or unavailable goes to the complaints."""
    blocks: dict[str, Parts] = {}
    for name, words in BLOCKS.items():
        block = said.get(name)
        if block is None:
            continue
        if message := wrong_type(block.value, dict):
            is_name = name == "experiment" and isinstance(block.value, str)
            sources.refuse(block, f"{message}: {_NAME_OF_RUN}" if is_name else message)
            continue
        parts = take_apart(block, words, sources)
        sources.cannot_have(parts, _NOT_HAD)
        for asked in parts.only(*_FILTERS).values():
            sources.warn(asked, "all tests are run; choose some with --task", at_key=True)
        blocks[name] = parts
    return blocks


def _first_value(levels: Sequence[Level], names: Sequence[str], sources: Sources) -> tuple[str, Node] | None:
    """Return the value of the first level that has one of the keys, and which."""
    for level in levels:
        said = [(name, part) for block in level for name in names if (part := block.get(name)) is not None]
        if said:
            sources.agree([part for _, part in said])
            return said[0]
    return None


def _trials(levels: Sequence[Level], sources: Sources) -> Trials:
    """Return the trials of a test. What is not set here comes from its suite."""
    _, said = _first_value(levels, ("repeat", "trials", "runs"), sources) or ("", None)
    if said is None or not isinstance(said.value, dict):
        return Trials(k=said.value if said is not None else None)
    parts = take_apart(said, RepeatWords, sources)
    k, name = parts.value("count"), parts.value("strategy")
    if name == "confidence_interval" and k == 1:
        sources.refuse(said, "a confidence interval needs a count of 2 or more")
    return Trials(k=k, metric=STRATEGIES.get(name))


def _target(levels: Sequence[Level], sources: Sources) -> tuple[str | None, Sequence[TargetHooks]]:
    """Return the name of the first target, and the hooks of all of them where any has hooks."""
    one = _first_value(levels, ("target", "provider", "model", "agent"), sources)
    several = _first_value(levels, ("targets", "providers"), sources)
    named: dict[str, TargetHooks] = {}
    for _, said in present((one, several)):
        for target in said.items() if isinstance(said.value, list) else (said,):
            read = _read_target(target, sources)
            if read is not None and (isinstance(target.value, dict) or read.target not in named):
                named[read.target] = read
    known, hooks = list(named), [each for each in named.values() if each != TargetHooks(target=each.target)]
    if several is not None and len(known) > 1:
        others = ", ".join(known[1:])
        what = f"a run has one agent, that of --agent: it is not run with {others} too"
        chosen = f"; the hooks are those of the target that has the agent's name, else of {known[0]}" if hooks else ""
        sources.warn(several[1], f"{what}{chosen}", at_key=True)
    return (known[0] if known else None), (tuple(named.values()) if hooks else ())


def _read_target(target: Node, sources: Sources) -> TargetHooks | None:
    """Return a target by its name, with its hooks; `None` without a name."""
    if not isinstance(target.value, dict):
        if not isinstance(target.value, str):
            sources.refuse(target, f"expected the name of a target, not {shown(target.value)}")
        return TargetHooks(target=target.value) if target.value and isinstance(target.value, str) else None
    items = [*target.value.items()]
    if len(items) == 1 and isinstance(items[0][1], dict):  # as in `{"openai:gpt-5": {label: gpt}}`
        target = target.child(items[0][0]).with_value({"id": items[0][0], **items[0][1]})
    for asked in present(target.get(key) for key in _OF_TARGETS):
        sources.warn(asked, _NOT_OF_TARGETS, at_key=True)
    name = next((str(target.value[key]) for key in _TARGET_NAMES if target.value.get(key) is not None), None)
    if name:
        return TargetHooks(target=name, **read_hooks(as_mapping(target.get("hooks")), sources))
    if "hooks" in target.value:
        sources.refuse(target, "a target with hooks needs a `name`")
    return None
