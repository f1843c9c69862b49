"""The pages of a run and the list of all runs: a view in, HTML out, each file within its size."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Final, NamedTuple

from passgate.tasks.model.trial import Trial, TrialStatus
from passgate.tasks.model.verdict import EarlierRun, RunView
from passgate.tasks.reports import figures, findings
from passgate.tasks.reports.page.rendering import anchor, spark, templates
from passgate.tasks.reports.page.run import DECISION_MARKS, Key, by_task, contrast, run_page, trial_key
from passgate.tasks.reports.trial import trial_document

PAGE: Final = "report.html"
"""The page of a run, in the run's folder."""
_FILE: Final = "report/trials-{}.html"
_TRANSCRIPTS_LIMIT: Final = 1_000_000  # Characters of transcripts on the page itself, so that it is below 2 MB
_FILE_LIMIT: Final = 1_500_000  # Characters after which a further file begins
_ON_PAGE: Final = (8_000, 60)
"""Characters of each text and messages of a trial on the page itself."""
_IN_FILE: Final = (40_000, 1_000)
_RUN_ID: Final = re.compile(r"(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)\d\dZ-(\w+)-")
_SPARK_RUNS: Final = 20


class Going(NamedTuple):
    """A run without a verdict yet: how many trials are done and how many are planned."""

    done: int
    planned: int


def run_pages(view: RunView, most: int | None = None, going: Going | None = None) -> Iterator[tuple[str, str]]:
    """Yield the names and the HTML of the files beside the page of a run, then of the page, which needs nothing else.

    The files beside it have at most `most` trials that the page has no room for, all of them without a number. `going`
    says how far a run is that has no verdict yet. Raises `StorageError`.
    """
    here = _articles_on_page(view)
    left = [
        trial
        for trials in by_task(view.trials).values()
        for trial in trials
        if trial_key(trial) not in here and trial.status is not TrialStatus.NOT_RUN
    ]
    left.sort(key=lambda trial: trial.status is TrialStatus.PASSED)
    beside = dict[Key, str]()
    yield from _files_beside(view, left[:most], beside)
    run = run_page(view, here, beside)
    yield (
        PAGE,
        templates()
        .get_template("run.html.j2")
        .render(
            run=run,
            verdict=view.verdict,
            detailed={one.row.anchor for one in run.sections},
            not_written=len(left) - len(beside),
            going=going,
        ),
    )


def _article(view: RunView, trial: Trial, bounds: tuple[int, int]) -> str:
    """Render a trial. Raise `StorageError`."""
    name, (characters, messages) = trial_key(trial)[0], bounds
    transcript = view.transcript(trial.transcript_digest) if trial.transcript_digest else None
    one = trial_document(trial, transcript, view.planned.get(name), messages=messages)
    template = templates().get_template("trial.html.j2")
    return template.render(one=one, id=anchor(name, trial.trial), limit=characters).strip()


def _articles_on_page(view: RunView) -> dict[Key, str]:
    """Render the trials that the page shows: of every task to look at those that did not pass and one that did, as far
    as there is room. The first of each task come first.
    """
    trials, wanted = by_task(view.trials), []
    for finding in findings.findings(view.verdict):
        measured = [trial for trial in trials.get(finding.name, ()) if trial.status is not TrialStatus.NOT_RUN]
        pair = contrast(measured)
        wanted.append([*pair, *(one for one in measured if one.status is not TrialStatus.PASSED and one not in pair)])
    room, articles = _TRANSCRIPTS_LIMIT, dict[Key, str]()
    for trial in (one for turn in zip_longest(*wanted) for one in turn if one is not None):
        html = _article(view, trial, _ON_PAGE)
        room -= len(html.encode())
        if room < 0:
            break
        articles[trial_key(trial)] = html
    return articles


def _files_beside(view: RunView, trials: Sequence[Trial], places: dict[Key, str]) -> Iterator[tuple[str, str]]:
    """Render trials into files, several tasks a file. Each file links to the one before it and to the next. `places`
    gets the file of each trial.
    """
    template, number, size = templates().get_template("beside.html.j2"), 1, 0
    tasks: dict[str, list[str]] = defaultdict(list)
    for position, trial in enumerate(trials, start=1):
        html = _article(view, trial, _IN_FILE)
        tasks[anchor(trial_key(trial)[0])].append(html)
        places[trial_key(trial)] = name = _FILE.format(number)
        size += len(html)
        is_last = position == len(trials)
        if size > _FILE_LIMIT or is_last:
            facts = {"run_id": view.verdict.run_id, "back": f"../{PAGE}", "number": number, "is_last": is_last}
            yield name, template.render(tasks=list(tasks.items()), **facts)
            number, size = number + 1, 0
            tasks.clear()


class RunLine(NamedTuple):
    """A run in the list; without a decision it has not ended with a verdict."""

    run_id: str
    decision: str = ""
    agent: str = ""
    passed: int = 0
    measured: int = 0
    cost: float | None = None
    has_page: bool = True

    @property
    def started(self) -> str:
        found = _RUN_ID.match(self.run_id)
        return "{}-{}-{} {}:{} UTC".format(*found.groups()) if found else figures.UNKNOWN

    @property
    def gate(self) -> str:
        found = _RUN_ID.match(self.run_id)
        return found[6] if found else figures.UNKNOWN


def runs_page(lines: Sequence[RunLine], trends: Mapping[tuple[str, str], str]) -> str:
    """Render the page with all runs, the newest first. `trends` has the link to the trend of each gate and agent."""
    groups: dict[tuple[str, str], list[EarlierRun]] = defaultdict(list)
    for one in lines:
        if one.measured:
            groups[one.gate, one.agent].append(EarlierRun(one.run_id, one.passed, one.measured))
    series = [(*pair, spark(runs[:_SPARK_RUNS][::-1])) for pair, runs in sorted(groups.items())]
    template = templates().get_template("runs.html.j2")
    return template.render(lines=lines, series=series, trends=trends, marks=DECISION_MARKS)
