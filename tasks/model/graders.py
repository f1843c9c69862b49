"""What a task file says of its graders: one model per grader type, each option with its meaning.

`schema/task.schema.json` is generated from these models, so an option is described here and nowhere else.
Every path is relative to the suites folder.
"""

from collections.abc import Iterable
from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field

from passgate.tasks.model.assertions import (
    AnswerAssertion,
    AssertionOptions,
    GraderOptions,
    TrajectoryAssertion,
    Unavailable,
)
from passgate.tasks.model.base import Amount, Count, Frozen, Seconds, Share, Text
from passgate.tasks.model.grade import ViolationRule


class DeterministicTests(GraderOptions):
    """Test files put beside the agent's work after it has finished, then run. All must pass."""

    type: Literal["deterministic_tests"]
    tests: Annotated[tuple[Text, ...], Field(min_length=1)]
    """Test files or folders; the agent never sees them."""
    command: Text | None = None
    """Instead of pytest: a command for `sh -c`, run in the workspace with `{tests}` as the folder of the tests."""
    required: tuple[Text, ...] = ()
    """pytest only: names of tests that must be among those that passed."""
    timeout_seconds: Seconds = 120


class StaticAnalysis(GraderOptions):
    """Static analysis of the agent's work: no tool may find anything."""

    type: Literal["static_analysis"]
    tools: Annotated[tuple[Literal["ruff", "mypy"] | Text, ...], Field(min_length=1)]
    """`ruff`, `mypy`, or a command for `sh -c` that exits 0 when it finds nothing."""
    paths: tuple[Text, ...] = (".",)
    """What is analysed, relative to the workspace."""
    configuration: dict[Literal["ruff", "mypy"], Text] = {}
    """Configuration file per tool. Configuration files in the workspace are ignored: the agent could edit them."""
    timeout_seconds: Seconds = 120


class FileCheck(Frozen):
    """One file of the workspace."""

    file: Text
    exists: bool = True
    equals: str | None = None
    contains: tuple[Text, ...] = ()
    not_contains: tuple[Text, ...] = ()
    matches: Text | None = None
    """A regular expression found somewhere in the file."""

    @property
    def is_prohibition(self) -> bool:
        """Whether it says what must not be, and nothing else."""
        demands = self.equals is not None or self.contains or self.matches is not None
        return not self.exists or bool(self.not_contains and not demands)


class JsonCheck(Frozen):
    """One value of a JSON file of the workspace."""

    json_file: Text
    path: str = ""
    """Keys and list indices with dots, as in `orders.0.status`; empty for the whole document."""
    equals: Any = None
    one_of: tuple[Any, ...] = ()
    absent: bool = False
    """The path must not be there."""

    @property
    def is_prohibition(self) -> bool:
        """See `FileCheck`."""
        return self.absent


class SqliteCheck(Frozen):
    """One query of a SQLite database of the workspace. Give `rows`, `value`, `min_rows` or `max_rows`."""

    sqlite: Text
    query: Text
    rows: tuple[tuple[Any, ...], ...] | None = None
    """The whole result, in order."""
    value: Any = None
    """The first column of the first row."""
    min_rows: Count | None = None
    max_rows: Count | None = None

    @property
    def is_prohibition(self) -> bool:
        """See `FileCheck`."""
        others = self.rows is not None or "value" in self.model_fields_set or self.min_rows
        return self.max_rows is not None and not others


class CommandCheck(Frozen):
    """One command for `sh -c`, run in the workspace."""

    command: Text
    exit_code: int = 0
    stdout_equals: str | None = None
    stdout_contains: tuple[Text, ...] = ()
    stdout_matches: Text | None = None
    timeout_seconds: Seconds = 60
    is_prohibition: ClassVar = False


class StateCheck(GraderOptions):
    """The state that the agent left behind: files, JSON, SQLite, the output of commands."""

    type: Literal["state_check"]
    run: tuple[Text, ...] = ()
    """Commands for `sh -c`, run in the workspace before the checks, that bring the state about."""
    expect: Annotated[tuple[FileCheck | JsonCheck | SqliteCheck | CommandCheck, ...], Field(min_length=1)]
    timeout_seconds: Seconds = 60
    """Time for each command of `run`."""


class ToolPattern(Frozen):
    """Which tool calls are meant: a name and arguments, with `*`, `?` and `[...]` as in file names."""

    tool: Text
    params: dict[str, Any] = {}
    """Arguments by name. A text is a pattern; `<=100` and its like compare numbers; anything else must be equal."""


class RequiredTool(ToolPattern):
    """A tool that must be called."""

    min: Annotated[int, Field(ge=1)] = 1
    max: Annotated[int, Field(ge=1)] | None = None


class ToolCalls(GraderOptions):
    """Which tools the agent called. A forbidden call is a violation: no other result buys it back."""

    type: Literal["tool_calls"]
    required: tuple[Text | RequiredTool, ...] = ()
    forbidden: tuple[Text | ToolPattern, ...] = ()
    in_order: bool = False
    """The required tools must be called in the order given, others may come between."""

    @property
    def required_tools(self) -> tuple[RequiredTool, ...]:
        """What must be called, in the long form."""
        return tuple(RequiredTool(tool=one) if isinstance(one, str) else one for one in self.required)


class TrajectoryMetrics(GraderOptions):
    """Limits on how the agent went about it. A metric that was not measured is an error, never a pass."""

    type: Literal["trajectory_metrics"]
    max_steps: Count | None = None
    min_steps: Count | None = None
    max_tool_calls: Count | None = None
    min_tool_calls: Count | None = None
    max_loop_rate: Share | None = None
    max_retry_rate: Share | None = None
    max_tool_error_rate: Share | None = None
    max_total_tokens: Count | None = None
    max_wall_time_seconds: Seconds | None = None
    max_p95_step_latency_ms: Seconds | None = None


class ArgumentRule(Frozen):
    """What an argument of a tool may be. Give `allow` or `deny`, as patterns."""

    tool: Text
    param: Text
    allow: tuple[Text, ...] = ()
    deny: tuple[Text, ...] = ()


class PolicyCheck(GraderOptions):
    """Safety rules. Every hit is a safety violation: no other result buys it back."""

    type: Literal["policy_check"]
    deny_tools: tuple[Text, ...] = ()
    """Patterns of tool names."""
    deny_output: tuple[Text, ...] = ()
    """Regular expressions that no assistant message may match."""
    arguments: tuple[ArgumentRule, ...] = ()
    secrets: bool = False
    """No credentials in what the agent wrote: private keys, cloud and API keys, tokens, passwords in URLs."""
    canaries: tuple[Text, ...] = ()
    """Texts planted in the environment that must not leave it: not in messages, not in arguments."""


class OutputCheck(GraderOptions):
    """The agent's final answer."""

    model_config = ConfigDict(protected_namespaces=())

    type: Literal["output_check"]
    equals: str | None = None
    contains: tuple[Text, ...] = ()
    not_contains: tuple[Text, ...] = ()
    matches: Text | None = None
    """A regular expression found somewhere in the answer."""
    ignore_case: bool = False
    json_schema: dict[str, Any] | None = None
    """The answer must be a JSON document that this JSON Schema accepts."""


class MaxLength(GraderOptions):
    """The agent's final answer is not too long."""

    type: Literal["max_length"]
    characters: Annotated[int, Field(ge=1)]
    """The most that the answer may have, without whitespace around it."""


class LlmRubric(GraderOptions):
    """A judge model marks the conversation against a rubric."""

    type: Literal["llm_rubric"]
    rubric: Text
    """A file of the suites folder when it ends in .md or .txt, else the rubric itself."""
    assertions: tuple[Text, ...] = ()
    """Statements that the judge marks true or false; the score is the share of true ones."""
    threshold: Share = 0.8
    """The least score that passes."""


class Aggregator(Frozen):
    """How the scores of a composite's members become one."""

    type: Literal[
        "weighted_average",
        "minimum",
        "maximum",
        "safety_gate",
        "all_or_nothing",
        "threshold",
        "code_grader",
        "llm_grader",
    ] = "weighted_average"
    """`safety_gate`: the required members pass, else 0. `all_or_nothing`: all reach `threshold`, else 0. `threshold`:
    the share of members that pass reaches it. `code_grader`, `llm_grader`: a program or the judge gets the results."""
    weights: dict[str, Amount] = {}
    """By the members' names; a member's own weight when not given."""
    required: tuple[Text, ...] = ()
    """Names of members, for `safety_gate`."""
    threshold: Share | None = None
    command: tuple[Text, ...] = ()
    """For `code_grader`."""
    cwd: Text = "."
    prompt: str = ""
    """For `llm_grader`."""


class Composite(AssertionOptions):
    """Several graders with one score."""

    type: Literal["composite"]
    assertions: Annotated[tuple["Grader", ...], Field(min_length=1)]
    aggregator: Aggregator = Aggregator()
    threshold: Share | None = None
    """The least score that passes."""


class TurnGraders(Frozen):
    """What is asked of the answer to one message of the user."""

    assertions: tuple["Grader", ...] = ()
    expected_output: Any = None


class Turns(AssertionOptions):
    """Graders for each turn of a conversation; a turn without graders is not counted."""

    type: Literal["turns"]
    turns: Annotated[tuple[TurnGraders, ...], Field(min_length=1)]
    conversation: tuple["Grader", ...] = ()
    """What is asked of the whole conversation; counts as one turn more. Its answer is every message with its role."""
    aggregation: Literal["mean", "min", "max"] = "mean"
    on_turn_failure: Literal["continue", "stop"] = "continue"
    """`stop`: the turns after one that did not pass score 0."""


Grader = Annotated[
    DeterministicTests
    | StaticAnalysis
    | StateCheck
    | ToolCalls
    | TrajectoryMetrics
    | PolicyCheck
    | OutputCheck
    | MaxLength
    | LlmRubric
    | AnswerAssertion
    | Composite
    | TrajectoryAssertion
    | Turns
    | Unavailable,
    Field(discriminator="type"),
]

Composite.model_rebuild()
TurnGraders.model_rebuild()
Turns.model_rebuild()


def vetoes_of(graders: Iterable[Grader]) -> frozenset[ViolationRule]:
    """Return the vetoes that these graders can find, at any depth. No other result offsets one."""
    found: set[ViolationRule] = set()
    for grader in graders:
        match grader:
            case PolicyCheck():
                found.add(ViolationRule.SAFETY_VIOLATION)
            case ToolCalls() if grader.forbidden:
                found.add(ViolationRule.FORBIDDEN_TOOL)
            case Composite():
                found |= vetoes_of(grader.assertions)
            case Turns():
                found |= vetoes_of(grader.conversation).union(*(vetoes_of(turn.assertions) for turn in grader.turns))
    return frozenset(found)
