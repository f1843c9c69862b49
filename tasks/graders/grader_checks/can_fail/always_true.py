"""Why a grader that is made of no others is satisfied by every trial, told from its options."""

import math
from collections.abc import Callable, Iterator
from typing import Any, Final

from passgate.tasks.graders.grader_checks.can_fail.commands import always_succeeds, same_for_all
from passgate.tasks.graders.grader_checks.can_fail.everything import (
    javascript_finds_everything,
    python_finds_everything,
)
from passgate.tasks.graders.static_analysis import PYTHON_TOOLS
from passgate.tasks.model.assertions import (
    CodeGrader,
    Cost,
    ExecutionMetrics,
    Latency,
    Regex,
    ScriptAssertion,
    StepCount,
    TextAssertion,
    TokenUsage,
    ToolTrajectory,
    ToolUsed,
)
from passgate.tasks.model.graders import (
    ArgumentRule,
    CommandCheck,
    DeterministicTests,
    Grader,
    LlmRubric,
    OutputCheck,
    PolicyCheck,
    StateCheck,
    StaticAnalysis,
    TrajectoryMetrics,
)

_RATES: Final = ("max_loop_rate", "max_retry_rate", "max_tool_error_rate")
_LEASTS: Final = ("min_steps", "min_tool_calls")
_TRUTHS: Final = frozenset({"true", "True", "1", "1.0", "return true", "return True", "return 1", "return 1.0"})


def always_true(options: Grader) -> str | None:
    """Why every trial satisfies a grader, `negate` aside; `None` when one may not, or when that cannot be told."""
    why: Callable[[Any], str | None] | None = _REASONS.get(type(options))
    return None if why is None else why(options)


def _tests(options: DeterministicTests) -> str | None:
    if options.command is None or not always_succeeds(options.command):
        return None
    return f"`{options.command}` exits 0 whatever the tests say"


def _analysis(options: StaticAnalysis) -> str | None:
    if all(tool not in PYTHON_TOOLS and always_succeeds(tool) for tool in options.tools):
        return f"{', '.join(f'`{tool}`' for tool in options.tools)} exits 0 whatever is analysed"
    return None


def _state(options: StateCheck) -> str | None:
    if all(isinstance(check, CommandCheck) and _is_idle(check) for check in options.expect):
        return "its commands exit 0 whatever the agent left behind"
    return None


def _is_idle(check: CommandCheck) -> bool:
    any_output = check.stdout_equals is None and all(not text.strip() for text in check.stdout_contains)
    any_match = check.stdout_matches is None or python_finds_everything(check.stdout_matches)
    return any_output and any_match and check.exit_code == 0 and always_succeeds(check.command)


def _trajectory(options: TrajectoryMetrics) -> str | None:
    given = dict(_given(options))
    idle = {name for name, value in given.items() if _is_no_limit(name, value)}
    if not given or idle != set(given):
        return None
    return f"every trial has {', '.join(f'{name}: {value:g}' for name, value in given.items())}"


def _is_no_limit(name: str, value: float) -> bool:
    return (name in _RATES and value >= 1) or (name in _LEASTS and value <= 0) or math.isinf(value)


def _given(options: Any) -> Iterator[tuple[str, float]]:
    """The limits of a grader that are given."""
    for name in type(options).model_fields:
        value = getattr(options, name)
        if name.startswith(("max_", "min_")) and name != "min_score" and value is not None:
            yield name, value


def _policy(options: PolicyCheck) -> str | None:
    others = options.deny_tools or options.deny_output or options.secrets or options.canaries
    if others or not all(map(_allows_all, options.arguments)):
        return None
    return "its rules allow every argument"


def _allows_all(rule: ArgumentRule) -> bool:
    return not rule.deny and (not rule.allow or any(set(pattern) == {"*"} for pattern in rule.allow))


def _output(options: OutputCheck) -> str | None:
    demands = options.equals is not None or options.not_contains or options.json_schema is not None
    if demands or any(text.strip() for text in options.contains):
        return None
    if options.matches is not None:
        if not python_finds_everything(options.matches, ignore_case=options.ignore_case):
            return None
        return f"every answer matches {options.matches!r}"
    return "every answer contains a blank" if options.contains else None


def _rubric(options: LlmRubric) -> str | None:
    return "its threshold is 0, and every score reaches that" if options.threshold <= 0 else None


def _text(options: TextAssertion) -> str | None:
    values = (options.value,) if isinstance(options.value, str) else options.value
    enough = any if options.type.endswith("_any") else all
    return "every answer contains a blank" if enough(not value.strip() for value in values) else None


def _regex(options: Regex) -> str | None:
    if javascript_finds_everything(options.value, options.flags):
        return f"every answer matches /{options.value}/{options.flags}"
    return None


def _code(options: CodeGrader) -> str | None:
    return f"`{options.command[0]}` says the same of every trial" if same_for_all(options.command) else None


def _script(options: ScriptAssertion) -> str | None:
    text = options.value.strip().rstrip(";").strip()
    return f"`{text}` says the same of every answer" if text in _TRUTHS else None


def _tool_trajectory(options: ToolTrajectory) -> str | None:
    if options.expected or options.mode != "any_order" or any(options.minimums.values()):
        return None
    return "no tool has to be called: its minimums are 0" if options.minimums else None


def _tool_used(options: ToolUsed) -> str | None:
    return "no tool has to be called: `min` is 0" if options.min == 0 and options.max is None else None


def _step_count(options: StepCount) -> str | None:
    return "every trial has 0 steps or more" if not options.min and options.max is None else None


def _execution(options: ExecutionMetrics) -> str | None:
    if any(not math.isinf(value) for _, value in _given(options)):
        return None
    target, tolerance = options.target_exploration_ratio, options.exploration_tolerance
    if target is not None and tolerance < max(target, 1 - target):
        return None
    return "no trial exceeds its limits"


def _latency(options: Latency) -> str | None:
    return "no trial exceeds its limit" if math.isinf(options.threshold) else None


def _cost(options: Cost) -> str | None:
    return "no trial exceeds its limit" if math.isinf(options.budget) else None


def _tokens(options: TokenUsage) -> str | None:
    return None if any(not math.isinf(value) for _, value in _given(options)) else "no trial exceeds its limits"


_REASONS: Final[dict[type, Callable[[Any], str | None]]] = {
    DeterministicTests: _tests,
    StaticAnalysis: _analysis,
    StateCheck: _state,
    TrajectoryMetrics: _trajectory,
    PolicyCheck: _policy,
    OutputCheck: _output,
    LlmRubric: _rubric,
    TextAssertion: _text,
    Regex: _regex,
    CodeGrader: _code,
    ScriptAssertion: _script,
    ToolTrajectory: _tool_trajectory,
    ToolUsed: _tool_used,
    StepCount: _step_count,
    ExecutionMetrics: _execution,
    Latency: _latency,
    Cost: _cost,
    TokenUsage: _tokens,
}
