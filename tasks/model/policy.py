"""What gates.yaml and quarantine.yaml say: the suites' defaults, what each gate blocks on, and what does not block."""

import re
from collections.abc import Iterable
from datetime import date
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from passgate.tasks.model.base import Frozen, Seconds, Share, Text
from passgate.tasks.model.task import MOST_TRIALS, Budgets, EvalTask, GateName, Metric, Risk, Suite

_LEAST_CONFIRMING = 20
DEFAULT_BRANCH = "main"  # The branch that changes are merged into, by default
# What git takes for no name, or for an expression that means some commit: `git help check-ref-format`.
_NO_NAME = re.compile(r"^-|^HEAD$|\.\.|@\{|[\x00-\x20\x7f~^:?*\[\\]|^/|/$|//|(^|/)\.|\.$|\.lock(/|$)")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def is_branch_name(name: str) -> bool:
    """Return whether git accepts this name for a branch."""
    return bool(name) and not _NO_NAME.search(name)


def _day(value: Any) -> Any:
    """Convert a text to the day that it names, and return other values unchanged. Raise `ValueError`."""
    if not isinstance(value, str):
        return value
    # pydantic alone would also take a text of seconds since 1970 for a day, and Python 20261231.
    try:
        day = date.fromisoformat(value) if _DAY.fullmatch(value) else None
    except ValueError:
        day = None
    if day is None:
        raise ValueError("expected a day of the calendar as in 2026-12-31")
    return day


class QuarantineEntry(Frozen):
    """One task that does not block until it is repaired. Vetoes of it block all the same."""

    task: Text
    """`suite/task_id`, or the task_id."""
    owner: Text
    """Who repairs it."""
    reason: Text
    issue: Text
    """A link to where the repair is followed."""
    expires: Annotated[date, BeforeValidator(_day)]
    """The last day (UTC) on which it does not block, as in 2026-12-31."""


class QuarantineFile(Frozen):
    """The whole of quarantine.yaml."""

    version: Annotated[int, Field(ge=1, le=1)] = 1
    most: Annotated[int, Field(ge=0, le=1000)] = 5
    """The most entries that there may be."""
    most_days: Annotated[int, Field(ge=1, le=365)] = 90
    """How far ahead `expires` may lie."""
    release_after: Annotated[int, Field(ge=1)] = 10
    """After so many green runs in a row on the baseline branch the task is proposed for release."""
    tasks: tuple[QuarantineEntry, ...] = ()


class Rule(StrEnum):
    """What a gate can block on."""

    SAFETY_VIOLATION = "safety_violation"
    FORBIDDEN_TOOL = "forbidden_tool"
    GOLDEN_REGRESSION = "golden_regression"
    TASK_FAILED = "task_failed"
    SUITE_REGRESSION = "suite_regression"
    THRESHOLD = "threshold"
    LATENCY = "latency"
    COST = "cost"
    MISSING_EVIDENCE = "missing_evidence"
    SIGN_OFF = "sign_off"


VETOES = frozenset({Rule.SAFETY_VIOLATION, Rule.FORBIDDEN_TOOL})  # No other result can offset a violation of these


class SuitePolicy(Frozen):
    """What a task of a suite has when it does not say otherwise. A task may not raise `max_steps`."""

    k: Annotated[int, Field(ge=1, le=MOST_TRIALS)]
    metric: Metric
    max_steps: Annotated[int, Field(ge=1)]
    """The suite's limit: the default of its tasks and the most that any of them may ask for."""
    budgets: Budgets = Budgets()
    """Defaults of the other budgets."""


class Limits(Frozen):
    """How much dearer than the baseline a run may be."""

    latency_p95_increase_pct: Annotated[float, Field(ge=0)] | None = None
    latency_p95_increase_ms: Annotated[float, Field(ge=0)] | None = None
    cost_increase_pct: Annotated[float, Field(ge=0)] | None = None
    task_increase_pct: Annotated[float, Field(ge=0)] | None = 100
    """The limit of a single task, of latency and of cost where these have one; `null`: none."""
    latency_floor_ms: Annotated[float, Field(ge=0)] = 1000
    """An increase by less exceeds no limit in percent."""
    cost_floor_usd: Annotated[float, Field(ge=0)] = 0.001
    """The same of what a trial costs."""

    @property
    def rules(self) -> frozenset[Rule]:
        """Which of latency and cost have a limit."""
        latency = (self.latency_p95_increase_pct, self.latency_p95_increase_ms)
        found = {Rule.LATENCY} if any(limit is not None for limit in latency) else set()
        return frozenset(found | ({Rule.COST} if self.cost_increase_pct is not None else set()))


class Regression(Frozen):
    """How a failed task is held against its baseline.

    `strict`: green at the baseline and red now is a regression. `evidence`: such a task gets confirming trials until
    they show that it has fallen or that it is as it was.
    """

    mode: Literal["strict", "evidence"] = "evidence"
    suites: Annotated[tuple[Suite, ...], Field(min_length=1)] = (Suite.GOLDEN, Suite.ADVERSARIAL, Suite.FAILURE_REPLAYS)
    """Whose tasks get confirming trials. Vetoes never do."""
    alpha: Risk = 0.02
    """How often a gate may block an unchanged agent for a regression, over all its tasks together."""
    max_trials: Annotated[int, Field(ge=1, le=500)] = 60
    """The most trials of one task, its first k included."""
    max_confirming: Annotated[float, Field(ge=0, le=100)] = 1.0
    """The most confirming trials of a run, as a multiple of its planned ones; 20 in smaller runs, none with 0."""
    undecided: Literal["block", "warn"] = "block"
    """What a task does that is still undecided then."""


class Admission(Frozen):
    """A task blocks once so many of its newest trials on the baseline branch have passed."""

    passes: Annotated[int, Field(ge=1)] = 19
    of: Annotated[int, Field(ge=1)] = 20
    """At least `passes`."""


class Reuse(Frozen):
    """When an earlier verdict of a task stands: same task, graders, policy, agent and agent's files."""

    agent_files: Annotated[tuple[Text, ...], Field(min_length=1)]
    """Patterns of the files that make the agent, relative to the folder of the gates file, as in `src/**/*.py`."""
    max_age_days: Annotated[int, Field(ge=1, le=365)] = 7


class AlarmPolicy(Frozen):
    """What makes a run red in Prefect without making its verdict FAIL."""

    crashed_agents: bool = True
    """Every measured trial of a suite ended because the agent crashed or could not be started."""
    drift: bool = True
    """A lasting change for the worse that the history did not show before this run."""
    floors: dict[Suite, Share] = {}
    """The value (pass@k or pass^k, the mean over its tasks) that a suite must not fall below."""


class GatePolicy(Frozen):
    """One gate."""

    suites: Annotated[tuple[Suite, ...], Field(min_length=1)]
    blocks_on: tuple[Rule, ...] = ()
    """Rules whose reasons make the verdict FAIL; the others are reported without blocking."""
    thresholds: dict[Suite, Share] = {}
    """The least value (pass@k or pass^k, the mean over its tasks) of a suite."""
    limits: Limits = Limits()
    regression: Regression = Regression()
    admission: Admission | Literal[False] = False
    """What a new task has to show before it blocks; vetoes block always. `off`: nothing."""
    curtailment: bool = False
    """Whether trials are left out that cannot change the verdict any more."""
    reuse: Reuse | None = None
    reruns: Literal["separate", "together"] = "separate"
    """Whether trials of earlier runs of the same commit count `together` with those of a run."""
    sign_off: bool = False
    """Whether a person must approve what would be a PASS."""
    alarm: AlarmPolicy | Literal[False] = False
    """What raises an alarm, whatever the verdict is. `off`: nothing."""
    integrity: Annotated[
        Literal["merge_base", "off"],
        BeforeValidator(lambda given: "off" if given is False else given),  # what YAML makes of a plain `off`
        WithJsonSchema({"enum": ["merge_base", "off", False]}),
    ] = "merge_base"
    """Whose files judge a change that edits suites, graders, policy, prices, quarantine or pins."""

    def most_confirming(self, planned: int) -> int:
        """Return the most confirming trials of a run with this many planned ones. A small run gets enough for one."""
        if self.regression.mode == "strict" or not self.blocks_on or not self.regression.max_confirming:
            return 0
        return max(int(self.regression.max_confirming * planned), _LEAST_CONFIRMING)

    @property
    def suites_alpha(self) -> float:
        """The share of `regression.alpha` that the tests of whole suites have: half, where they may block."""
        return self.regression.alpha / 2 if Rule.SUITE_REGRESSION in self.blocks_on else 0.0


class Concurrency(Frozen):
    trials: Annotated[int, Field(ge=1)] = 8
    """Trials at once."""
    processes: Annotated[int, Field(ge=1)] = 4
    """Local processes at once, over all trials."""


class JudgePolicy(Frozen):
    """Who grades by rubrics: recorded replies, or a model behind an endpoint.

    PASSGATE_JUDGE_BASE_URL and PASSGATE_JUDGE_MODEL go before `base_url` and `model`.
    """

    recorded: Text | None = None
    """A folder of recorded replies, relative to the suites folder."""
    base_url: Text | None = None
    """As in `https://host/v1`."""
    model: Text | None = None
    # Left out of what is written down where nothing is set, so that digests of policies stay as they were.
    api: Annotated[Text, Field(exclude_if=lambda api: api == "chat_completions")] = "chat_completions"
    """The API of the endpoint: `chat_completions`, `responses`, `messages` or `gemini`."""
    api_key_variable: Text = "PASSGATE_JUDGE_API_KEY"
    """The environment variable that holds the key."""
    timeout_seconds: Seconds = 60
    """How long the model may be silent."""
    votes: Annotated[int, Field(ge=1, le=99)] = 1
    """How often the model is asked about each rubric: the median of the scores counts, of assertions the majority."""
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    """The model's own when not given."""


class BaselinePolicy(Frozen):
    branch: Text = DEFAULT_BRANCH
    """Runs of the commits that a change shares with this branch are what it is compared with."""
    runs: Annotated[int, Field(ge=1, le=1000)] = 20
    """The newest so many runs are pooled."""
    young: Literal["report", "block"] = "report"
    """What a failed task does while its baseline is too young to guard it: `report` blocks only what confirming trials
    show to have fallen."""


class Policy(Frozen):
    """The whole of gates.yaml."""

    version: Annotated[int, Field(ge=1, le=1)] = 1
    suites: dict[Suite, SuitePolicy]
    gates: dict[GateName, GatePolicy]
    concurrency: Concurrency = Concurrency()
    error_retries: Annotated[int, Field(ge=0, le=10)] = 1
    """How often a trial that could not be measured is tried again."""
    baseline: BaselinePolicy = BaselinePolicy()
    isolation: Literal["required", "preferred"] = "preferred"
    """`required`: where bubblewrap does not work, no agent is run but the reference solutions."""
    judge: JudgePolicy = JudgePolicy()
    secrets: tuple[Text, ...] = ()
    """Environment variables whose values are masked in everything that is written."""
    not_secrets: tuple[Text, ...] = ()
    """Environment variables whose values are not masked although their names are like those of secrets."""
    history: Text = ".passgate/history"
    """Folder or URL (`s3://...`) of the history."""

    def into(self, branch: str) -> "Policy":
        """Return the policy with this default branch as `baseline.branch`, unless that is set."""
        if not branch or "branch" in self.baseline.model_fields_set:
            return self
        return self.model_copy(update={"baseline": self.baseline.model_copy(update={"branch": branch})})

    def gate_tasks(self, gate: GateName, tasks: Iterable[EvalTask]) -> list[EvalTask]:
        """Return those of some tasks that a gate of this policy runs."""
        return [task for task in tasks if gate in task.gates and task.suite in self.gates[gate].suites]
