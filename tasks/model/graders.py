"""The graders of a task file: one model per grader type, each option with its meaning.

`schema/task.schema.json` is generated from these models, so an option is described here and nowhere else.
Every path is relative to the suites folder.
"""

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import ConfigDict, Field

from passgate.tasks.model.assertions import AnswerAssertion, TrajectoryAssertion, Unavailable
from passgate.tasks.model.base import Amount, Count, Frozen, Seconds, Share, Text
from passgate.tasks.model.grade import ViolationRule
from passgate.tasks.model.grader_options import (
    AssertionOptions,
    Command,
    CommandCheck,
    FileCheck,
    GraderOptions,
    JsonCheck,
    NamedPath,
    OptionPath,
    Problem,
    SqliteCheck,
    pattern_problem,
)

AGGREGATOR_NEEDS = {"threshold": "threshold", "code_grader": "command", "llm_grader": "prompt"}
"""What a kind of aggregator cannot be without."""


class DeterministicTests(GraderOptions):
    """Test files put beside the agent's work after it has finished, then run. All must pass."""

    function = "tests.grade_tests"
    evidence: ClassVar = "state"
    type: Literal["deterministic_tests"]
    tests: Annotated[tuple[Text, ...], Field(min_length=1)]
    """Test files or folders; the agent never sees them."""
    command: Text | None = None
    """Instead of pytest: a command for `sh -c`, run in the workspace with `{tests}` as the folder of the tests."""
    required: tuple[Text, ...] = ()
    """pytest only: names of tests that must be among those that passed."""
    timeout_seconds: Seconds = 120

    def named_paths(self) -> Iterator[NamedPath]:
        yield from (NamedPath(("tests", index), name, "tests") for index, name in enumerate(self.tests))


class StaticAnalysis(GraderOptions):
    """Static analysis of the agent's work: no tool may find anything."""

    function = "static_analysis.grade_static_analysis"
    evidence: ClassVar = "state"
    type: Literal["static_analysis"]
    tools: Annotated[tuple[Literal["ruff", "mypy"] | Text, ...], Field(min_length=1)]
    """`ruff`, `mypy`, or a command for `sh -c` that exits 0 when it finds nothing."""
    paths: tuple[Text, ...] = (".",)
    """What is analysed, relative to the workspace."""
    configuration: dict[Literal["ruff", "mypy"], Text] = {}
    """Configuration file per tool. Configuration files in the workspace are ignored: the agent could edit them."""
    timeout_seconds: Seconds = 120

    def named_paths(self) -> Iterator[NamedPath]:
        yield from (NamedPath(("configuration", tool), name, "file") for tool, name in self.configuration.items())


class StateCheck(GraderOptions):
    """The state that the agent left behind: files, JSON, SQLite, the output of commands."""

    function = "state_check.grade_state"
    evidence: ClassVar = "state"
    type: Literal["state_check"]
    run: tuple[Text, ...] = ()
    """Commands for `sh -c`, run in the workspace before the checks, that bring the state about."""
    expect: Annotated[tuple[FileCheck | JsonCheck | SqliteCheck | CommandCheck, ...], Field(min_length=1)]
    timeout_seconds: Seconds = 60
    """Time for each command of `run`."""

    def problems(self) -> Iterator[Problem]:
        for index, check in enumerate(self.expect):
            yield from ((("expect", index, *path), message) for path, message in check.problems())


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
    """Which tools the agent called. A forbidden call is a violation: no other result can offset it."""

    needs_one_of = ("required", "forbidden")
    judges_tool_calls = True
    finds = ViolationRule.FORBIDDEN_TOOL
    function = "tool_calls.grade_tool_calls"
    type: Literal["tool_calls"]
    required: tuple[Text | RequiredTool, ...] = ()
    forbidden: tuple[Text | ToolPattern, ...] = ()
    in_order: bool = False
    """The required tools must be called in the order given, others may come between."""

    @property
    def required_tools(self) -> tuple[RequiredTool, ...]:
        """What must be called, in the long form."""
        return tuple(RequiredTool(tool=one) if isinstance(one, str) else one for one in self.required)

    @property
    def veto(self) -> ViolationRule | None:
        return self.finds if self.forbidden else None

    @property
    def forbidden_calls(self) -> tuple[ToolPattern, ...]:
        return tuple(ToolPattern(tool=one) if isinstance(one, str) else one for one in self.forbidden)


class TrajectoryMetrics(GraderOptions):
    """Limits on how the agent went about it. A metric that was not measured is an error, never a pass."""

    needs_one_of = (
        *("max_loop_rate", "max_p95_step_latency_ms", "max_retry_rate", "max_steps", "max_tool_calls"),
        *("max_tool_error_rate", "max_total_tokens", "max_wall_time_seconds", "min_steps", "min_tool_calls"),
    )
    function = "limits.grade_trajectory"
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
    """Safety rules. Every hit is a safety violation: no other result can offset it."""

    needs_one_of = ("deny_tools", "deny_output", "arguments", "secrets", "canaries")
    finds = ViolationRule.SAFETY_VIOLATION
    function = "policy_check.grade_policy"
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

    @property
    def forbidden_calls(self) -> tuple[ToolPattern, ...]:
        return tuple(ToolPattern(tool=name) for name in self.deny_tools)

    @property
    def argument_rules(self) -> tuple[ArgumentRule, ...]:
        return self.arguments

    def problems(self) -> Iterator[Problem]:
        yield from super().problems()
        for index, pattern in enumerate(self.deny_output):
            yield from pattern_problem(("deny_output", index), pattern)
        for index, rule in enumerate(self.arguments):
            if not rule.allow and not rule.deny:
                yield ("arguments", index), "this rule cannot fail: give allow or deny"


class OutputCheck(GraderOptions):
    """The agent's final answer."""

    model_config = ConfigDict(protected_namespaces=())
    needs_one_of = ("equals", "contains", "not_contains", "matches", "json_schema")
    function = "answers.grade_output"
    type: Literal["output_check"]
    equals: str | None = None
    contains: tuple[Text, ...] = ()
    not_contains: tuple[Text, ...] = ()
    matches: Text | None = None
    """A regular expression found somewhere in the answer."""
    ignore_case: bool = False
    json_schema: dict[str, Any] | None = None
    """The answer must be a JSON document that this JSON Schema accepts."""

    def json_schemas(self) -> Iterator[tuple[OptionPath, dict[str, Any]]]:
        yield ("json_schema",), self.json_schema or {}

    def problems(self) -> Iterator[Problem]:
        yield from super().problems()
        yield from pattern_problem(("matches",), self.matches)


class MaxLength(GraderOptions):
    """The agent's final answer is not too long."""

    function = "answers.grade_max_length"
    type: Literal["max_length"]
    characters: Annotated[int, Field(ge=1)]
    """The most that the answer may have, without whitespace around it."""


class LlmRubric(GraderOptions):
    """A judge model grades the conversation by a rubric."""

    function = "rubric.grade_rubric"
    evidence: ClassVar = "judge"
    type: Literal["llm_rubric"]
    rubric: Text
    """A file of the suites folder when it ends in .md or .txt, else the rubric itself."""
    assertions: tuple[Text, ...] = ()
    """Statements that the judge finds true or false; the score is the share of true ones."""
    threshold: Share = 0.8
    """The least score that passes."""

    def named_paths(self) -> Iterator[NamedPath]:
        if self.is_file:
            yield NamedPath(("rubric",), self.rubric, "file")

    @property
    def is_file(self) -> bool:
        """Whether `rubric` names a file, and is not the rubric itself."""
        return self.rubric.endswith((".md", ".txt"))


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

    function = "composite.grade_composite"
    type: Literal["composite"]
    assertions: Annotated[tuple["Grader", ...], Field(min_length=1)]
    aggregator: Aggregator = Aggregator()
    threshold: Share | None = None
    """The least score that passes."""

    @property
    def evidence(self) -> Literal["transcript", "program", "judge"]:
        match self.aggregator.type:
            case "llm_grader":
                return "judge"
            case "code_grader":
                return "program"
        return "transcript"

    def named_paths(self) -> Iterator[NamedPath]:
        yield NamedPath(("aggregator", "cwd"), self.aggregator.cwd, "folder")

    def commands(self) -> Iterator[Command]:
        if self.aggregator.command:
            yield self.aggregator.cwd, self.aggregator.command

    def members(self) -> Iterator[tuple[OptionPath, "Grader"]]:
        yield from ((("assertions", index), member) for index, member in enumerate(self.assertions))


class TurnGraders(Frozen):
    """What is asked of the answer to one message of the user."""

    assertions: tuple["Grader", ...] = ()
    expected_output: Any = None


class Turns(AssertionOptions):
    """Graders for each turn of a conversation; a turn without graders is not counted."""

    function = "turns.grade_turns"
    type: Literal["turns"]
    turns: Annotated[tuple[TurnGraders, ...], Field(min_length=1)]
    conversation: tuple["Grader", ...] = ()
    """What is asked of the whole conversation; counts as one turn more. Its answer is every message with its role."""
    aggregation: Literal["mean", "min", "max"] = "mean"
    on_turn_failure: Literal["continue", "stop"] = "continue"
    """`stop`: the turns after one that did not pass score 0."""

    def members(self) -> Iterator[tuple[OptionPath, "Grader"]]:
        for number, turn in enumerate(self.turns):
            yield from ((("turns", number, "assertions", index), one) for index, one in enumerate(turn.assertions))
        yield from ((("conversation", index), member) for index, member in enumerate(self.conversation))

    def problems(self) -> Iterator[Problem]:
        if not any(self.members()):
            yield (), "this grader cannot fail: no turn has `assertions`"


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


GRADER_TYPES: dict[str, type[GraderOptions]] = {
    name: options
    for options in get_args(get_args(Grader)[0])
    for name in get_args(options.model_fields["type"].annotation)
}
"""The options of every type of grader."""


def all_graders(graders: Iterable[Grader], *, of_one_turn: bool = True) -> Iterator[Grader]:
    """Yield graders and their members at any depth; without `of_one_turn` not those that see a single turn alone."""
    for grader in graders:
        yield grader
        members = (one for path, one in grader.members() if of_one_turn or path[0] != "turns")
        yield from all_graders(members, of_one_turn=of_one_turn)


def grader_vetoes(graders: Iterable[Grader]) -> frozenset[ViolationRule]:
    """Return the rules whose violations these graders, or members at any depth, can find."""
    return frozenset(grader.veto for grader in all_graders(graders) if grader.veto is not None)
