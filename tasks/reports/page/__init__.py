"""The pages of a run: a view in, HTML out, each file within its size.

The page of a run is the document on its verdict, with links to its tasks and trials, and with charts.
"""

import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, zip_longest
from typing import Any, Final, NamedTuple

from passgate.tasks.model.baseline import BaselineState, BaselineTask, FiguresOfRuns, all_figures
from passgate.tasks.model.measurement import TaskState
from passgate.tasks.model.policy import Rule
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.trial import Trial, TrialStatus, trial_numbers
from passgate.tasks.model.verdict import Decision, Reason, RunView
from passgate.tasks.reports import findings
from passgate.tasks.reports.document import verdict_document
from passgate.tasks.reports.findings import TaskFinding
from passgate.tasks.reports.page.rendering import Histogram, Spark, anchor, histogram, spark, templates
from passgate.tasks.reports.trial import MARKS, trial_document, try_command, try_options

Key = tuple[str, int]  # A trial: `suite/task_id` and its number

PAGE: Final = "report.html"  # The page of a run, in the run's folder
_FILE: Final = "report/trials-{}.html"
_TRANSCRIPTS_LIMIT: Final = 1_000_000  # Characters of transcripts on the page itself, so that it is below 2 MB
_FILE_LIMIT: Final = 1_500_000  # Characters after which a further file begins
_ON_PAGE: Final = (8_000, 60)  # Characters of each text and messages of a trial on the page itself
_IN_FILE: Final = (40_000, 1_000)
DECISION_MARKS: Final = {Decision.PASS: "✓", Decision.FAIL: "✗", Decision.INCONCLUSIVE: "?"}
_MOST_DOTS: Final = 30
_MOST_REASONS: Final = 100
_REASONS_OPEN: Final = 8  # Blocking reasons that stand open, so that the suites and the tasks are not far below them
_REASONS_FOLDED: Final = 3  # Fewer are not worth a click
_MOST_SECTIONS: Final = 200  # Beyond them only tasks whose trials the page shows have a section
_DOT_ORDER: Final = (TrialStatus.FAILED, TrialStatus.ERROR, TrialStatus.PASSED, TrialStatus.NOT_RUN)


class Going(NamedTuple):
    """A run without a verdict yet: how many trials are done and how many are planned."""

    done: int
    planned: int


def run_pages(view: RunView, most: int | None = None, going: Going | None = None) -> Iterator[tuple[str, str]]:
    """Yield the names and the HTML of the files beside the page of a run, then of the page. Raises `StorageError`.

    They have at most `most` trials that the page has no room for. `going` tells how far a run without a verdict is.
    """
    here = _articles_on_page(view)
    left = [
        trial
        for trials in _by_task(view.trials).values()
        for trial in trials
        if _key(trial) not in here and trial.status is not TrialStatus.NOT_RUN
    ]
    left.sort(key=lambda trial: trial.status is TrialStatus.PASSED)
    beside = dict[Key, str]()
    yield from _files_beside(view, left[:most], beside)
    run = _run_page(view, here, beside)
    yield (
        PAGE,
        templates()
        .get_template("run.html.j2")
        .render(
            run=run,
            verdict=view.verdict,
            detailed={one.row.anchor for one in run["sections"]},
            not_written=len(left) - len(beside),
            going=going,
        ),
    )


def _article(view: RunView, trial: Trial, bounds: tuple[int, int]) -> str:
    """Render a trial. Raise `StorageError`."""
    name, (characters, messages) = _key(trial)[0], bounds
    transcript = view.transcript(trial.transcript_digest) if trial.transcript_digest else None
    one = trial_document(trial, transcript, view.planned.get(name), messages=messages)
    template = templates().get_template("trial.html.j2")
    return template.render(one=one, id=anchor(name, trial.trial), limit=characters).strip()


def _articles_on_page(view: RunView) -> dict[Key, str]:
    """Render the trials on the page: those that did not pass, and one that did, of each task to look at."""
    trials, wanted = _by_task(view.trials), []
    for finding in findings.findings(view.verdict):
        measured = [trial for trial in trials.get(finding.name, ()) if trial.status is not TrialStatus.NOT_RUN]
        pair = _contrast(measured)
        wanted.append([*pair, *(one for one in measured if one.status is not TrialStatus.PASSED and one not in pair)])
    room, articles = _TRANSCRIPTS_LIMIT, dict[Key, str]()
    for trial in (one for turn in zip_longest(*wanted) for one in turn if one is not None):
        html = _article(view, trial, _ON_PAGE)
        room -= len(html.encode())
        if room < 0:
            break
        articles[_key(trial)] = html
    return articles


def _files_beside(view: RunView, trials: Sequence[Trial], places: dict[Key, str]) -> Iterator[tuple[str, str]]:
    """Render trials into files, which link to each other, several tasks a file. `places` gets the file of each."""
    template, number, size = templates().get_template("beside.html.j2"), 1, 0
    tasks: dict[str, list[str]] = defaultdict(list)
    for position, trial in enumerate(trials, start=1):
        html = _article(view, trial, _IN_FILE)
        tasks[anchor(_key(trial)[0])].append(html)
        places[_key(trial)] = name = _FILE.format(number)
        size += len(html)
        is_last = position == len(trials)
        if size > _FILE_LIMIT or is_last:
            facts = {"run_id": view.verdict.run_id, "back": f"../{PAGE}", "number": number, "is_last": is_last}
            yield name, template.render(tasks=list(tasks.items()), **facts)
            number, size = number + 1, 0
            tasks.clear()


class Dot(NamedTuple):
    """A trial of a task in the table, or several in a row that look the same and are shown nowhere."""

    status: TrialStatus
    marks: str
    link: str  # Empty where no file shows the trial
    label: str
    is_confirming: bool


class LinkedReason(NamedTuple):
    """A reason with the dots of its trials."""

    reason: Reason
    sign: str
    link: str
    dots: tuple[Dot, ...]


class TaskRow(NamedTuple):
    """A task in the table."""

    finding: TaskFinding
    anchor: str
    rank: int
    dots: tuple[Dot, ...]
    more_dots: int
    more_link: str  # The link to the first trial without a dot; the others follow it
    history: Spark | None
    before: BaselineTask | None

    @property
    def before_rank(self) -> int:
        return list(BaselineState).index(self.before.state) if self.before else -1

    @property
    def changed(self) -> str:
        """Return `worse` or `better` than at the baseline, or nothing."""
        state, before = self.finding.task.state, self.before.state if self.before else None
        if state is TaskState.FAILED and before is BaselineState.GREEN:
            return "worse"
        return "better" if state is TaskState.PASSED and before is BaselineState.RED else ""


class TaskSection(NamedTuple):
    """A task with the trials that the page shows."""

    row: TaskRow
    planned: EvalTask | None
    reasons: tuple[LinkedReason, ...]
    command: str
    pair: tuple[str, ...]  # The first failed and the first passed trial as HTML; they stand side by side
    others: tuple[str, ...]


def _key(trial: Trial) -> Key:
    """Return the key of a trial."""
    return f"{trial.suite}/{trial.task_id}", trial.trial


def _run_page(view: RunView, here: Mapping[Key, str], beside: Mapping[Key, str]) -> dict[str, Any]:
    """Return what the page of a run shows. `here` has the trials on the page as HTML, `beside` the files of others."""
    verdict, links = view.verdict, _Links(view, here, beside)
    reasons = findings.ordered_reasons(verdict)
    blocking = sum(reason.blocking for reason in reasons[:_MOST_REASONS])
    found = findings.findings(verdict)
    names = {finding.name for finding in found}
    # Those to look at, the worst first, then the others in the measurement's order.
    ordered = [*found, *(finding for finding in findings.every_task(verdict) if finding.name not in names)]
    rows = tuple(links.row(finding, rank) for rank, finding in enumerate(ordered))
    return {
        "document": verdict_document(verdict),
        "mark": DECISION_MARKS[verdict.decision],
        "headline": verdict.headline.removeprefix(f"{verdict.gate} {verdict.decision}").removeprefix(": "),
        "reasons": tuple(map(links.reason, reasons[:_MOST_REASONS])),
        # So many blocking reasons stand open; the others are folded.
        "reasons_open": _REASONS_OPEN if blocking >= _REASONS_OPEN + _REASONS_FOLDED else blocking,
        "more_reasons": max(0, len(reasons) - _MOST_REASONS),
        "suites": tuple((one, spark(view.earlier.get(str(one.suite), ()))) for one in verdict.measurement.suites),
        # The titles of figures of the trials, their units, and how they are spread now and at the baseline
        "distributions": tuple(_distributions(view)),
        "rows": rows,
        "sections": tuple(_sections(view, rows, here, links)),
    }


def _by_task(trials: Iterable[Trial]) -> Mapping[str, Sequence[Trial]]:
    """Return the trials of each `suite/task_id`, in their order."""
    groups: dict[str, list[Trial]] = defaultdict(list)
    for trial in sorted(trials, key=lambda trial: trial.trial):
        groups[_key(trial)[0]].append(trial)
    return groups


def _contrast(trials: Sequence[Trial]) -> list[Trial]:
    """Return the first failed trial and the first passed one."""
    failed = next((trial for trial in trials if trial.status is not TrialStatus.PASSED), None)
    passed = next((trial for trial in trials if trial.status is TrialStatus.PASSED), None)
    return [trial for trial in (failed, passed) if trial is not None]


class _Links:
    """The links to the trials of a run: on the page itself, in a file beside it, or none."""

    def __init__(self, view: RunView, here: Mapping[Key, str], beside: Mapping[Key, str]) -> None:
        self._view, self._here, self._beside = view, here, beside
        self._trials = _by_task(view.trials)

    def reason(self, reason: Reason) -> LinkedReason:
        """Return a reason with links to its task and its trials."""
        name = findings.reason_subject(reason) if reason.task_id else ""
        trials = {trial.trial: trial for trial in self._trials.get(name, ())}
        return LinkedReason(
            reason,
            sign=("?" if reason.rule is Rule.MISSING_EVIDENCE else "✗") if reason.blocking else "i",
            link=f"#{anchor(name)}" if name else "",
            dots=self._dots(trials[number] for number in reason.trials[:_MOST_DOTS] if number in trials),
        )

    def row(self, finding: TaskFinding, rank: int) -> TaskRow:
        """Return the row of a task. Of very many trials only some have a dot, those that failed first."""
        trials = dotted = self._trials.get(finding.name, ())
        if len(trials) > _MOST_DOTS:
            worst = sorted(trials, key=lambda trial: _DOT_ORDER.index(trial.status))
            dotted = sorted(worst[:_MOST_DOTS], key=lambda trial: trial.trial)
        numbers = {trial.trial for trial in dotted}
        others = (self._link(trial) for trial in trials if trial.trial not in numbers)
        return TaskRow(
            finding,
            anchor(finding.name),
            rank,
            self._dots(dotted),
            len(trials) - len(dotted),
            next(filter(None, others), ""),
            spark(self._view.earlier.get(finding.name, ())),
            self._view.history.get(finding.name),
        )

    def _link(self, trial: Trial) -> str:
        """Return the link to a trial; empty where it is shown nowhere."""
        key = _key(trial)
        is_shown = key in self._here or key in self._beside
        return f"{self._beside.get(key, '')}#{anchor(*key)}" if is_shown else ""

    def _dots(self, trials: Iterable[Trial]) -> tuple[Dot, ...]:
        """Return a dot for each trial that is shown somewhere. The others are one dot where they follow each other."""

        def look(trial: Trial) -> tuple[TrialStatus, str, bool, int]:
            link = self._link(trial)
            return trial.status, link, trial.trial >= trial.k, trial.trial if link else -1

        dots = []
        for (status, link, is_confirming, _), group in groupby(trials, look):
            numbers = [trial.trial for trial in group]
            kind = "confirming " if is_confirming else ""
            label = f"{kind}{trial_numbers(numbers)}: {status.replace('_', ' ')}"
            dots.append(Dot(status, MARKS[status] * len(numbers), link, label, is_confirming))
        return tuple(dots)


def _sections(view: RunView, rows: Sequence[TaskRow], here: Mapping[Key, str], links: _Links) -> Iterator[TaskSection]:
    """Yield the sections of the tasks to look at, and of those whose trials the page shows."""
    trials, plan, count = _by_task(view.trials), view.plan, 0
    for row in rows:
        name = row.finding.name
        shown = [trial for trial in trials.get(name, ()) if (name, trial.trial) in here]
        if not shown and (count >= _MOST_SECTIONS or not row.finding.reasons):
            continue
        count += 1
        pair, command = _contrast(shown), ""
        if plan is not None and name in view.planned:
            command = shlex.join(try_command(name, plan.request.agent, try_options(plan.request)))
        yield TaskSection(
            row,
            view.planned.get(name),
            tuple(map(links.reason, row.finding.reasons)),
            command,
            tuple(here[name, trial.trial] for trial in pair),
            tuple(here[name, trial.trial] for trial in shown if trial not in pair),
        )


def _distributions(view: RunView) -> Iterator[tuple[str, str, Histogram]]:
    """Yield the figures of the tasks that have them on both sides, where there is a baseline; else of all tasks."""
    tasks = view.verdict.measurement.tasks
    for title, unit, kind in (("Latency", "s", "wall_times"), ("Cost", "$", "costs")):
        runs: dict[str, FiguresOfRuns] = {name: getattr(before, kind) for name, before in view.history.items()}
        before = {task.name: all_figures(runs.get(task.name, {})) for task in tasks}
        both = [task for task in tasks if before[task.name]] or tasks
        now = [value for task in both for value in getattr(task, kind)]
        shape = histogram(now, [value for task in both for value in before[task.name]])
        if shape is not None:
            yield title, unit, shape
