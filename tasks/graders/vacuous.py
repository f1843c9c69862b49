"""Find graders that cannot fail, and tasks that ask too little, before any trial: by their options and by trying them.

Graders of the answer are tried with answers. What takes a program, a judge or a sandbox is not run here: a command is
known by its end (`|| true`), a limit by its value. `check-graders` runs everything.

A task asks too little when an agent passes it without the work: it repeats the prompt or answers with an empty JSON
document, and leaves an empty file wherever one is looked for.
"""

import math
import re
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import regress

from passgate.tasks.errors import MeasurementError
from passgate.tasks.graders import trial_result, trial_score
from passgate.tasks.graders.answers import json_check, output_checks, schema_problems, text_checks
from passgate.tasks.graders.evidence import finish_grade, score_grade
from passgate.tasks.graders.limits import LIMITS
from passgate.tasks.model import assertions as evals
from passgate.tasks.model import graders as native
from passgate.tasks.model.grade import RawGrade
from passgate.tasks.model.grader_options import AssertionOptions, CommandCheck, FileCheck, engine_flags
from passgate.tasks.model.graders import Grader
from passgate.tasks.model.task import Budgets, EvalTask
from passgate.tasks.model.transcript import Transcript
from passgate.tasks.model.trial import TrialMetrics, TrialStatus

_REMEDY: Final = "say what must be so, or take it out"
_WORK_REMEDY: Final = (
    "let a grader ask for what only the work brings about: a text that the prompt lacks, a file's content"
)
_SCHEMA_REMEDY: Final = "say what must be in the document: `type`, `required`, `properties`"
_EMPTY: Final = ("{}", "[]", '""', "0", "null")
_EMPTY_DOCUMENTS: Final[tuple[Any, ...]] = ({}, [], "", 0, None, False)
_TRUTHS: Final = frozenset({"true", "True", "1", "1.0", "return true", "return True", "return 1", "return 1.0"})

_QUOTED: Final = re.compile(r"'[^']*'|\"[^\"]*\"")
_PRINTS: Final = r"(?:true|:|echo|printf)(?!\w)[^&|;<>()`$\n]*"
_PASSES_ON: Final = r"(?:true|:|echo|printf|tee|cat|head|tail|wc|sort|uniq|tr|cut|nl)(?!\w)[^&|;<>()\n]*"
_SUCCEEDS: Final = re.compile(rf"(?:(?:^|\|\||[;\n])\s*(?:exit 0|{_PRINTS})|(?<!\|)\|\s*{_PASSES_ON}|(?<!&)&)\s*\Z")
_MAY_STOP: Final = re.compile(r"(?<!\S)[{}](?!\S)|#|<<|\b(?:exit|exec|return|set|kill|trap)\b")
_SHELL: Final = re.compile(r"(?:/bin/)?(?:ba|da)?sh -c (.*)", re.DOTALL)

_ANCHOR: Final = re.compile(r"\^|\\[AbB]|\(\?<")
_NOT_TRIED: Final = re.compile(r"\(\?<?!|\{")  # What looks for something that must not be there, or counts
_ANSWERS: Final = (
    *("x", "no", "a\nb\nc\nd", "\n\n", "  ", "ab. cd, ef", "0123456789"),
    *(".,;:!?-#@'\"()[]{}", "éßñж中あع😀"),
)


class Vacuous(NamedTuple):
    """A grader of a task that cannot fail or asks too little, or all of them together."""

    place: int | None  # Among the task's graders, from 0; `None`: all together
    why: str
    remedy: str = _REMEDY


def graders_that_cannot_fail(task: EvalTask) -> list[Vacuous]:
    """Return the graders of a task by which no trial can fail.

    Where all must pass, each of them. Where scores are averaged, those that bind by themselves, and else the task as a
    whole: a grader there may inform only, with the weight 0 or with points for everybody, while others can fail it.
    """
    weighted = task.scoring.rule == "weighted_average"
    found = [
        Vacuous(place, why)
        for place, grader in enumerate(task.graders)
        # A rubric's score counts in an average whatever its own threshold is.
        if not (weighted and isinstance(grader, AssertionOptions | native.LlmRubric))
        and (why := cannot_fail(grader)) is not None
    ]
    least = [grade for grader in task.graders if (grade := _least(grader)) is not None]
    if found or not weighted or len(least) < len(task.graders):
        return found
    unlimited = task.model_copy(update={"budgets": Budgets()})
    try:
        passes = trial_result(unlimited, Transcript(), TrialMetrics(), least).status is TrialStatus.PASSED
    except MeasurementError:  # every weight is 0
        passes = False
    if not passes:
        return []
    reasons = [f"{task.graders[one.place or 0].label}: {one.why}" for one in points_for_nothing(task)]
    why = f"no trial has less than {trial_score(task, least):.3g}, and {task.scoring.threshold:g} passes"
    return [Vacuous(None, "; ".join([why, *reasons]))]


def points_for_nothing(task: EvalTask) -> list[Vacuous]:
    """Return the graders of an average that have a weight and give every trial all of their points."""
    return [
        Vacuous(place, why, f"{_REMEDY}, or give it the weight 0")
        for place, grader in enumerate(task.graders)
        if task.scoring.rule == "weighted_average" and grader.weight and isinstance(grader, AssertionOptions)
        if (least := _least(grader)) is not None and least.score == 1 and (why := cannot_fail(grader)) is not None
    ]


def cannot_fail(grader: Grader) -> str | None:
    """Return why a grader passes whatever the agent does; `None` when it can fail, or when that cannot be told."""
    least = _least(grader)
    if least is None or not least.passed:
        return None
    if isinstance(grader, native.Composite):
        inner = [why for member in grader.assertions if (why := cannot_fail(member)) is not None]
        return "; ".join(inner) or "it passes whatever its members come to"
    negated = isinstance(grader, AssertionOptions) and grader.negate
    return (None if negated else _always_true(grader)) or "every score passes: its least score is 0"


def _least(grader: Grader) -> RawGrade | None:
    """Return the grade of a grader at its least; `None` when it cannot be told."""
    try:
        return _least_grade(grader)
    except MeasurementError:
        return None


def _least_grade(options: Grader) -> RawGrade:
    """Return the same. A composite whose score a program or a judge gives is taken for one grader, and so are turns.
    Raises `MeasurementError` when a composite has no score.
    """
    if isinstance(options, native.Composite) and options.evidence == "transcript":
        # Every run looks at its graders, and few are composites.
        from passgate.tasks.graders.composite import combine, composite_members

        members = composite_members(options, [_least_grade(member) for member in options.assertions])
        return finish_grade(options, combine(options, options.aggregator, members, options.threshold))
    true = _always_true(options) is not None
    fatal = "one of its members may bind" if isinstance(options, native.Composite | native.Turns) else ""
    if isinstance(options, evals.Rubrics) and any(item.required for item in options.criteria):
        fatal = "a required item is not met"
    if not isinstance(options, AssertionOptions) or isinstance(options, native.Composite | native.Turns):
        points = true and not isinstance(options, native.LlmRubric)
        return RawGrade(name=options.label, type=options.type, score=float(points), passed=true, fatal=fatal)
    # What is negated is at its least when what it negates is at its best.
    return finish_grade(options, score_grade(options, float(true or options.negate), fatal=fatal))


def _always_true(options: Grader) -> str | None:
    """Return why every trial satisfies a grader, `negate` aside; `None` when one may not, or when that is not known."""
    return _accepts_every_state(options) or _accepts_every_answer(options) or _accepts_every_step(options)


def _accepts_every_state(options: Grader) -> str | None:
    match options:
        case native.DeterministicTests(command=str(command)) if always_succeeds(command):
            return f"`{command}` exits 0 whatever the tests say"
        case native.StaticAnalysis() if all(map(always_succeeds, options.tools)):
            return f"{', '.join(f'`{tool}`' for tool in options.tools)} exits 0 whatever is analysed"
        case native.StateCheck() if all(isinstance(one, CommandCheck) and _is_idle(one) for one in options.expect):
            return "its commands exit 0 whatever the agent left behind"
        case native.PolicyCheck() if not _denies(options):
            return "its rules allow every argument"
        case evals.CodeGrader() if says_the_same(options.command):
            return f"`{options.command[0]}` says the same of every trial"
        case native.LlmRubric(threshold=0):
            return "its threshold is 0, and every score reaches that"
    return None


def _accepts_every_answer(options: Grader) -> str | None:
    match options:
        case native.OutputCheck(equals=None, not_contains=(), json_schema=None):
            if "".join(options.contains).strip():
                return None
            if options.matches is None:
                return "every answer contains a blank" if options.contains else None
            if python_finds_everything(options.matches, ignore_case=options.ignore_case):
                return f"every answer matches {options.matches!r}"
        case evals.TextAssertion():
            values = (options.value,) if isinstance(options.value, str) else options.value
            if (any if options.type.endswith("_any") else all)(not value.strip() for value in values):
                return "every answer contains a blank"
        case evals.Regex() if javascript_finds_everything(options.value, options.flags):
            return f"every answer matches /{options.value}/{options.flags}"
        case evals.ScriptAssertion() if (script := options.value.strip().rstrip(";").strip()) in _TRUTHS:
            return f"`{script}` says the same of every answer"
    return None


def _accepts_every_step(options: Grader) -> str | None:
    match options:
        case evals.ToolTrajectory(mode="any_order", expected=(), minimums={**minimums}) if not any(minimums.values()):
            return "no tool has to be called: its minimums are 0" if minimums else None
        case evals.ToolUsed(min=0, max=None):
            return "no tool has to be called: `min` is 0"
        case evals.StepCount(min=0 | None, max=None):
            return "every trial has 0 steps or more"
        case evals.Latency() | evals.Cost() | evals.TokenUsage() | native.TrajectoryMetrics():
            return _idle_limits(options)
        case evals.ExecutionMetrics(target_exploration_ratio=None):
            return _idle_limits(options)
    return None


def _is_idle(check: CommandCheck) -> bool:
    any_output = check.stdout_equals is None and not "".join(check.stdout_contains).strip()
    any_match = check.stdout_matches is None or python_finds_everything(check.stdout_matches)
    return any_output and any_match and check.exit_code == 0 and always_succeeds(check.command)


def _denies(options: native.PolicyCheck) -> bool:
    return bool(options.deny_tools or options.deny_output or options.secrets or options.canaries) or any(
        rule.deny or (rule.allow and not any(set(pattern) == {"*"} for pattern in rule.allow))
        for rule in options.arguments
    )


def _idle_limits(options: Grader) -> str | None:
    limits = {name: value for name in LIMITS if (value := getattr(options, name, None)) is not None}
    # A rate is at most 1, and a count at least 0.
    idle = limits and all(
        value == math.inf or (name.endswith("_rate") and value >= 1) or (name.startswith("min_") and value <= 0)
        for name, value in limits.items()
    )
    shown = ", ".join(f"{name}: {value:g}" for name, value in limits.items())
    return f"every trial keeps its limits, {shown}" if idle else None


def always_succeeds(command: str) -> bool:
    """Return whether the end of a command makes a shell exit with 0: `true`, `pytest || true`, `pytest | tee log`."""
    plain = _QUOTED.sub("_", command.strip().replace("\\\n", " "))
    end = _SUCCEEDS.search(plain)
    return end is not None and not _MAY_STOP.search(plain[: end.start()])


def says_the_same(command: Sequence[str]) -> bool:
    """Return whether a program only prints what its arguments say, whatever it is given."""
    shell = _SHELL.fullmatch(" ".join(command))
    line = _QUOTED.sub("_", shell[1]) if shell and "$" not in shell[1] else command[0]
    return re.fullmatch(_PRINTS, line) is not None


def python_finds_everything(pattern: str, *, ignore_case: bool = False) -> bool:
    """Return whether an expression of Python's `re` is found in every text, as far as short texts show it."""
    try:
        return _finds_everything(re.compile(pattern, re.IGNORECASE if ignore_case else 0).search, pattern)
    except (re.error, OverflowError, RecursionError):
        return False


def javascript_finds_everything(pattern: str, flags: str = "") -> bool:
    """Return the same of an expression as JavaScript knows them."""
    at_start = "y" in flags

    def search(text: str) -> bool:
        match = expression.find(text)
        return match is not None and not (at_start and match.range().start)

    try:
        expression = regress.Regex(pattern, engine_flags(flags))
        return _finds_everything(search, pattern, at_start=at_start)
    except (regress.RegressError, UnicodeEncodeError):
        return False


def _finds_everything(search: Callable[[str], object], pattern: str, *, at_start: bool = False) -> bool:
    if not search(""):
        return False
    # At the end of any text, a search that does not look back sees what it sees in an empty one.
    if not at_start and not _ANCHOR.search(pattern):
        return True
    own = " ".join(re.findall(r"\w", re.sub(r"\\.", "", pattern)))
    return not _NOT_TRIED.search(pattern) and all(map(search, (*_ANSWERS, own)))


def graders_that_ask_too_little(task: EvalTask) -> list[Vacuous]:
    """Return what an agent satisfies without the work: all graders together, or one whose JSON Schema accepts all."""
    found = [
        Vacuous(place, "every JSON document is as its json_schema wants it", _SCHEMA_REMEDY)
        for place, grader in enumerate(task.graders)
        if isinstance(grader, native.OutputCheck) and _accepts_all(grader.json_schema)
    ]
    graders = [grader for grader in task.graders if grader.weight or task.scoring.rule != "weighted_average"]
    states = [grader for grader in graders if isinstance(grader, native.StateCheck)]
    files = dict.fromkeys(check.file for one in states for check in one.expect if isinstance(check, FileCheck))
    leaves = [f"leaves an empty {', '.join(files)}"] if files else []
    answers = {one: f"answers `{one}`" for one in _EMPTY}
    if task.prompt:
        answers = {task.prompt: "repeats the prompt", **answers}
    for answer, says in answers.items():
        if graders and all(_is_satisfied(grader, answer) for grader in graders):
            said = [says] if len(states) < len(graders) else []
            why = f"an agent passes that {' and '.join([*said, *leaves])}"
            return [*found, Vacuous(0 if len(task.graders) == 1 else None, why, _WORK_REMEDY)]
    return found


def _accepts_all(schema: dict[str, Any] | None) -> bool:
    try:
        return schema is not None and not any(schema_problems(schema, document) for document in _EMPTY_DOCUMENTS)
    except MeasurementError:
        return False


def _is_satisfied(part: Grader, answer: str) -> bool:
    """Return whether an answer, beside empty files, satisfies a grader; false where that cannot be told."""
    try:
        match part:
            case native.OutputCheck():
                # An expression can take very long, and nobody limits it here.
                return part.matches is None and all(check.passed for check in output_checks(part, answer))
            case evals.TextAssertion():
                return not part.negate and all(check.passed for check in text_checks(part, answer))
            case evals.IsJson():
                return not part.negate and json_check(part.value, answer).passed
            case native.StateCheck():
                files = [check for check in part.expect if isinstance(check, FileCheck) and check.exists]
                asks_for_more = part.run or len(files) < len(part.expect)
                return not asks_for_more and not any(one.contains or one.matches or one.equals for one in files)
            case _:
                return False
    except MeasurementError:
        return False
