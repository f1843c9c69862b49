"""Why a grader that is made of no others is satisfied by every trial, told from its options."""

import math
import re
import shlex
from collections.abc import Callable, Sequence
from typing import Final

import regress

from passgate.tasks.graders.static_analysis import PYTHON_TOOLS
from passgate.tasks.model import assertions as evals
from passgate.tasks.model import graders as native
from passgate.tasks.model.graders import Grader
from passgate.tasks.model.javascript_regex import engine_flags

# A rate is at most 1, and a count at least 0.
_RATES: Final = ("max_loop_rate", "max_retry_rate", "max_tool_error_rate")
_LEASTS: Final = ("min_steps", "min_tool_calls")
_TRUTHS: Final = frozenset({"true", "True", "1", "1.0", "return true", "return True", "return 1", "return 1.0"})
_OPERATORS: Final = frozenset({"&&", "||", "|", ";", "&"})
_SUCCEED: Final = frozenset({"true", ":", "echo", "printf"})
# At the end of a pipe these read what they are given; alone they would look for a file, which may be missing.
_SUCCEED_ON_A_PIPE: Final = _SUCCEED | {"tee", "cat", "head", "tail", "wc", "sort", "uniq", "tr", "cut", "nl"}
# A shell that meets one of these may never come to the last command.
_END_THE_SHELL: Final = frozenset({"exit", "exec", "return", "set", "kill", "trap"})
_CALLS_A_SHELL: Final = frozenset({"sh", "bash", "dash", "/bin/sh", "/bin/bash"})
_INLINE_FLAGS: Final = re.compile(r"\(\?([aiLmsux]+)\)")
_SCOPED: Final = re.compile(r"\(\?([aiLmsux]+):([^()]*)\)")
_START: Final = re.compile(r"\^|\\A")
_END: Final = re.compile(r"(?<!\\)(?:\\\\)*(\$|\\[Zz])\Z")
# Escapes and classes are one token each: `[$^]` looks at no end.
_TOKEN: Final = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|\(\?<?[=!]|\(\?P=|.", re.DOTALL)
_LOOKS_BACK: Final = frozenset({"^", "\\A", "\\b", "\\B", "(?<=", "(?<!"})
_LOOKS_AHEAD: Final = frozenset({"$", "\\Z", "\\z", "(?=", "(?!"})
_BACK_REFERENCE: Final = re.compile(r"\\[1-9]|\\k|\(\?P=")
_EVERY_CHARACTER: Final = re.compile(
    r"(?:\[\\s\\S\]|\[\\S\\s\]|\[\\d\\D\]|\[\\w\\W\]|\[\^\]|\((?:\?:)?\.\|\\n\)|\((?:\?:)?\.\|\\s\))\*\??"
    r"|\(\?[aimu]*s[aimu]*:\.\*\??\)"
)
_EVERY_IF_DOT_DOES: Final = re.compile(r"\.\*\??|\((?:\?:)?\.\*\)")


def always_true(options: Grader) -> str | None:
    """Why every trial satisfies a grader, `negate` aside; `None` when one may not, or when that cannot be told."""
    return _native(options) or _of_the_answer(options) or _of_the_steps(options)


def _native(options: Grader) -> str | None:
    match options:
        case native.DeterministicTests() if options.command is not None and always_succeeds(options.command):
            return f"`{options.command}` exits 0 whatever the tests say"
        case native.StaticAnalysis() if all(t not in PYTHON_TOOLS and always_succeeds(t) for t in options.tools):
            return f"{', '.join(f'`{tool}`' for tool in options.tools)} exits 0 whatever is analysed"
        case native.StateCheck() if all(isinstance(c, native.CommandCheck) and _is_idle(c) for c in options.expect):
            return "its commands exit 0 whatever the agent left behind"
        case native.TrajectoryMetrics() if (given := _given(options)) and all(
            math.isinf(value) or (name in _RATES and value >= 1) or (name in _LEASTS and value <= 0)
            for name, value in given
        ):
            return f"every trial has {', '.join(f'{name}: {value:g}' for name, value in given)}"
        case native.PolicyCheck() if not _denies(options):
            return "its rules allow every argument"
        case native.OutputCheck() if _is_any_output(options):
            what = "contains a blank" if options.matches is None else f"matches {options.matches!r}"
            return f"every answer {what}"
        case native.LlmRubric() if options.threshold <= 0:
            return "its threshold is 0, and every score reaches that"
    return None


def _is_idle(check: native.CommandCheck) -> bool:
    any_output = check.stdout_equals is None and all(not text.strip() for text in check.stdout_contains)
    any_match = check.stdout_matches is None or python_finds_everything(check.stdout_matches)
    return any_output and any_match and check.exit_code == 0 and always_succeeds(check.command)


def _given(options: Grader) -> list[tuple[str, float]]:
    """The limits of a grader that are given."""
    names = [name for name in type(options).model_fields if name.startswith(("max_", "min_")) and name != "min_score"]
    return [(name, value) for name in names if (value := getattr(options, name)) is not None]


def _denies(options: native.PolicyCheck) -> bool:
    return bool(options.deny_tools or options.deny_output or options.secrets or options.canaries) or any(
        rule.deny or (rule.allow and not any(set(pattern) == {"*"} for pattern in rule.allow))
        for rule in options.arguments
    )


def _is_any_output(options: native.OutputCheck) -> bool:
    demands = options.equals is not None or options.not_contains or options.json_schema is not None
    if demands or any(text.strip() for text in options.contains):
        return False
    if options.matches is not None:
        return python_finds_everything(options.matches, ignore_case=options.ignore_case)
    return bool(options.contains)


def _of_the_answer(options: Grader) -> str | None:
    match options:
        case evals.TextAssertion():
            values = (options.value,) if isinstance(options.value, str) else options.value
            enough = any if options.type.endswith("_any") else all
            if enough(not value.strip() for value in values):
                return "every answer contains a blank"
        case evals.Regex() if javascript_finds_everything(options.value, options.flags):
            return f"every answer matches /{options.value}/{options.flags}"
        case evals.CodeGrader() if same_for_all(options.command):
            return f"`{options.command[0]}` says the same of every trial"
        case evals.ScriptAssertion() if (script := options.value.strip().rstrip(";").strip()) in _TRUTHS:
            return f"`{script}` says the same of every answer"
    return None


def _of_the_steps(options: Grader) -> str | None:
    match options:
        case evals.ToolTrajectory():
            demands = options.expected or options.mode != "any_order" or any(options.minimums.values())
            if options.minimums and not demands:
                return "no tool has to be called: its minimums are 0"
        case evals.ToolUsed() if options.min == 0 and options.max is None:
            return "no tool has to be called: `min` is 0"
        case evals.StepCount() if not options.min and options.max is None:
            return "every trial has 0 steps or more"
        case evals.Latency(threshold=math.inf) | evals.Cost(budget=math.inf):
            return "no trial exceeds its limit"
        case evals.ExecutionMetrics(target_exploration_ratio=float(target)) if options.exploration_tolerance < max(
            target, 1 - target
        ):
            return None  # the shares 0 and 1 are the furthest from the target, and one of them is too far
        case evals.TokenUsage() | evals.ExecutionMetrics() if all(math.isinf(value) for _, value in _given(options)):
            return "no trial exceeds its limits"
    return None


def always_succeeds(command: str) -> bool:
    """Whether a shell ends with 0 after this command for certain: `true`, `pytest || true`, `pytest | tee log`.

    Whatever is more than a list of plain commands is taken to be able to fail.
    """
    words = _words(command)
    if not words or any(word in {"{", "}"} or word.startswith(("<<", "#")) for word in words):
        return False
    last = max((place for place, word in enumerate(words) if word in _OPERATORS), default=-1)
    before, operator, final = words[: max(last, 0)], words[last] if last >= 0 else "", words[last + 1 :]
    if _END_THE_SHELL.intersection(before):
        return False
    if operator == "&" and not final:
        return True
    if operator == "&&" or any(set(word) <= set("()<>") for word in final):
        return False
    if final[:1] == ["exit"]:
        return final[1:] == ["0"]
    return bool(final) and final[0] in (_SUCCEED_ON_A_PIPE if operator == "|" else _SUCCEED)


def same_for_all(command: Sequence[str]) -> bool:
    """Whether a program, given with its arguments, says and does the same whatever it is given."""
    if len(command) == 3 and command[0] in _CALLS_A_SHELL and command[1] == "-c":
        words = _words(command[2])
        return bool(words) and words[0] in _SUCCEED and not _OPERATORS.intersection(words) and "$" not in command[2]
    return bool(command) and command[0] in _SUCCEED


def _words(command: str) -> list[str]:
    """The words and operators of a command; none when it cannot be read."""
    lines = command.strip().replace("\\\n", " ").replace("\n", " ; ")
    lexer = shlex.shlex(lines, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        words = list(lexer)
    except ValueError:
        return []
    return words[:-1] if words and words[-1] == ";" else words


# A search that looks neither back nor at where it stands sees, at the end of any text, what it sees in an empty one. So
# an expression without `^`, `\A`, `\b`, `\B` and look-behind that is found in the empty text is found in every text:
# `.*`, `x?$`, and also `(?!.*password)`, which forbids nothing. One that begins with `^` and looks at nothing else is
# found at the start of every text when it is found in the empty one: `^(?:yes)?`. Between `^` and `$` only what takes
# every character is: `^[\s\S]*$`; where these are of a line, every character of one is enough: `(?m)^.*$`. Expressions
# that are none of these are taken to be able to fail.


def python_finds_everything(pattern: str, *, ignore_case: bool = False) -> bool:
    """Whether an expression of Python's `re` is found in every text. False for one that is none, or that is too large
    for such a look.
    """
    inline = _INLINE_FLAGS.match(pattern)
    flags = inline[1] if inline else ""
    body = pattern[inline.end() :] if inline else pattern

    def in_nothing() -> bool:
        try:
            return re.search(pattern, "", re.IGNORECASE if ignore_case else 0) is not None
        except (re.error, OverflowError, RecursionError):
            return False

    scoped = _SCOPED.fullmatch(body)
    if scoped is not None:
        flags, body = flags + scoped[1], scoped[2]
    return "x" not in flags and _finds_everything(body, in_nothing, flags)


def javascript_finds_everything(pattern: str, flags: str = "") -> bool:
    """The same of an expression as JavaScript knows them."""

    def in_nothing() -> bool:
        try:
            return regress.Regex(pattern, engine_flags(flags)).find("") is not None
        except (regress.RegressError, UnicodeEncodeError):
            return False

    if "y" in flags:  # it is looked for at the start alone
        tokens = set(_TOKEN.findall(pattern))
        return not tokens & (_LOOKS_AHEAD | _LOOKS_BACK) and not _BACK_REFERENCE.search(pattern) and in_nothing()
    return _finds_everything(pattern, in_nothing, flags)


def _finds_everything(body: str, in_nothing: Callable[[], bool], flags: str) -> bool:
    if not in_nothing():
        return False
    tokens = set(_TOKEN.findall(body))
    if not tokens & _LOOKS_BACK:
        return True
    start = _START.match(body)
    if start is None:
        return False
    rest = body[start.end() :]
    if not set(_TOKEN.findall(rest)) & (_LOOKS_BACK | _LOOKS_AHEAD):
        return _BACK_REFERENCE.search(rest) is None
    end = _END.search(rest)
    core = rest[: end.start(1)] if end else rest
    of_lines = "m" in flags and (start[0] == "^" or (end is not None and end[1] == "$"))
    dot_is_enough = "s" in flags or of_lines
    return bool(_EVERY_CHARACTER.fullmatch(core) or (dot_is_enough and _EVERY_IF_DOT_DOES.fullmatch(core)))
