"""The graders that eval files bring along: one model per grader type, each option with its meaning.

Each gives a score from 0 to 1 and passes from 0.8 on, or from its own `min_score`. Every path is relative to the suites
folder.
"""

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from passgate.tasks.model.base import Amount, Count, Frozen, Seconds, Share, Text
from passgate.tasks.model.grader_options import AssertionOptions, Command, NamedPath, OptionPath, Problem, regex_problem

ArgsMatch = Literal["exact", "superset", "subset", "ignore"] | tuple[Text, ...]
"""How arguments are compared: equal, at least the expected, none but the expected, not at all, or only these fields."""


class TextAssertion(AssertionOptions):
    """The final answer against a text. The `i` of a name is for ignoring case; `all` and `any` take a list."""

    function = "answers.grade_text"
    type: Literal[
        "contains",
        "contains_any",
        "contains_all",
        "icontains",
        "icontains_any",
        "icontains_all",
        "starts_with",
        "ends_with",
    ]
    value: Text | Annotated[tuple[Text, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _one_or_many(self) -> Self:
        if self.type.endswith(("_any", "_all")) != isinstance(self.value, tuple):
            raise ValueError(f"{self.type} takes {'a list of texts' if isinstance(self.value, str) else 'one text'}")
        if self.type.endswith("_with") and isinstance(self.value, str) and not self.value.strip():
            raise ValueError(f"{self.type} takes a text that is not blank: every answer does that with a blank one")
        return self


class Equals(AssertionOptions):
    """The final answer is this, blanks around it aside; a value that is not a text must be equal as JSON."""

    function = "answers.grade_equals"
    type: Literal["equals"]
    value: Any


class Regex(AssertionOptions):
    """A regular expression as JavaScript knows them is found in the final answer."""

    function = "answers.grade_regex"
    type: Literal["regex"]
    value: Text
    flags: Annotated[str, Field(pattern="^[dgimsuvy]*$")] = ""

    def problems(self) -> Iterator[Problem]:
        if problem := regex_problem(self.value, self.flags):
            yield ("value",), problem


class IsJson(AssertionOptions):
    """The final answer is a JSON document."""

    function = "answers.grade_is_json"
    type: Literal["is_json"]
    value: dict[str, Any] | None = None
    """A JSON Schema that the document must satisfy."""

    def json_schemas(self) -> Iterator[tuple[OptionPath, dict[str, Any]]]:
        yield ("value",), self.value or {}


class CodeGrader(AssertionOptions):
    """A program that gets the trial as JSON on its standard input and prints its grade."""

    function = "code_grader.grade_code"
    evidence: ClassVar = "program"
    type: Literal["code_grader"]
    command: Annotated[tuple[Text, ...], Field(min_length=1)]
    """The program and its arguments."""
    cwd: Text = "."
    """Where it runs."""
    config: dict[str, Any] = {}
    """Given to the program as `config`."""
    timeout_seconds: Seconds = 120

    def named_paths(self) -> Iterator[NamedPath]:
        yield NamedPath(("cwd",), self.cwd, "folder")

    def commands(self) -> Iterator[Command]:
        yield self.cwd, self.command


class ScriptAssertion(AssertionOptions):
    """An expression, or the body of a function with `return`, of `output` and `context`: a truth value or a score."""

    function = "code_grader.grade_script"
    evidence: ClassVar = "program"
    type: Literal["javascript", "python"]
    value: Text
    cwd: Text = "."
    """Where it runs."""
    threshold: Share | None = None
    """The least score that passes, before `min_score`."""

    @property
    def passing_score(self) -> float:
        return super().passing_score if self.threshold is None else self.threshold

    def named_paths(self) -> Iterator[NamedPath]:
        yield NamedPath(("cwd",), self.cwd, "folder")


class LlmGrader(AssertionOptions):
    """A judge model scores the trial."""

    function = "judge.grade_by_judge"
    evidence: ClassVar = "judge"
    type: Literal["llm_grader"]
    prompt: str = ""
    """What the judge is asked: a template with `{{ }}` variables, or the criteria where it has none of them."""
    prompt_file: Text | None = None
    """The file that `prompt` comes from."""
    criteria: str = ""
    """What the judge grades by; the task's `criteria` when not given."""
    target: Text | None = None
    """The judge's name in the tool that the file was written for. passgate's judge is that of gates.yaml."""
    config: dict[str, Any] = {}

    def named_paths(self) -> Iterator[NamedPath]:
        if self.prompt_file is not None:
            yield NamedPath(("prompt_file",), self.prompt_file, "prompt")


class ScoreRange(Frozen):
    """What a span of scores, from 0 to 10, means."""

    low: Annotated[int, Field(ge=0, le=10)]
    high: Annotated[int, Field(ge=0, le=10)]
    outcome: Text


class Criterion(Frozen):
    """One item of a rubric."""

    id: Text
    outcome: Text | None = None
    """What must be so. Only an item with `score_ranges` can be without."""
    weight: Amount = 1
    required: bool = False
    """The trial fails when it is not met."""
    min_score: Share | None = None
    """The least share of its 10 points that meets it, with `score_ranges`."""
    score_ranges: tuple[ScoreRange, ...] = ()
    """With them the judge gives 0 to 10 points, without them yes or no."""
    operator: Literal["correctness", "contradiction"] = "correctness"
    """`contradiction`: met unless the answer contradicts `outcome`."""

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.outcome is None and not self.score_ranges:
            raise ValueError("give `outcome` or `score_ranges`")
        return self


class Rubrics(AssertionOptions):
    """A judge model grades the items of a rubric; the score is their weighted mean."""

    function = "rubric.grade_rubrics"
    evidence: ClassVar = "judge"
    type: Literal["rubrics"]
    criteria: Annotated[tuple[Criterion, ...], Field(min_length=1)]
    prompt: str = ""
    """What the judge is asked instead of the usual, as a template."""
    target: Text | None = None
    """See `llm_grader`."""


class ExpectedCall(Frozen):
    """A tool call that is expected."""

    tool: Text
    args: dict[str, Any] | Literal["any"] | None = None
    """Not compared when not given or `any`."""
    args_match: ArgsMatch | None = None
    """The grader's when not given."""
    max_duration_ms: Amount | None = None


class ToolTrajectory(AssertionOptions):
    """The tool calls of the trial against those that are expected."""

    needs_one_of = ("expected", "minimums")
    judges_tool_calls = True
    function = "tool_trajectory.grade_tool_trajectory"
    type: Literal["tool_trajectory"]
    mode: Literal["any_order", "in_order", "exact", "superset", "subset"] = "any_order"
    """`any_order`: each is called; `in_order`: others may come between; `exact`: these and no others; `superset`: each
    has a call of its own; `subset`: no others."""
    expected: tuple[ExpectedCall, ...] = ()
    minimums: dict[str, Count] = {}
    """How often a tool must be called at least, with `any_order`."""
    args_match: ArgsMatch = "exact"

    def problems(self) -> Iterator[Problem]:
        if self.mode not in {"exact", "subset"}:
            yield from super().problems()


class ToolUsed(AssertionOptions):
    """Tools were called, as often as said. Names are patterns, case aside."""

    judges_tool_calls = True
    function = "trajectory_steps.grade_tool_used"
    type: Literal["tool_used"]
    tools: Annotated[tuple[Text, ...], Field(min_length=1)]
    min: Count = 1
    max: Count | None = None

    def problems(self) -> Iterator[Problem]:
        """See `GraderOptions`."""
        if self.max is not None and self.min > self.max:
            yield (), f"this grader cannot pass: `min` is {self.min} and `max` is {self.max}"


class ToolSequence(AssertionOptions):
    """Tools were called in this order."""

    judges_tool_calls = True
    function = "trajectory_steps.grade_tool_sequence"
    type: Literal["tool_sequence"]
    steps: Annotated[tuple[Text, ...], Field(min_length=1)]
    mode: Literal["in_order", "exact"] = "in_order"
    """`in_order`: others may come between."""


class ToolArguments(AssertionOptions):
    """A tool was called with these arguments."""

    judges_tool_calls = True
    function = "trajectory_steps.grade_tool_arguments"
    type: Literal["tool_arguments"]
    tool: Text
    args: dict[str, Any]
    mode: Literal["partial", "exact"] = "partial"
    defaults: dict[str, Any] = {}
    """What stands for arguments that a call does not give."""
    ignore: tuple[Text, ...] = ()
    """Arguments that are not compared."""


class StepCount(AssertionOptions):
    """How many steps of a kind the trial had."""

    needs_one_of = ("min", "max")
    function = "trajectory_steps.grade_step_count"
    type: Literal["step_count"]
    kind: Literal["any", "tool", "command", "message"] = "any"
    pattern: Text | None = None
    """Only steps whose tool or text matches."""
    min: Count | None = None
    max: Count | None = None


class FieldCheck(Frozen):
    """One field of a structured answer."""

    path: Text
    """Keys with dots, list indices in brackets, as in `items[0].amount`."""
    match: Literal["exact", "contains", "regex", "numeric_tolerance", "date"] = "exact"
    required: bool | None = None
    """Whether it counts as wrong when the answer lacks it; false when not given."""
    weight: Amount = 1
    tolerance: Amount = 0
    relative: bool = False
    """The tolerance is a share of what is expected."""
    formats: tuple[Text, ...] = ()
    """How dates are written, as in `DD/MM/YYYY`."""


class FieldAccuracy(AssertionOptions):
    """The fields of the answer's JSON document against those of `expected_output`."""

    function = "fields.grade_fields"
    type: Literal["field_accuracy"]
    fields: Annotated[tuple[FieldCheck, ...], Field(min_length=1)]
    aggregation: Literal["weighted_average", "minimum", "all_or_nothing"] = "weighted_average"


class ExecutionMetrics(AssertionOptions):
    """Limits on how the agent went about it; each binds."""

    needs_one_of = (
        *("max_tool_calls", "max_llm_calls", "max_tokens", "max_input_tokens", "max_output_tokens"),
        *("max_cost_usd", "max_duration_ms", "target_exploration_ratio"),
    )
    function = "limits.grade_execution_limits"
    type: Literal["execution_metrics"]
    max_tool_calls: Count | None = None
    max_llm_calls: Count | None = None
    max_tokens: Count | None = None
    """In and out together."""
    max_input_tokens: Count | None = None
    max_output_tokens: Count | None = None
    max_cost_usd: Amount | None = None
    max_duration_ms: Amount | None = None
    target_exploration_ratio: Share | None = None
    """The share of tool calls that only look."""
    exploration_tolerance: Share = 0.2


class Latency(AssertionOptions):
    """The trial took at most so long."""

    function = "limits.grade_execution_limits"
    type: Literal["latency"]
    threshold: Amount
    """Milliseconds."""


class Cost(AssertionOptions):
    """The trial cost at most so much."""

    function = "limits.grade_execution_limits"
    type: Literal["cost"]
    budget: Amount
    """US dollars."""


class TokenUsage(AssertionOptions):
    """The trial used at most so many tokens."""

    needs_one_of = ("max_total", "max_input", "max_output")
    function = "limits.grade_execution_limits"
    type: Literal["token_usage"]
    max_total: Count | None = None
    """In, out and from the provider's cache."""
    max_input: Count | None = None
    max_output: Count | None = None


class SkillTrigger(AssertionOptions):
    """The agent used a skill, or did not."""

    function = "trajectory_steps.grade_skill_trigger"
    type: Literal["skill_trigger"]
    skill: Text
    should_trigger: bool = True
    any_call: bool = False
    """Whether any tool call counts, not only the first."""


class Unavailable(AssertionOptions):
    """A grader of another tool that passgate does not have: a task with one loads, and cannot be run."""

    function = "evidence.grade_unavailable"
    evidence: ClassVar = "program"
    type: Literal["unavailable"]
    kind: Text
    """Its type in that tool."""
    options: dict[str, Any] = {}


AnswerAssertion = TextAssertion | Equals | Regex | IsJson | CodeGrader | ScriptAssertion | LlmGrader | Rubrics
"""Of the answer, and of whatever a program or a model looks at."""
TrajectoryAssertion = (
    ToolTrajectory
    | ToolUsed
    | ToolSequence
    | ToolArguments
    | StepCount
    | FieldAccuracy
    | ExecutionMetrics
    | Latency
    | Cost
    | TokenUsage
    | SkillTrigger
)
"""Of how the agent went about it."""
