"""The answer of a gate, with every reason and the digest of every input; its sign-off; what reports show of a run."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from typing import Literal

from passgate.tasks.errors import ExitCode
from passgate.tasks.model.base import Frozen
from passgate.tasks.model.baseline import BaselineTask, Repeat
from passgate.tasks.model.json_values import json_digest
from passgate.tasks.model.measurement import Measurement, TaskState
from passgate.tasks.model.policy import Rule
from passgate.tasks.model.run import Edit, Plan, Revision
from passgate.tasks.model.task import EvalTask, GateName, Suite
from passgate.tasks.model.transcript import Transcript
from passgate.tasks.model.trial import Trial

_DECIDED = {"approve": "approved", "reject": "rejected"}
_NAME = 60  # Characters of a name that a headline has room for
_CHANGED_BY_A_SIGN_OFF = frozenset({"decision", "exit_code", "awaiting_sign_off", "sign_off"})


class Decision(StrEnum):
    PASS = "PASS"
    FAIL = "FAIL"
    INCONCLUSIVE = "INCONCLUSIVE"

    @property
    def exit_code(self) -> ExitCode:
        return ExitCode[self.name]


class Reason(Frozen):
    """One thing that speaks against passing. Only blocking reasons decide; the others are for the reader."""

    rule: Rule
    blocking: bool
    message: str
    suite: Suite | None = None
    task_id: str | None = None
    trials: tuple[int, ...] = ()
    file: str | None = None
    line: int | None = None


class SlowerTask(Frozen):
    """A task that alone exceeds the limit of a single task."""

    task: str
    """`suite/task_id`."""
    baseline: float
    """Geometric mean of its trials."""
    current: float
    lower_bound: float
    """What current / baseline exceeds, beside the other tasks of the run."""


class Comparison(Frozen):
    """A limit against the baseline: the plain figures and the paired ratio, with one-sided bounds of both. A bound
    is at most 1 where an unchanged agent would show such a rise too often by chance.
    """

    name: str
    unit: str
    baseline: float
    current: float
    pairs: int
    """Tasks with figures above 0 on both sides."""
    runs: int = 0
    """Runs of the baseline that these figures are of."""
    ratio: float | None
    """Geometric mean over the tasks of current / baseline; `None` with too few tasks or runs that share them."""
    ratio_lower_bound: float | None
    drift: float | None = None
    """By how much whole runs of the baseline differ, as the standard deviation of the logarithm of their figures."""
    persistence: float | None = None
    """The correlation of that from run to run."""
    plain_lower_bound: float | None = None
    """What the ratio of the plain figure to that of the baseline's runs exceeds."""
    slower_tasks: tuple[SlowerTask, ...] = ()
    """Those over the limit, the worst first."""
    limit: str
    confidence: float = 0.9
    """Of the one-sided bound."""


class Finding(StrEnum):
    """What confirming trials have shown of a failed task."""

    FALLEN = "fallen"
    FITS = "no large fall shown"
    UNDECIDED = "undecided"
    """All trials that the policy allows are spent, or more of them would not be worth it."""
    UNFINISHED = "not finished"
    """More trials are wanted: they were not run yet, or could not be run."""


class Confirmation(Frozen):
    """A failed task held against its pooled baseline, with confirming trials."""

    task: str
    """`suite/task_id`."""
    finding: Finding
    passed: int
    n: int
    """Trials by which it was decided, the first k included."""
    confirming: int
    """Trials beyond the first k that were run. Some of them may have ended after it was decided."""
    baseline_passed: int
    baseline_n: int
    before_edit: int = 0
    """Of the baseline's trials those of the task's version before an edit."""
    alpha: float
    """The chance that an unchanged task is taken for fallen, as this gate allows it to one task."""


class SuiteConfirmation(Frozen):
    """A whole suite held against its pooled baseline."""

    suite: Suite
    finding: Finding
    tasks: int
    """Tasks whose baseline has enough trials."""
    failed: int
    n: int
    """Trials by which it was decided."""
    expected: float
    """Failed trials of so many that are expected if nothing has changed."""
    alpha: float
    """The chance that an unchanged suite is taken for fallen, as this gate allows it to one suite."""


class Exemption(Frozen):
    """A task whose failure does not block, and why."""

    task: str
    why: str
    """`not admitted` or `quarantined`, with the particulars."""


class AlarmKind(StrEnum):
    """What a gate can tell as an alarm."""

    CRASHED_AGENTS = "crashed_agents"
    BELOW_FLOOR = "below_floor"
    DRIFT = "drift"


class Alarm(Frozen):
    """Something that somebody should look at, whatever the verdict is: it blocks nothing."""

    kind: AlarmKind
    message: str
    suite: Suite | None = None


class OtherVerdict(Frozen):
    """What the change's own files would have said."""

    decision: Decision
    headline: str
    reasons: tuple[Reason, ...] = ()


class Integrity(Frozen):
    """Who judged a change that edits what it is judged by."""

    base: str
    """The merge base; empty where git cannot tell."""
    tip: str = ""
    """The tip of the target branch, where its files go before those of the merge base."""
    judged_by: Literal["base", "change"] = "base"
    """Whose files have judged: those of the tip or the merge base, or the change's own, where a note says why."""
    edits: tuple[Edit, ...]
    change: OtherVerdict | None = None
    """`None` where the change's own files cannot be read or run, and where they have judged."""
    at_base: OtherVerdict | None = None
    """What the files of the tip or the merge base say, where those of the working folder have judged outside of CI."""

    @property
    def by_base(self) -> bool:
        return self.judged_by == "base"

    @property
    def other(self) -> OtherVerdict | None:
        """The verdict by the files that have not judged."""
        return self.change if self.by_base else self.at_base

    @property
    def judging(self) -> str:
        """The commit whose files go before those of the change."""
        return self.tip or self.base

    @property
    def name(self) -> str:
        """What that commit is, for reports."""
        return "tip of the target branch" if self.tip else "merge base"


class SignOff(Frozen):
    """What a person decided on a verdict."""

    by: str
    decision: Literal["approve", "reject"]
    reason: str
    at: datetime
    verdict_digest: str
    """Digest of the verdict that they saw, without its sign-off."""

    @property
    def decided(self) -> str:
        """`approved by NAME` or `rejected by NAME`, in a line; a long name is cut."""
        name = " ".join(self.by.split())
        shown = name if len(name) <= _NAME else f"{name[: _NAME - 1]}…"
        return f"{_DECIDED[self.decision]} by {shown}"


class Inputs(Frozen):
    """Digests of all that went into a verdict."""

    policy: str
    tasks: str
    graders: str
    trials: str
    agent: str
    """Of the agent's spec: what it is, its model, its endpoints."""
    prices: str
    baseline_runs: tuple[str, ...] = ()
    baseline: str = ""
    """Of the rows of the baseline, as they were pooled."""
    quarantine: str = ""
    passgate_version: str


class Verdict(Frozen):
    """The verdict of one run; verdict.json is this model, and every report is a view of it."""

    schema_version: int = 1
    run_id: str
    gate: GateName
    decision: Decision
    exit_code: int
    reasons: tuple[Reason, ...] = ()
    notes: tuple[str, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    confirmations: tuple[Confirmation, ...] = ()
    suite_confirmations: tuple[SuiteConfirmation, ...] = ()
    not_admitted: tuple[Exemption, ...] = ()
    quarantined: tuple[Exemption, ...] = ()
    young: int = 0
    """Tasks whose baseline has too few trials to guard them: only a shown fall blocks."""
    unarmed: int = 0
    """Tasks whose failure cannot block, however they fail; violations block all the same."""
    repeats: tuple[Repeat, ...] = ()
    """Earlier runs of the same commit, gate and agent in the history, the oldest first."""
    alarms: tuple[Alarm, ...] = ()
    """What the policy's `alarm` asks for; each of them is a note too."""
    integrity: Integrity | None = None
    awaiting_sign_off: bool = False
    sign_off: SignOff | None = None
    measurement: Measurement
    agent: str
    judge: str = ""
    """Who graded by rubrics: `recorded replies`, a model's name, or empty when no judge was asked."""
    revision: Revision = Revision()
    inputs: Inputs
    started_at: datetime
    judged_at: datetime

    @property
    def headline(self) -> str:
        """The verdict in a line. It contains the name of the person who signed off, as they wrote it."""
        return f"{self.gate} {self.decision}: {', '.join(self._in_short())}"

    def _in_short(self) -> Iterator[str]:
        blocking = [reason.rule for reason in self.reasons if reason.blocking]
        others = [rule for rule in blocking if rule is not Rule.SIGN_OFF]
        if self.sign_off is not None:
            yield self.sign_off.decided
        match self.decision:
            case Decision.PASS:
                tasks = self.measurement.tasks
                yield f"{sum(task.passed for task in tasks)} of {sum(task.n for task in tasks)} trials passed"
                failed = sum(task.state is TaskState.FAILED for task in tasks)
                if failed:
                    yield f"{failed} failed task{'s do' if failed != 1 else ' does'} not block"
            case Decision.FAIL if others or self.sign_off is None:
                by_rule = ", ".join(f"{count} {rule}" for rule, count in Counter(blocking).most_common())
                yield f"{len(blocking)} blocking reasons ({by_rule})" if len(blocking) > 1 else "1 blocking reason"
            case Decision.INCONCLUSIVE if self.awaiting_sign_off and not others:
                yield "awaiting sign-off"
            case Decision.INCONCLUSIVE:
                yield "the evidence is not complete"
        of_tasks = f"of {len(self.measurement.tasks)} tasks"
        if self.young:
            yield f"young baseline for {self.young} {of_tasks}: only a shown fall blocks"
        if self.unarmed:
            yield f"{self.unarmed} {of_tasks} unarmed"


def verdict_digest(verdict: Verdict) -> str:
    """SHA-256 of a verdict without all that a sign-off changes, so that it is the same before and after one."""
    # Without defaults, so that a field which a later passgate adds does not change the digests of earlier verdicts.
    plain = verdict.model_dump(mode="json", exclude=set(_CHANGED_BY_A_SIGN_OFF), exclude_defaults=True)
    reasons = [reason for reason in plain.pop("reasons", []) if reason["rule"] != Rule.SIGN_OFF]
    return json_digest(plain | {"reasons": reasons})


def signed_off(verdict: Verdict, sign_off: SignOff) -> Verdict:
    """Return the verdict after its sign-off: PASS if it is approved, FAIL if it is rejected."""
    reasons = tuple(reason for reason in verdict.reasons if reason.rule is not Rule.SIGN_OFF)
    decision = Decision.PASS
    if sign_off.decision == "reject":
        decision = Decision.FAIL
        message = f"rejected by {sign_off.by}: {sign_off.reason}"
        reasons = (Reason(rule=Rule.SIGN_OFF, blocking=True, message=message), *reasons)
    return verdict.model_copy(
        update={
            "decision": decision,
            "exit_code": decision.exit_code,
            "reasons": reasons,
            "awaiting_sign_off": False,
            "sign_off": sign_off,
        }
    )


@dataclass(frozen=True)
class EarlierRun:
    """The result of a task or of a suite in an earlier run."""

    run_id: str
    passed: int  # Trials of it
    measured: int


@dataclass(frozen=True)
class RunView:
    """A run that has ended."""

    verdict: Verdict
    trials: tuple[Trial, ...] = ()  # The trials that were judged
    transcript: Callable[[str], Transcript | None] = lambda _: None
    """Reads a transcript by its digest when it is called: a run of thousands of trials has more of them than memory
    holds. `None` where the run does not keep it. Raises `StorageError`."""
    history: Mapping[str, BaselineTask] = field(default_factory=dict)
    """What the baseline says of each task, by its `suite/task_id`; empty where the baseline was not read."""
    earlier: Mapping[str, tuple[EarlierRun, ...]] = field(default_factory=dict)
    """The newest earlier runs of the same agent, the oldest first, by `suite/task_id` and by suite; empty where
    the history was not read."""
    plan: Plan | None = None
    """What was planned: the tasks with their budgets and the answers that they hope for. `None` where nobody knows."""

    @cached_property
    def planned(self) -> Mapping[str, EvalTask]:
        """The planned tasks by their `suite/task_id`."""
        return {task.name: task for task in self.plan.tasks} if self.plan else {}
