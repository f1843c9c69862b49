"""A run as its page shows it: the verdict with its reasons, the suites, the tasks, what they cost and took."""

import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import NamedTuple

from passgate.tasks.model.baseline import BaselineState, BaselineTask, FiguresOfRuns, pooled
from passgate.tasks.model.measurement import Interval, SuiteMeasurement, TaskState
from passgate.tasks.model.policy import Rule
from passgate.tasks.model.run import Plan
from passgate.tasks.model.run_view import RunView
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.trial import Trial, TrialStatus, trial_numbers
from passgate.tasks.model.verdict import Decision, Reason, Verdict
from passgate.tasks.reports import figures, findings
from passgate.tasks.reports.escape import readable
from passgate.tasks.reports.findings import TaskFinding
from passgate.tasks.reports.page.charts import Histogram, Spark, histogram, spark
from passgate.tasks.reports.page.texts import Shown, anchor, shown
from passgate.tasks.reports.shell_commands import try_command, try_options
from passgate.tasks.reports.trial import MARKS

_NAME, _TEXT = 300, 4000
_MOST_DOTS = 30
_MOST_REASONS = 100
_REASONS_OPEN = 8
"""Blocking reasons that stand open, so that the suites and the tasks are not far below them."""
_REASONS_FOLDED = 3  # Fewer are not worth a click
DECISION_MARKS = {Decision.PASS: "✓", Decision.FAIL: "✗", Decision.INCONCLUSIVE: "?"}
_STATE_MARKS = {TaskState.PASSED: "✓", TaskState.FAILED: "✗", TaskState.UNDECIDED: "?"}
_DOT_ORDER = (TrialStatus.FAILED, TrialStatus.ERROR, TrialStatus.PASSED, TrialStatus.NOT_RUN)


def line(text: str, limit: int = _NAME) -> str:
    """A name or a short text from outside."""
    return readable(text, limit)[0]


class Dot(NamedTuple):
    """A trial of a task in the table, or several in a row that look the same and are shown nowhere."""

    status: str
    marks: str
    link: str
    """Empty where no file shows the trial."""
    label: str
    is_confirming: bool = False


class ReasonShown(NamedTuple):
    """One reason, as a sentence."""

    blocks: bool
    sign: str
    weight: str
    rule: str
    subject: str
    link: str
    message: Shown
    trials: tuple[Dot, ...]
    place: str


class SuiteRow(NamedTuple):
    """A suite in the table."""

    cells: tuple[str, ...]
    value: float | None
    interval: Interval | None
    history: Spark | None


class TaskRow(NamedTuple):
    """A task in the table, and what its section says."""

    anchor: str
    suite: str
    task_id: str
    state: str
    mark: str
    blocks: bool
    rank: int
    passed: int
    measured: int
    trials: str
    dots: tuple[Dot, ...]
    more_dots: int
    value: str
    sort_value: float
    history: Spark | None
    baseline: str
    baseline_sort: int
    changed: str
    """`worse` or `better` than at the baseline, or nothing."""
    cost: float | None
    seconds: float | None


class PlannedTask(NamedTuple):
    """A task of a plan."""

    plan: Plan
    task: EvalTask


class Articles(NamedTuple):
    """The trials of a task that the page shows, as HTML."""

    beside: tuple[str, ...]
    """A failed and a passed trial, which stand side by side."""
    others: tuple[str, ...]


class TaskSection(NamedTuple):
    """A task with the trials that the page shows."""

    row: TaskRow
    place: str
    summary: str
    description: Shown | None
    prompt: Shown | None
    reasons: tuple[ReasonShown, ...]
    why_not_blocking: str
    compared: str
    command: str
    articles: Articles
    elsewhere: int
    """Trials that other files show, or none."""


class Distribution(NamedTuple):
    """How a figure of the trials is spread, now and at the baseline."""

    title: str
    unit: str
    shape: Histogram


class RunPage(NamedTuple):
    """Everything that the page of a run shows, but for the trials."""

    verdict: Verdict
    mark: str
    headline: str
    facts: tuple[tuple[str, str], ...]
    sign_off: str
    commands: tuple[str, ...]
    reasons: tuple[ReasonShown, ...]
    reasons_open: int
    """So many blocking reasons stand open; the others are folded."""
    more_reasons: int
    suites: tuple[SuiteRow, ...]
    comparisons: tuple[tuple[str, ...], ...]
    comparisons_explained: str
    distributions: tuple[Distribution, ...]
    rows: tuple[TaskRow, ...]
    notes: tuple[str, ...]
    provenance: tuple[tuple[str, str], ...]


class Links:
    """Where each trial is shown: on the page itself, in a file beside it, or nowhere."""

    def __init__(self, here: Iterable[tuple[str, int]], elsewhere: Mapping[tuple[str, int], str]) -> None:
        self._here = frozenset(here)
        self._elsewhere = elsewhere

    def of(self, name: str, number: int) -> str:
        """The link to a trial of `suite/task_id`; empty where it is shown nowhere."""
        key = name, number
        if key in self._here:
            return f"#{anchor(name, number)}"
        return f"{self._elsewhere[key]}#{anchor(name, number)}" if key in self._elsewhere else ""


def by_task(trials: Iterable[Trial]) -> Mapping[str, Sequence[Trial]]:
    """The trials of each `suite/task_id`, in their order."""
    groups: dict[str, list[Trial]] = defaultdict(list)
    for trial in sorted(trials, key=lambda one: one.trial):
        groups[f"{trial.suite}/{trial.task_id}"].append(trial)
    return groups


def run_page(view: RunView, links: Links) -> RunPage:
    """What the page of a run shows of it."""
    verdict, trials = view.verdict, by_task(view.trials)
    reasons = findings.ordered_reasons(verdict)
    blocking = sum(reason.blocking for reason in reasons[:_MOST_REASONS])
    rows = [
        task_row(finding, rank, trials.get(finding.name, ()), view, links)
        for rank, finding in enumerate(worst_first(verdict))
    ]
    return RunPage(
        verdict=verdict,
        mark=DECISION_MARKS[verdict.decision],
        headline=line(verdict.headline.removeprefix(f"{verdict.gate} {verdict.decision}").removeprefix(": ")),
        facts=tuple((name, line(value)) for name, value in _facts(verdict) if value),
        sign_off=line(findings.signed(verdict.sign_off), _TEXT) if verdict.sign_off else "",
        commands=findings.sign_off_commands(verdict) if verdict.awaiting_sign_off else (),
        reasons=tuple(reason_shown(reason, trials, links) for reason in reasons[:_MOST_REASONS]),
        reasons_open=_REASONS_OPEN if blocking >= _REASONS_OPEN + _REASONS_FOLDED else blocking,
        more_reasons=max(0, len(reasons) - _MOST_REASONS),
        suites=tuple(_suite(suite, view) for suite in verdict.measurement.suites),
        comparisons=tuple(figures.comparison_cells(one, line) for one in verdict.comparisons),
        comparisons_explained=figures.paired_ratio_explained(verdict.comparisons) if verdict.comparisons else "",
        distributions=tuple(_distributions(view)),
        rows=tuple(rows),
        notes=tuple(line(note, _TEXT) for note in findings.notes(verdict)),
        provenance=tuple((name, line(value)) for name, value in _provenance(verdict) if value),
    )


def worst_first(verdict: Verdict) -> Sequence[TaskFinding]:
    """Every task: those to look at first, the worst first, then the others in the measurement's order."""
    found = findings.findings(verdict)
    names = {finding.name for finding in found}
    return [*found, *(finding for finding in findings.every_task(verdict) if finding.name not in names)]


def _facts(verdict: Verdict) -> Iterator[tuple[str, str]]:
    measurement, revision = verdict.measurement, verdict.revision
    tasks = measurement.tasks
    commit = f"{revision.commit[:12]}{' with changes' if revision.dirty else ''}" if revision.commit else ""
    yield "trials", f"{sum(task.passed for task in tasks)} of {sum(task.n for task in tasks)} passed"
    yield "tasks", f"{sum(task.state is TaskState.PASSED for task in tasks)} of {len(tasks)} passed"
    yield "agent", verdict.agent
    yield "models", findings.models(verdict)
    yield "commit", " on ".join(part for part in (commit, revision.branch) if part)
    yield "cost", "" if measurement.cost is None else figures.dollars(measurement.cost)
    p95 = measurement.latency_p95_seconds
    yield "latency P95", "" if p95 is None else figures.duration(p95)
    yield "took", figures.duration((verdict.judged_at - verdict.started_at).total_seconds())
    yield "started", f"{verdict.started_at:%Y-%m-%d %H:%M} UTC"


def _provenance(verdict: Verdict) -> Iterator[tuple[str, str]]:
    inputs, integrity = verdict.inputs, verdict.integrity
    yield "run", verdict.run_id
    yield "LLM judge", verdict.judge
    yield "isolation", ", ".join(verdict.measurement.isolation)
    yield "judged", verdict.judged_at.isoformat(timespec="seconds")
    yield "judged by the files of", integrity.judging if integrity and integrity.by_base else ""
    yield (
        "edits of what judges",
        ", ".join(f"{edit.kind} {edit.path}" for edit in findings.edits(integrity, len(integrity.edits)))
        if integrity
        else "",
    )
    for name in ("policy", "tasks", "graders", "trials", "agent", "prices", "baseline", "quarantine"):
        yield f"digest of {name}", getattr(inputs, name)
    yield "baseline runs", ", ".join(inputs.baseline_runs[:20])
    yield "passgate", inputs.passgate_version


def reason_shown(reason: Reason, trials: Mapping[str, Sequence[Trial]], links: Links) -> ReasonShown:
    """A reason with links to its task and its trials."""
    name = findings.reason_subject(reason) if reason.task_id else ""
    of_task = {trial.trial: trial for trial in trials.get(name, ())}
    dots = _dots((of_task[number] for number in reason.trials[:_MOST_DOTS] if number in of_task), links)
    return ReasonShown(
        blocks=reason.blocking,
        sign=("?" if reason.rule is Rule.MISSING_EVIDENCE else "✗") if reason.blocking else "i",
        weight=findings.weight(reason),
        rule=str(reason.rule).replace("_", " "),
        subject=line(findings.reason_subject(reason)),
        link=f"#{anchor(name)}" if name else "",
        message=shown(reason.message, _TEXT),
        trials=dots,
        place=line(f"{reason.file}:{reason.line or 1}") if reason.file else "",
    )


def _dots(trials: Iterable[Trial], links: Links) -> tuple[Dot, ...]:
    """A dot for each trial that is shown somewhere. The others are one dot where they follow each other."""
    dots = []
    for (status, link, is_confirming, _), group in groupby(trials, partial(_dot_key, links)):
        of_group = list(group)
        kind = "confirming " if is_confirming else ""
        label = f"{kind}{trial_numbers([trial.trial for trial in of_group])}: {status.replace('_', ' ')}"
        dots.append(Dot(status, MARKS[TrialStatus(status)] * len(of_group), link, label, is_confirming))
    return tuple(dots)


def _dot_key(links: Links, trial: Trial) -> tuple[str, str, bool, int]:
    link = links.of(f"{trial.suite}/{trial.task_id}", trial.trial)
    return trial.status.value, link, trial.trial >= trial.k, trial.trial if link else -1


def _suite(suite: SuiteMeasurement, view: RunView) -> SuiteRow:
    return SuiteRow(
        figures.suite_cells(suite), suite.value, suite.interval, spark(view.earlier.get(str(suite.suite), ()))
    )


def task_row(finding: TaskFinding, rank: int, trials: Sequence[Trial], view: RunView, links: Links) -> TaskRow:
    """The row of a task. Of very many trials only some have a dot, those that failed first."""
    task, before = finding.task, view.history.get(finding.name)
    dotted = trials
    if len(trials) > _MOST_DOTS:
        dotted = sorted(sorted(trials, key=lambda one: _DOT_ORDER.index(one.status))[:_MOST_DOTS], key=_number)
    value = task.value
    return TaskRow(
        anchor=anchor(finding.name),
        suite=task.suite.value,
        task_id=line(task.task_id),
        state=task.state.value,
        mark=_STATE_MARKS[task.state],
        blocks=finding.blocks,
        rank=rank,
        passed=task.passed,
        measured=task.n,
        trials=figures.trials(task.passed, task.n, task.errors, task.not_run),
        dots=_dots(dotted, links),
        more_dots=len(trials) - len(dotted),
        value=f"{figures.metric_name(task.metric, task.k)} {figures.percent(value)}",
        sort_value=-1.0 if value is None else value,
        history=spark(view.earlier.get(finding.name, ())),
        baseline=_baseline(before),
        baseline_sort=list(BaselineState).index(before.state) if before else -1,
        changed=_changed(task.state, before),
        cost=sum(task.costs) / len(task.costs) if task.costs else None,
        seconds=sum(task.wall_times) / len(task.wall_times) if task.wall_times else None,
    )


def _number(trial: Trial) -> int:
    return trial.trial


def _baseline(before: BaselineTask | None) -> str:
    if before is None:
        return figures.UNKNOWN
    return f"{before.state}{f', {before.passed}/{before.n}' if before.n else ''}"


def _changed(state: TaskState, before: BaselineTask | None) -> str:
    if before is None:
        return ""
    if state is TaskState.FAILED and before.state is BaselineState.GREEN:
        return "worse"
    return "better" if state is TaskState.PASSED and before.state is BaselineState.RED else ""


def task_section(
    row: TaskRow,
    finding: TaskFinding,
    plan: PlannedTask | None,
    trials: Sequence[Trial],
    links: Links,
    articles: Articles,
) -> TaskSection:
    """What the page says of a task whose trials it shows."""
    task, planned = finding.task, plan.task if plan else None
    return TaskSection(
        row=row,
        place=line(f"{task.file}:{task.line}"),
        summary=figures.task_summary(task),
        description=shown(planned.description, _TEXT) if planned and planned.description else None,
        prompt=shown(planned.prompt, _TEXT) if planned and planned.prompt else None,
        reasons=tuple(reason_shown(reason, {finding.name: trials}, links) for reason in finding.reasons),
        why_not_blocking=line(finding.why_not_blocking, _TEXT),
        compared=line(finding.compared, _TEXT),
        command=_command(plan) if plan else "",
        articles=articles,
        elsewhere=len(trials) - len(articles.beside) - len(articles.others),
    )


def _command(plan: PlannedTask) -> str:
    """Return the shell command that runs a trial of a task again, from the folder of the run."""
    request = plan.plan.request
    return shlex.join(try_command(plan.task.name, request.agent, try_options(request)))


def planned_tasks(view: RunView) -> Mapping[str, PlannedTask]:
    """The tasks of the plan by `suite/task_id`."""
    return {task.name: PlannedTask(view.plan, task) for task in view.plan.tasks} if view.plan else {}


def _distributions(view: RunView) -> Iterator[Distribution]:
    """Of the tasks that have figures on both sides, where there is a baseline; else of all."""
    tasks = view.verdict.measurement.tasks

    def before_of(name: str, kind: str) -> FiguresOfRuns:
        known = view.history.get(name)
        found: FiguresOfRuns = getattr(known, kind) if known else {}
        return found

    for title, unit, kind in (("Latency", "s", "wall_times"), ("Cost", "$", "costs")):
        before = {task.name: pooled(before_of(task.name, kind)) for task in tasks}
        both = [task for task in tasks if before[task.name]] or tasks
        now = [value for task in both for value in getattr(task, kind)]
        shape = histogram(now, [value for task in both for value in before[task.name]])
        if shape is not None:
            yield Distribution(title, unit, shape)
