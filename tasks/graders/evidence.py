"""What every grader reads and returns: a finished trial, and the grade that its checks make.

What counts as a tool call is said here alone:

- every call in the messages of the transcript, in their order. That is what the model asked for, whatever ran it: the
  agent, passgate, or a sub-agent whose model calls the meter saw;
- also one that was refused. It was asked for, so a rule on what must not be sees it; it was not made, so it fulfils
  nothing. `Evidence.calls` tells them apart;
- not what a client writes beside a tool's result, such as a reminder: that is text of the conversation.

A tool that passgate offers has the task's name for it in the transcript, whatever a client calls it. A client's own
tools keep the client's names, with a server or a namespace before them; `tool_matches` looks past these.
"""

import re
import unicodedata
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from passgate.tasks.errors import MeasurementError, Raw, RawText
from passgate.tasks.metering.access import SERVER
from passgate.tasks.model.agent import AgentKind
from passgate.tasks.model.assertions import Unavailable
from passgate.tasks.model.grade import Check, Grade, LlmJudge, RawCheck, RawGrade, RawViolation, Violation
from passgate.tasks.model.grader_options import AssertionOptions
from passgate.tasks.model.graders import Grader
from passgate.tasks.model.json_values import parse_json
from passgate.tasks.model.quotes import Masker, raw
from passgate.tasks.model.sandbox import Sandbox
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.transcript import ToolCall, Transcript
from passgate.tasks.model.trial import TrialMetrics

# A server or a namespace stands before the name: mcp__crm__delete, crm.delete, crm/delete, functions:delete.
_SEPARATOR: Final = re.compile(r"__+|[./:]")
_OWN_SERVER: Final = re.compile(rf"^(mcp\.)?{SERVER}\.(?=[^*])")
_METER: Final = "Send the agent's model calls through the passgate meter"
_FILE: Final = "have the agent write its transcript, with usage and times, to the file that PASSGATE_TRANSCRIPT names"
_RETURNED: Final = "return a transcript, with usage and times, from its function"
_REMEDIES: Final[dict[AgentKind | None, str]] = {
    AgentKind.CLI: f"{_METER}, or {_FILE}",
    AgentKind.PYTHON: f"{_METER}, or {_RETURNED}",
    AgentKind.HTTP: "In agents.yaml, name the fields of the reply that hold them: `http.tool_calls` with "
    "`http.complete: true`, `http.tokens_in`, `http.tokens_out`, `http.cost_usd`",
}

BORDERLINE_FROM: Final = 0.6
"""Below what passes and from here on a score is called borderline (AgentEvals); it fails all the same."""
ROUNDING: Final = 1e-9  # 0.1 + 0.2 is not to fall short of 0.3
AS_EXPECTED: Final = ", as expected"
_BUT_MUST: Final = ", but must"


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """One finished trial: what the agent said and did, and the state that it left behind."""

    task: EvalTask
    transcript: Transcript
    metrics: TrialMetrics
    sandbox: Sandbox
    suites_folder: Path
    masker: Masker  # Of the run's secrets
    judge: LlmJudge | None  # `None` when no judge is configured
    agent_kind: AgentKind | None = None  # Of the agent that had the trial; `None` where that is not known

    @property
    def final_answer(self) -> str:
        """What the agent says last: what it reports as its answer, else its last message."""
        return self.transcript.output

    def calls(self, *, refused: bool) -> list[ToolCall]:
        """Return the tool calls in their order, with those that were refused or without."""
        return [call for call in self.transcript.tool_calls if refused or not call.refused]

    def require_every_call(self, *, unless: bool = False) -> None:
        """Raise `MeasurementError` when the transcript may lack a call, unless the result is certain whatever it is."""
        if not self.transcript.complete and not unless:
            raise self.unreported("the agent does not report its tool calls")

    def unreported(self, problem: str) -> MeasurementError:
        """Return the error that something was not reported, with how an agent of this kind reports it."""
        usual = "Use a recording that contains it" if self.agent_kind else f"{_METER}, {_FILE}, or {_RETURNED}"
        return MeasurementError(f"{problem}. {_REMEDIES.get(self.agent_kind, usual)}")


GradeFunction = Callable[[Any, Evidence], Awaitable[RawGrade]]
"""Computes the bare grade of one type of grader from its options and a trial."""


def json_in(text: str) -> Any:
    """Return the JSON object or list in a text: all of it, else a code block, else from the first `{` to the last `}`.
    Raises `ValueError` when there is none.
    """
    # The first line of a code block names the language.
    blocks = (block.partition("\n")[2] for block in text.split("```")[1::2])
    for part in (text, *blocks, text[text.find("{") : text.rfind("}") + 1]):
        try:
            document = parse_json(part)
        except ValueError:
            continue
        if isinstance(document, dict | list):
            return document
    raise ValueError("the answer contains no JSON object or list")


class _Unseen(dict[int, int | None]):
    """For `str.translate`: takes away what has no width, and leaves white space."""

    def __missing__(self, code: int) -> int | None:
        sign = chr(code)
        is_seen = sign.isspace() or unicodedata.category(sign) not in {"Cf", "Cc"}
        self[code] = code if is_seen else None
        return self[code]


_UNSEEN: Final = _Unseen()


def plain(text: str, space: str = "") -> str:
    """Return a text without what the eye does not see: compatible characters, cases, zero-width signs, kinds of white
    space. Each run of white space becomes `space`.
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    return space.join(folded.translate(_UNSEEN).split())


cached_plain = lru_cache(maxsize=4096)(plain)


def tool_matches(pattern: str, tool: str) -> bool:
    """Return whether a pattern, with `*`, `?` and `[...]` as in file names, means a tool by its name. The server and
    the namespaces before the name may be left out; cases, dashes and what the eye does not see do not matter.
    """
    pattern, name = cached_plain(pattern), cached_plain(tool)
    if "[" not in pattern:  # A dash in brackets is a range
        pattern, name = pattern.replace("-", "_"), name.replace("-", "_")
    if fnmatchcase(name, pattern):
        return True
    parts = _SEPARATOR.split(name)
    ends = (".".join(parts[start:]) for start in range(len(parts)))
    # The task's own tools have no server in transcripts; a pattern for all of passgate's must not mean every tool.
    dotted = _OWN_SERVER.sub("", _SEPARATOR.sub(".", pattern))
    return any(fnmatchcase(end, dotted) for end in ends)


def checks_grade(
    options: Grader, checks: Sequence[RawCheck], violations: Sequence[RawViolation] = (), score: float | None = None
) -> RawGrade:
    """Return the grade of checks that must all pass; any violation fails it too. `score` is the share of passed checks
    when it is not given. Raises `MeasurementError` without checks: a grader that checks nothing must not pass.
    """
    if not checks:
        raise MeasurementError(f"{options.label} has nothing to check: set at least one option")
    share = sum(check.passed for check in checks) / len(checks)
    return RawGrade(
        name=options.label,
        type=options.type,
        score=share if score is None else score,
        passed=all(check.passed for check in checks) and not violations,
        checks=tuple(checks),
        violations=tuple(violations),
    )


def score_grade(
    options: AssertionOptions, score: float, checks: Sequence[RawCheck] = (), *, fatal: Raw = ""
) -> RawGrade:
    """Return the grade of a score. It passes from the grader's `min_score` on, unless something is fatal."""
    passed = score >= options.passing_score - ROUNDING and not fatal
    name, type_name = options.label, options.type_name
    return RawGrade(name=name, type=type_name, score=score, passed=passed, checks=tuple(checks), fatal=fatal)


def finish_grade(options: AssertionOptions, bare: RawGrade) -> RawGrade:
    """Return a bare grade as its options want it: negated, and fatal where it is required and not passed."""
    if bare.score is None:
        return bare
    grade = bare
    if options.negate:
        score, checks = 1 - bare.score, bare.checks
        # The checks of some graders know of the negation already: then they do not all agree with the bare grade.
        if all(check.passed for check in checks) is bare.passed:
            checks = tuple(RawCheck(passed=not check.passed, message=_opposite(check)) for check in checks)
        passed = score >= options.passing_score - ROUNDING
        grade = bare.model_copy(update={"score": score, "passed": passed, "checks": checks, "fatal": ""})
    if options.required and not grade.passed and not grade.fatal:
        why = next((raw(": ", check.message) for check in grade.checks if not check.passed), "")
        grade = grade.model_copy(update={"fatal": raw(f"required, but its score is {grade.score:.3g}", why)})
    return grade


def expectation(*, passed: bool, must: str = "") -> str:
    """Return how a check's message ends that says what is: `, as expected` or `, but must`, and what it must."""
    return AS_EXPECTED if passed else f"{_BUT_MUST}{f' {must}' if must else ''}"


def _opposite(check: RawCheck) -> Raw:
    """Return what a check says when the contrary is wanted."""
    *parts, end = check.message.parts if isinstance(check.message, RawText) else (check.message,)
    if isinstance(end, str):
        if check.passed and end.endswith(AS_EXPECTED):
            return raw(*parts, f"{end.removesuffix(AS_EXPECTED)}{_BUT_MUST} not")
        before, but_must, _ = end.rpartition(_BUT_MUST)
        if but_must and not check.passed:
            return raw(*parts, f"{before}{AS_EXPECTED}")
    return raw("negated: ", check.message)


async def grade_unavailable(options: Unavailable, evidence: Evidence) -> RawGrade:
    """Raise `MeasurementError`: what nobody can measure is neither passed nor failed."""
    raise MeasurementError(f"passgate has no grader {options.kind!r}")


def error_grade(options: Grader, reason: Raw, *, transient: bool = False) -> RawGrade:
    """Return the grade of a grader that could not measure: no score, not passed, the reason as its error."""
    return RawGrade(name=options.label, type=options.type, score=None, passed=False, error=reason, transient=transient)


async def gather_checks(checks: Iterable[Awaitable[RawCheck]]) -> list[RawCheck]:
    """Return the checks, one after the other. Raises the first `MeasurementError` among them, unless a check failed:
    that fail is certain, and what could not be measured beside it becomes a failed check that states this.
    """
    results: list[RawCheck] = []
    errors: list[MeasurementError] = []
    for check in checks:
        try:
            results.append(await check)
        except MeasurementError as error:
            errors.append(error)
            results.append(RawCheck(passed=False, message=raw("not measured: ", error.message)))
    # Only the checks of errors have failed.
    if errors and sum(not result.passed for result in results) == len(errors):
        raise errors[0]
    return results


def render_grade(grade: RawGrade, masker: Masker) -> Grade:
    """Return a grade whose texts have no secrets."""
    violations = [Violation(rule=found.rule, message=masker.render(found.message)) for found in grade.violations]
    return Grade(
        **dict(grade)
        | {
            "name": masker.text(grade.name),
            "checks": tuple(Check(passed=check.passed, message=masker.render(check.message)) for check in grade.checks),
            "violations": tuple(violations),
            "fatal": masker.render(grade.fatal),
            "members": tuple(render_grade(member, masker) for member in grade.members),
            "error": None if grade.error is None else masker.render(grade.error),
        }
    )
