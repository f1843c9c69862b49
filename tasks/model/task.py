"""A task: as its file says it (`TaskFile`) and as the pipeline uses it (`EvalTask`)."""

import json
import re
from enum import StrEnum
from typing import Annotated, Any, Final, Literal

from pydantic import Field, StringConstraints

from passgate.tasks.model.base import Frozen, Seconds, Share, Text, one_of
from passgate.tasks.model.graders import Grader, grader_vetoes
from passgate.tasks.model.messages import TaskMessage, as_prompt
from passgate.tasks.model.names import GateName as GateName
from passgate.tasks.model.names import Suite as Suite

Risk = Annotated[float, Field(gt=0, lt=0.5)]
IN_TEMPLATE: Final = re.compile(r"\$\{\{\s*(\w+)\s*\}\}")  # An environment variable in a header or in a variable
MOST_TRIALS: Final = 100_000  # Trials of one task: more than any estimate needs


class Repository(Frozen):
    """A git repository, checked out in the workspace."""

    path: Text = "."
    """Where in the workspace."""
    repo: Text
    """A URL, a path relative to the suites folder, or `owner/name` of GitHub."""
    commit: Text | None = None
    """A commit, tag or branch; the default branch when not given."""
    ancestor: Annotated[int, Field(ge=0)] = 0
    """How many first parents before `commit`."""
    sparse: tuple[Text, ...] = ()
    """Only these folders."""


class Hook(Frozen):
    """A command of the suites' authors; it sees the suites folder and has the network."""

    command: Annotated[tuple[Text, ...], Field(min_length=1)]
    """The program and its arguments."""
    cwd: Text = "."
    """Where it runs, relative to the suites folder."""
    timeout_seconds: Seconds = 60


class Hooks(Frozen):
    """Commands around the trials in a workspace."""

    before_all: Hook | None = None
    """Once per run, in the copy that the trials' workspaces are copied from."""
    before_each: Hook | None = None
    """In every trial's own workspace, before the agent."""
    after_each: Hook | None = None
    """In every trial's own workspace, after the graders."""
    after_all: Hook | None = None
    """Once at the end of the run."""


class TargetHooks(Hooks):
    """Commands around the trials of one agent: after the workspace's own before a trial, before them after it."""

    target: Text
    """The agent's name."""


class AgentRules(Frozen):
    """Files and folders of the suites folder that are copied into the workspace. Without any of a kind, those that the
    workspace has at their usual places count."""

    skills: tuple[Text, ...] = ()
    hooks: tuple[Text, ...] = ()
    agents: tuple[Text, ...] = ()
    rules: tuple[Text, ...] = ()


class Extension(Frozen):
    """A step around trials that tells the next one what it found. Give `module` or `agent_rules`."""

    hook: Literal["beforeAll", "beforeEach", "afterEach", "afterAll"]
    """When it runs, as the hook `before_all` does and so on."""
    module: Text | None = None
    """A JavaScript or TypeScript module, relative to the suites folder, that exports a function of the hook's name."""
    agent_rules: AgentRules | None = None
    """What tells the paths of an agent's rules."""
    timeout_seconds: Seconds = 300

    _one_way = one_of("module", "agent_rules")


class Workspace(Hooks):
    """How the workspace of a trial comes about: template, then repositories, then extensions and hooks."""

    template: Text | None = None
    """A folder that is copied, relative to the suites folder."""
    repos: tuple[Repository, ...] = ()
    extensions: tuple[Extension, ...] = ()
    """Run in this order, before the hook of the same name."""
    target_hooks: tuple[TargetHooks, ...] = ()
    """Those of the agent that is run; of the first entry where none has its name."""
    folder: Text | None = None
    """The folder of the file that describes the workspace, relative to the suites folder, where it is a file of its
    own. Extensions receive it."""
    environment: dict[str, str] = {}
    """Variables for the agent."""
    required_commands: tuple[Text, ...] = ()
    """Programs that the machine must have."""
    required_python_modules: tuple[Text, ...] = ()


class Metric(StrEnum):
    """How k trials decide a task: `pass@k` one success is enough, `pass^k` all must succeed; by `mean` their mean score
    reaches the threshold, by `confidence_interval` the lower end of its 95 % interval does.
    """

    PASS_AT_K = "pass@k"
    PASS_HAT_K = "pass^k"
    MEAN = "mean"
    CONFIDENCE_INTERVAL = "confidence_interval"


BY_TRIALS: Final = frozenset({Metric.PASS_AT_K, Metric.PASS_HAT_K})
"""The metrics that ask which trials passed, not for their scores."""


class Budgets(Frozen):
    """Limits of one trial; none where nothing is said. A step is one model call."""

    max_steps: Annotated[int, Field(ge=0)] | None = None
    max_tool_calls: Annotated[int, Field(ge=0)] | None = None
    max_tokens: Annotated[int, Field(ge=0)] | None = None
    """Tokens in and out together."""
    max_cost_usd: Annotated[float, Field(ge=0)] | None = None
    max_seconds: Seconds | None = None

    def over(self, defaults: "Budgets") -> "Budgets":
        """Return these limits, with the defaults for those that are not set."""
        return defaults.model_copy(update=self.model_dump(exclude_none=True))


class Reset(Frozen):
    """What brings a fresh copy of the sandbox into the task's starting state."""

    commands: tuple[Text, ...] = ()
    """Commands for `sh -c`, run in the workspace of every trial before the agent."""


ServerName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9-]{1,32}$")]


class Tool(Frozen):
    """A tool that the task gives to the agent, and that passgate runs. Give `command` or `function`."""

    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]
    description: Text
    parameters: dict[str, Any] = {"type": "object", "properties": {}}
    """JSON Schema of the arguments."""
    command: Text | None = None
    """For `sh -c` in the workspace. Gets the arguments as JSON on standard input; what it prints is the result."""
    function: Text | None = None
    """`FILE.py:NAME` of the suites folder: a Python function called in the workspace with the arguments by name."""
    timeout_seconds: Seconds = 30

    _one_way = one_of("command", "function")


class McpServer(Frozen):
    """An MCP server that the task gives to the agent: passgate stands between the two. Give `command` or `url`."""

    command: Text | None = None
    """For `sh -c` in the suites folder, once for each trial. It speaks MCP on its standard streams.
    PASSGATE_WORKSPACE names the agent's workspace."""
    url: Text | None = None
    """The address of a server that speaks streamable HTTP."""
    headers: dict[str, str] = {}
    """For `url`. Values may contain `${{ NAME }}`: the value of an environment variable."""
    variables: dict[str, str] = {}
    """Environment variables for `command`, with values as in `headers`."""
    timeout_seconds: Seconds = 60
    """The longest that a call may take."""

    _one_way = one_of("command", "url")


class Replay(Frozen):
    """A recording that answers tool calls in place of the tools."""

    transcript: Text
    """A recorded transcript of the suites folder: JSON with `messages`."""
    match: Literal["strict", "any_order"] = "strict"
    """`strict`: the recorded calls in the recorded order. `any_order`: each call takes the first recorded one that is
    equal to it and not taken yet."""


class SimulatedUser(Frozen):
    """Who goes on with the conversation after the agent's answer to `prompt`. Give `says` or `persona`."""

    says: tuple[Text, ...] = ()
    """What the user says, message by message."""
    persona: Text | None = None
    """Who the user is and what they want, for the judge model that plays them."""
    max_turns: Annotated[int, Field(ge=1, le=100)] = 8
    """The most messages of a played user, `prompt` included."""

    _one_way = one_of("says", "persona")


class Environment(Frozen):
    """Where a trial runs and within which limits."""

    sandbox: Text | None = None
    """A folder of `_shared/sandboxes/`; an empty workspace when not given."""
    reset: Reset = Reset()
    budgets: Budgets = Budgets()
    network: bool = False
    """Whether the agent may reach the network from an isolated sandbox."""
    tools: tuple[Tool, ...] = ()
    """Tools that passgate runs: for `openai:MODEL`, and over MCP for agents of other kinds."""
    mcp_servers: dict[ServerName, McpServer] = {}
    """MCP servers whose tools, resources and prompts the agent gets, by their names."""
    replay: Replay | None = None
    """A recording that answers the calls of `tools`."""
    user: SimulatedUser | None = None
    """Who goes on with the conversation; without one the agent answers `prompt` and is done."""
    workspace: Workspace | None = None
    """Template, repositories and hooks of an eval file; instead of `sandbox`."""


class Scoring(Frozen):
    """How the grades of a trial become its score and its status."""

    rule: Literal["all", "weighted_average"] = "all"
    """`all`: every grader must pass. `weighted_average`: the graders' scores by their weights reach `threshold`, and
    every required one passes."""
    threshold: Share = 0.8
    """The least score that passes. From 0.6 on a trial that fails is called borderline."""


class Trials(Frozen):
    k: Annotated[int, Field(ge=1, le=MOST_TRIALS)] | None = None
    """Trials of this task; its suite's default when not given."""
    metric: Metric | None = None
    """The rule that decides this task; its suite's default when not given."""


class Solution(Frozen):
    """Something that can stand for an agent: at least one of the three."""

    patch: Text | None = None
    """A patch file applied to the workspace (`git apply`)."""
    script: Text | None = None
    """A script run in the workspace with `sh`."""
    transcript: Text | None = None
    """A recorded transcript: JSON with `messages`."""


class Counterexample(Solution):
    """A wrong solution that the graders must catch; run it with `--agent oracle:NAME`."""

    name: Text


class Reference(Frozen):
    """What proves the graders: a solution that must pass and others that must fail."""

    solution: Solution
    counterexamples: tuple[Counterexample, ...] = ()


class GateSelection(Frozen):
    """Whether a gate takes this task; it does unless it is opted out here."""

    ci_merge_gate: bool = True
    nightly: bool = True
    release_candidate: bool = True


class TrackedMetrics(Frozen):
    """A group of metrics and which of them."""

    type: Text
    metrics: tuple[Text, ...] = ()


class TaskFile(Frozen):
    """One task as its YAML file says it."""

    task_id: str
    """Unique among all suites."""
    suite: Suite
    description: str
    tags: tuple[str, ...] = ()
    inputs: dict[str, Any]
    """What the agent is given; `prompt` is the text that it is asked."""
    environment: Environment = Environment()
    trials: Trials = Trials()
    graders: Annotated[tuple[Grader, ...], Field(min_length=1)]
    """All must pass for a trial to pass."""
    tracked_metrics: Annotated[tuple[Text | TrackedMetrics, ...], Field(json_schema_extra={"minItems": 1})]
    """Metrics shown for this task: names of groups (tokens, latency, tool_use, trajectory, safety, cost) or of columns.
    """
    gates: GateSelection = GateSelection()
    reference: Reference | None = None
    scoring: Scoring = Scoring()
    criteria: str = ""
    """What a good answer is, in words, for judges."""
    expected_output: Any = None
    """The answer that is hoped for, as a text or as JSON; what `oracle` says where there is no reference solution."""
    expected_messages: tuple[TaskMessage, ...] = ()
    """The same as messages, with tool calls; the last one is the answer."""
    note: str = ""
    """For judges only."""
    conversation_id: Text | None = None
    """Tasks of one conversation have the same."""
    metadata: dict[str, Any] = {}
    target: Text | None = None
    """The agent's name in the tool that the task was written for; passgate takes the one of --agent."""


class UnknownPart(Frozen):
    """Something that a task's file says and passgate does not know."""

    path: str
    value: Any


class EvalTask(Frozen):
    """One task, normalised: defaults filled in, every name resolved. `file` is relative to the working folder."""

    task_id: str
    suite: Suite
    description: str
    tags: tuple[str, ...] = ()
    inputs: dict[str, Any]
    sandbox: str | None = None
    reset: tuple[str, ...] = ()
    network: bool = False
    tools: tuple[Tool, ...] = ()
    mcp_servers: dict[str, McpServer] = {}
    replay: Replay | None = None
    user: SimulatedUser | None = None
    budgets: Budgets
    k: int
    metric: Metric
    graders: tuple[Grader, ...]
    tracked_metrics: tuple[str, ...]
    gates: frozenset[GateName]
    reference: Reference | None = None
    scoring: Scoring = Scoring()
    workspace: Workspace | None = None
    messages: tuple[TaskMessage, ...] = ()
    """What the agent is asked, where that is more than one text: the `messages` of the inputs."""
    criteria: str = ""
    expected_output: Any = None
    expected_messages: tuple[TaskMessage, ...] = ()
    note: str = ""
    metadata: dict[str, Any] = {}
    target: str | None = None
    test_id: str = ""
    """The id that its file gives it, where `task_id` has more to it."""
    suite_assumed: bool = False
    """Whether neither its file nor its folder names a suite."""
    cannot_run: tuple[str, ...] = ()
    """What the file asks for and passgate does not support, each with its place: a run with such a task is refused."""
    unknown: tuple[UnknownPart, ...] = ()
    """What the file says and passgate does not know: it has no effect, and is not in the digests."""
    file: str
    line: int = 1
    task_digest: str
    """Digest of everything but its name and the graders, with the files of the sandbox."""
    grader_digest: str
    """Digest of the graders with the files that they use."""

    @property
    def prompt(self) -> str:
        """What the agent is asked as one text: the `prompt` of the inputs, else their messages; empty without both."""
        return str(self.inputs.get("prompt") or as_prompt(self.messages))

    @property
    def name(self) -> str:
        """`suite/task_id`."""
        return f"{self.suite}/{self.task_id}"

    @property
    def own_id(self) -> str:
        """What its file calls it."""
        return self.test_id or self.task_id

    @property
    def reference_answer(self) -> str:
        """The answer that is hoped for as one text; empty where there is none."""
        if self.expected_messages:
            return self.expected_messages[-1].text
        if self.expected_output is None or isinstance(self.expected_output, str):
            return self.expected_output or ""
        return json.dumps(self.expected_output, ensure_ascii=False, indent=2)


def guards_safety(task: EvalTask) -> bool:
    """Return whether a task guards against harm by the agent: by its suite, or by what its graders can veto."""
    return task.suite is Suite.ADVERSARIAL or bool(grader_vetoes(task.graders))
