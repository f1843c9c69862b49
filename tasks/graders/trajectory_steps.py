"""Which steps a trial took: tools and skills used, their order, their arguments, how many. Each is met or not."""

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final

from passgate.tasks.errors import MeasurementError, Raw
from passgate.tasks.graders.evidence import Evidence, expectation, score_grade, tool_matches
from passgate.tasks.graders.tool_calls import call_range, call_text
from passgate.tasks.model import assertions as evals
from passgate.tasks.model.grade import RawCheck, RawGrade
from passgate.tasks.model.grader_options import AssertionOptions
from passgate.tasks.model.json_values import strictly_equal
from passgate.tasks.model.quotes import quote_json, raw, raw_join
from passgate.tasks.model.transcript import ToolCall, Transcript

SHELL_TOOLS: Final = frozenset({
    "bash", "exec_command", "execute_command", "local_shell", "run_command",
    "run_shell_command", "sh", "shell", "shell_command", "terminal",
})  # fmt: skip
"""Tools whose calls are steps of the kind `command`, as well as of the kind `tool`. In lower case."""
MOST_SHOWN: Final = 20  # Calls that a message names


async def grade_tool_used(options: evals.ToolUsed, evidence: Evidence) -> RawGrade:
    """Return 1 when each of the tools was called at least `min` and at most `max` times, else 0. Every call counts,
    those of shells too. Negated: 1 when none of them was; a call that was refused counts then, for it was tried. Raises
    `MeasurementError` when the transcript does not hold every call, unless the known ones are too many already.
    """
    calls = evidence.calls(refused=options.negate)
    counts = [sum(_calls_tool(call, tool) for call in calls) for tool in options.tools]
    enough = [options.min <= count and (options.max is None or count <= options.max) for count in counts]
    holds = any(enough) if options.negate else all(enough)
    too_many = options.max is not None and max(counts) > options.max
    certain = holds and options.max is None if options.negate else too_many
    found = ", ".join(f"{tool} {count}" for tool, count in zip(options.tools, counts, strict=True))
    must, which = ("there must not be", "any of these tools") if options.negate else ("expected", "each tool")
    of_which = f" of {which}" if len(options.tools) > 1 else ""
    message = f"calls: {found}; {must} {call_range(options.min, options.max)}{of_which}"
    return _step_grade(options, evidence, message, holds=holds, certain=certain)


async def grade_tool_sequence(options: evals.ToolSequence, evidence: Evidence) -> RawGrade:
    """Return 1 when the tools were called in this order, else 0; with `exact` these calls and no others. Raises
    `MeasurementError` when the transcript does not hold every call, unless the known ones fail it already.
    """
    calls = evidence.calls(refused=options.negate)
    exact = options.mode == "exact"
    if exact:
        holds = len(calls) == len(options.steps) and all(
            _calls_tool(call, step) for call, step in zip(calls, options.steps, strict=True)
        )
    else:
        remaining = iter(calls)
        # `any` takes from the iterator up to the first match, so each step goes on where the last one stopped.
        holds = all(any(_calls_tool(call, step) for call in remaining) for step in options.steps)
    certain = holds and not exact if options.negate else exact and len(calls) > len(options.steps)
    made = ", ".join(call.tool for call in calls[:MOST_SHOWN]) or "none"
    more = f" and {len(calls) - MOST_SHOWN} more" if len(calls) > MOST_SHOWN else ""
    wanted = f"{'they must not be' if options.negate else 'expected'} {'exactly' if exact else 'in order'}"
    message = f"calls: {made}{more}; {wanted}: {', '.join(options.steps)}"
    return _step_grade(options, evidence, message, holds=holds, certain=certain)


async def grade_tool_arguments(options: evals.ToolArguments, evidence: Evidence) -> RawGrade:
    """Return 1 when the tool was called with these arguments at least once, else 0. `partial`: the call may have
    others, in objects within them too; `exact`: it has no others. Raises `MeasurementError` when the transcript does
    not hold every call, unless a negated one is found.
    """
    calls = [call for call in evidence.calls(refused=options.negate) if _calls_tool(call, options.tool)]
    exact = options.mode == "exact"
    wanted = _without({**options.defaults, **options.args} if exact else options.args, options.ignore)
    # An argument that a call does not give has its default.
    given = [_without({**options.defaults, **call.arguments}, options.ignore) for call in calls]
    holds = any(strictly_equal(wanted, one) if exact else _contains(one, wanted) for one in given)
    made = raw_join("; ", [quote_json(call.arguments) for call in calls[:MOST_SHOWN]])
    called = raw(f"{options.tool} was called with ", made) if made else f"{options.tool} was not called"
    what = "no call must have" if options.negate else "expected a call with"
    message = raw(called, f"; {what} ", quote_json(options.args), f" ({options.mode})")
    return _step_grade(options, evidence, message, holds=holds, certain=options.negate and holds)


def _step_grade(options: AssertionOptions, evidence: Evidence, message: Raw, *, holds: bool, certain: bool) -> RawGrade:
    """Return the grade of something that is met or not. Its check is passed as it will be once `negate` has been
    applied. Raises `MeasurementError` where the transcript is not complete, unless the result is `certain`.
    """
    evidence.require_every_call(unless=certain)
    return score_grade(options, float(holds), [RawCheck(passed=holds is not options.negate, message=message)])


def _calls_tool(call: ToolCall, tool: str) -> bool:
    """Return whether a call is of a tool, whose name may have `*` and `?`."""
    return tool_matches(tool.replace("[", "[[]"), call.tool)


def _is_like(name: str, pattern: str) -> bool:
    """Return whether a name matches a pattern with `*` and `?`, whatever the case."""
    return fnmatchcase(name.lower(), pattern.lower().replace("[", "[[]"))


def _without(arguments: Mapping[str, Any], ignored: Sequence[str]) -> dict[str, Any]:
    """Return the arguments without the ignored ones. An entry with `*` or `?` in it is a pattern of names."""
    patterns = [entry for entry in ignored if "*" in entry or "?" in entry]
    return {
        name: value
        for name, value in arguments.items()
        if name not in ignored and not any(_is_like(name, pattern) for pattern in patterns)
    }


def _contains(whole: Any, part: Any) -> bool:
    """Return whether a value is the other one, which may leave out names of objects; lists are of the same length."""
    if isinstance(part, Mapping):
        return isinstance(whole, Mapping) and all(
            name in whole and _contains(whole[name], value) for name, value in part.items()
        )
    if isinstance(part, list | tuple):
        return (
            isinstance(whole, list | tuple)
            and len(whole) == len(part)
            and all(_contains(item, wanted) for item, wanted in zip(whole, part, strict=True))
        )
    return strictly_equal(whole, part)


def _steps(transcript: Transcript) -> Iterator[tuple[set[str], tuple[str, ...]]]:
    """Yield the kinds of each step, and the texts that a pattern may match: message by message, what was said, then
    what was called. A command goes by its text, by its program and by the tool.
    """
    for message in transcript.messages:
        if message.role == "assistant" and message.content.strip():
            yield {"any", "message"}, (message.content,)
        for call in message.tool_calls:
            if call.tool.lower() in SHELL_TOOLS and not call.refused:
                yield {"any", "tool", "command"}, (call.tool, *_command_names(call))
            elif not call.refused:
                yield {"any", "tool"}, (call.tool,)


def _command_names(call: ToolCall) -> tuple[str, ...]:
    """Return the command that a shell was called with and its program; empty when the arguments do not say it."""
    given = next((call.arguments[name] for name in ("cmd", "command", "commands") if call.arguments.get(name)), "")
    parts = given if isinstance(given, list | tuple) else [given]
    separator = "; " if given is call.arguments.get("commands") else " "
    command = separator.join(str(part).strip() for part in parts if str(part).strip())
    return (command, command.split()[0]) if command else ()


async def grade_step_count(options: evals.StepCount, evidence: Evidence) -> RawGrade:
    """Return 1 when the number of steps is from `min` to `max`, else 0. Steps are tool calls, made ones alone, and
    messages of the agent that say something; see `StepCount` for their kinds. Raises `MeasurementError` without a
    limit, and when the transcript does not hold every step, unless there are too many already.
    """
    if options.min is None and options.max is None:
        raise MeasurementError(f"{options.label} has nothing to check: set `min` or `max`")
    count = sum(
        options.kind in kinds and (options.pattern is None or any(_is_like(name, options.pattern) for name in names))
        for kinds, names in _steps(evidence.transcript)
    )
    too_many = options.max is not None and count > options.max
    holds = (options.min is None or count >= options.min) and not too_many
    certain = not options.negate and too_many
    limits = {"least": options.min, "most": options.max}
    wanted = " and ".join(f"at {name} {limit}" for name, limit in limits.items() if limit is not None)
    kind = "steps" if options.kind == "any" else f"{options.kind} steps"
    like = "" if options.pattern is None else f" like {options.pattern}"
    message = f"{count} {kind}{like}, {'must not be' if options.negate else 'expected'} {wanted}"
    return _step_grade(options, evidence, message, holds=holds, certain=certain)


async def grade_skill_trigger(options: evals.SkillTrigger, evidence: Evidence) -> RawGrade:
    """Return 1 when the skill was used, or was not, as wanted, else 0.

    The first tool call counts, and with `any_call` every one: a call of `Skill` with the skill's name in its argument
    `skill`, or of `Read` with the name in its `file_path`. Raises `MeasurementError` when the transcript does not hold
    every call, unless those that it holds settle it.
    """
    calls = evidence.calls(refused=False)[: None if options.any_call else 1]
    use = None
    for call in calls:
        tool, arguments = call.tool.lower(), call.arguments
        path = arguments.get("path", "") if arguments.get("file_path") is None else arguments["file_path"]
        named = {"skill": arguments.get("skill", ""), "read": path}.get(tool, "")
        if options.skill in str(named):
            use = call
            break
    evidence.require_every_call(unless=options.any_call and use is not None)
    name, where = repr(options.skill), "any call" if options.any_call else "the first call"
    unused = f"the skill {name} is not used in {where}"
    found = unused if use is None else raw(call_text(use), f" uses the skill {name}")
    passed = (use is not None) == options.should_trigger
    met = passed is not options.negate
    message = raw(found, expectation(passed=met, must="be" if use is None else "not"))
    return score_grade(options, float(passed), [RawCheck(passed=met, message=message)])
