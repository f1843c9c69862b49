"""How and where tests are run, wherever an eval file says so: time, target, threshold, repeats and workspace."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from passgate.tasks.formats.evals.map.forms import LIST, MAPPING, NUMBER, TEXT, TRUTH, WHOLE
from passgate.tasks.formats.evals.map.sources import Sources, present
from passgate.tasks.formats.evals.read.documents import FILE_SCHEME
from passgate.tasks.formats.evals.read.node import (
    Complaints,
    Key,
    Keys,
    Node,
    Parts,
    agreed,
    as_count,
    as_items,
    as_mapping,
    as_number,
    as_one_of,
    as_text,
    as_texts,
    take_apart,
)
from passgate.tasks.formats.evals.read.raw import RawTest
from passgate.tasks.formats.evals.read.top_level import check_execution, is_timeout
from passgate.tasks.formats.rules import HOOKS
from passgate.tasks.formats.schema_check import shown, wrong_kind
from passgate.tasks.model.task import Budgets, Hook, Metric, Repository, Scoring, Trials, Workspace

_ANY, _TEXT, _NUMBER, _TRUTH = Key(), Key(TEXT), Key(NUMBER), Key(TRUTH)
_COUNT, _TEXTS, _COMMAND = Key((*WHOLE, *MAPPING)), Key(LIST, items=TEXT), Key((*MAPPING, *TEXT, *LIST))
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
WORKSPACE_KEYS: Keys = {
    **dict.fromkeys(("template", "isolation", "mode", "path", "name", "description"), _TEXT),
    "repos": Key(LIST, items=MAPPING),
    **dict.fromkeys(("hooks", "env"), Key(MAPPING)),
    "docker": _ANY,
}
REQUIREMENT_KEYS = dict.fromkeys(("required_commands", "required_python_modules"), _TEXTS)
_OF_DOCKER = ("context", "dockerfile", "resources", "mounts", "secrets")
ENVIRONMENT_KEYS: Keys = {
    **dict.fromkeys(("type", "workdir", "name"), _TEXT),
    "setup": _COMMAND,
    "env": Key(MAPPING),
    **dict.fromkeys(("image", "docker", *_OF_DOCKER), _ANY),
}
HOOKS_KEYS: Keys = {"enabled": _TRUTH, **dict.fromkeys(HOOKS, _COMMAND)}
HOOK_KEYS: Keys = {
    "command": Key((*TEXT, *LIST), spellings=("script",)),
    **dict.fromkeys(("cwd", "reset"), _TEXT),
    **dict.fromkeys(("timeout_ms", "timeout_seconds"), _NUMBER),
}
CHECKOUT_KEYS: Keys = {"commit": Key(TEXT, spellings=("base_commit", "ref")), "ancestor": Key(WHOLE)}
REPOSITORY_KEYS: Keys = {
    "repo": Key(TEXT, spellings=("url",), needed=True),
    "path": _TEXT,
    "sparse": _TEXTS,
    "checkout": Key(MAPPING),
    **CHECKOUT_KEYS,
}
_TARGET_NAMES = ("name", "label", "id", "use_target")  # the keys that may hold the name of a target
_MOST_TRIALS = 1000
_MOST_ANCESTORS = 100_000
_NOT_HAD = {key: f"passgate has no `{key}` of another tool" for key in ("sandbox", "agent_options")}
_NAME_OF_RUN = "the name of a run stands under `tags`, as in {experiment: NAME}; here stand target, repeat and the like"
_NO_DOCKER = "passgate runs nothing in Docker"
_OF_DOCKER_ALONE = "is for `type: docker`, which passgate does not run; leave it out, and limit trials by budgets"


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


def run_of(test: Parts, raw: RawTest, compat: Any, sources: Sources) -> dict[str, Any]:
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
    environment = {"budgets": budgets, "workspace": _workspace_of(test, raw, sources)}
    trials = _trials_of(runtime, complaints)
    said_threshold = runtime.said(("threshold",), complaints)
    threshold = as_number(said_threshold, complaints, most=1)
    if said_threshold is not None and threshold == 0:
        complaints.problems.append(said_threshold.problem("with a threshold of 0 nothing can fail"))
    given = {"threshold": threshold} if threshold else {}
    return {
        "environment": environment,
        "trials": trials,
        "scoring": Scoring(rule="weighted_average", compat=compat, **given),
        "target": _target_of(runtime, sources),
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


def _target_of(runtime: Runtime, sources: Sources) -> str | None:
    one = runtime.said(("target", "provider", "model", "agent"), sources.complaints)
    several = runtime.said(("targets", "providers"), sources.complaints)
    names: dict[str, None] = {}
    for said in present((one, several)):
        for target in said.items() if isinstance(said.value, list) else (said,):
            name = target.value
            if isinstance(name, dict):
                sources.cannot_have(target, {"hooks": "passgate has no hooks of targets"})
                name = next((str(name[key]) for key in _TARGET_NAMES if name.get(key) is not None), None)
            elif not isinstance(name, str):
                sources.refuse(target, f"expected the name of a target, not {shown(name)}")
            if isinstance(name, str) and name:
                names[name] = None
    known = list(names)
    if several is not None and len(known) > 1:
        others = ", ".join(known[1:])
        sources.warn(several, f"a run has one agent, that of --agent: it is not run with {others} too", at_key=True)
    return known[0] if known else None


def _workspace_of(test: Parts, raw: RawTest, sources: Sources) -> Workspace | None:
    """The workspace of a test. Its own keys win over its file's. Without its own it takes the folder beside it."""
    own = _workspaces_of(test.node, sources)
    policies = present(raw.runtime.root.get(name) for name in ("experiment", "execution"))
    modes = present(as_mapping(policy.get("workspace")) for policy in policies)
    said = (*own, *_workspaces_of(raw.context.root, sources), *modes)
    fields: dict[str, Any] = {}
    for node in reversed(said):
        read = _environment if "workdir" in node.value or "type" in node.value else _workspace
        fields |= read(node, sources)
    depends = test.get("depends_on")
    if depends is not None and depends.value:
        # Every trial stands alone, so a test cannot need what another one leaves behind.
        if any(node.value.get("isolation") == "shared" for node in said):
            sources.cannot_run(depends, "every trial has a workspace of its own: it cannot have that of another test")
        else:
            sources.warn(depends, "every trial stands alone: it is run whatever comes of other tests", at_key=True)
    if raw.workspace is not None and not own:
        fields["template"] = sources.ground.relative(raw.workspace)
    return Workspace(**fields) if fields else None


def _workspaces_of(node: Node, sources: Sources) -> list[Node]:
    """The workspace mappings of a test or a file, written there or in a file that it names."""
    found = []
    for said in present(node.get(key) for key in ("workspace", "environment")):
        mapping: Node | None = said
        if isinstance(said.value, str):
            path = sources.path(said, said.value.removeprefix(FILE_SCHEME))
            mapping = sources.read_file(path) if path is not None else None
        if mapping is not None and not sources.refuses_kind(mapping, MAPPING):
            found.append(mapping)
    return found


def _workspace(node: Node, sources: Sources) -> dict[str, Any]:
    parts = take_apart(node, WORKSPACE_KEYS, sources.complaints)
    as_one_of(parts.get("isolation"), ("shared", "per_test", "per_case"), sources.complaints)
    mode = as_one_of(parts.get("mode"), ("pooled", "temp", "static"), sources.complaints)
    itself = parts.get("path") or (parts.get("mode") if mode == "static" else None)
    if itself is not None:
        sources.cannot_run(itself, "every trial has a copy: no folder can be worked in itself", at_key=True)
    sources.cannot_have(parts, {"docker": _NO_DOCKER})
    fields: dict[str, Any] = _template(parts.get("template"), sources)
    if parts.get("repos") is not None:
        repositories = (item for item in as_items(parts.get("repos")) if isinstance(item.value, dict))
        fields["repos"] = present(_repository(item, sources) for item in repositories)
    fields |= _hooks(as_mapping(parts.get("hooks")), sources)
    if needs := as_mapping(parts.get("env")):
        said = take_apart(needs, REQUIREMENT_KEYS, sources.complaints).values
        fields |= {key: as_texts(part) for key, part in said.items()}
    return fields


def _template(node: Node | None, sources: Sources) -> dict[str, Any]:
    name = as_text(node)
    return {} if node is None or name is None else {"template": sources.folder(node, name)}


def _environment(node: Node, sources: Sources) -> dict[str, Any]:
    parts = take_apart(node, ENVIRONMENT_KEYS, sources.complaints)
    kind = as_one_of(parts.get("type"), ("host", "docker"), sources.complaints)
    if kind == "docker" or parts.get("docker") is not None or parts.get("image") is not None:
        sources.cannot_run(node, _NO_DOCKER, at_key=True)
    else:
        for asked in parts.only(*_OF_DOCKER).values():
            sources.refuse(asked, _OF_DOCKER_ALONE, at_key=True)
    fields = _template(parts.get("workdir"), sources)
    if setup := parts.get("setup"):
        said = setup if isinstance(setup.value, dict) else setup.with_value({"command": setup.value})
        hook = _command(take_apart(said, HOOK_KEYS, sources.complaints), sources)
        fields |= {} if hook is None else {"before_all": hook}
    if variables := as_mapping(parts.get("env")):
        fields["environment"] = {}
        for key, value in variables.value.items():
            if isinstance(value, str | int | float) and not isinstance(value, bool):
                fields["environment"][str(key)] = str(value)
            else:
                sources.refuse(variables.child(key), "expected a text or a number")
    return fields


def _hooks(node: Node | None, sources: Sources) -> dict[str, Hook | None]:
    """The hooks by their names; each is `None` when hooks are not enabled."""
    if node is None:
        return {}
    hooks = take_apart(node, HOOKS_KEYS, sources.complaints)
    if hooks.value("enabled") is False:
        return dict.fromkeys(HOOKS)
    read: dict[str, Hook | None] = {}
    for name, said in hooks.only(*HOOKS).items():
        if not isinstance(said.value, dict):
            read[name] = _command(Parts(said, {"command": said}, {}, sound=True), sources)
            continue
        hook = take_apart(said, HOOK_KEYS, sources.complaints)
        as_one_of(hook.get("reset"), ("none", "fast", "strict"), sources.complaints)
        # A hook that only resets has nothing to do: every trial begins with a fresh workspace.
        if hook.get("command") is not None or hook.get("reset") is None:
            read[name] = _command(hook, sources)
    return {name: hook for name, hook in read.items() if hook is not None}


def _command(hook: Parts, sources: Sources) -> Hook | None:
    command, cwd = hook.get("command"), hook.get("cwd")
    if not hook.sound:
        return None
    if command is None:
        sources.refuse(hook.node, "the key 'command' is missing")
        return None
    seconds = as_number(hook.get("timeout_seconds"), sources.complaints)
    milliseconds = as_number(hook.get("timeout_ms"), sources.complaints)
    limit = seconds or (milliseconds and milliseconds / 1000)
    words = command.value
    if isinstance(words, str) and words.strip():
        words = ["sh", "-c", words]
    elif not isinstance(words, list) or not words or not all(isinstance(word, str) and word for word in words):
        sources.refuse(command, f"expected a command, a text or a list of texts, not {shown(words)}")
        words = []
    folder = as_text(cwd)
    where = sources.ground.relative(command.folder) if cwd is None or not folder else sources.folder(cwd, folder)
    given: dict[str, Any] = {"timeout_seconds": limit} if limit else {}
    return Hook(command=tuple(words), cwd=where, **given) if words else None


def _repository(node: Node, sources: Sources) -> Repository | None:
    parts = take_apart(node, REPOSITORY_KEYS, sources.complaints)
    if not parts.sound:
        return None
    checkout = parts.get("checkout")
    pin = parts if checkout is None else take_apart(checkout, CHECKOUT_KEYS, sources.complaints)
    # The address is a URL or `owner/name`. A path, which begins with a dot or a slash, must exist.
    address, path = as_text(parts.values["repo"]), as_text(parts.get("path")) or "."
    if address is None:
        sources.cannot_run(parts.values["repo"], "there is no repository without an address")
    elif address.startswith((".", "/")):
        address = sources.folder(parts.values["repo"], address)
    if not pin.sound or address is None:
        return None
    if path.startswith("/") or ".." in path.split("/"):
        sources.refuse(parts.values["path"], f"{path!r} is outside the workspace")
        return None
    return Repository(
        path=path,
        repo=address,
        commit=as_text(pin.get("commit")),
        ancestor=as_count(pin.get("ancestor"), sources.complaints, most=_MOST_ANCESTORS) or 0,
        sparse=as_texts(parts.get("sparse")),
    )
