"""The pages of a run: a view in, HTML out, each file within its size."""

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import zip_longest
from typing import Final, NamedTuple

from passgate.tasks.model.trial import Trial, TrialStatus
from passgate.tasks.model.verdict import RunView
from passgate.tasks.reports import findings
from passgate.tasks.reports.page.environment import templates
from passgate.tasks.reports.page.run import Key, by_task, failed_and_passed, run_page
from passgate.tasks.reports.page.texts import anchor
from passgate.tasks.reports.trial import trial_document

PAGE: Final = "report.html"
"""The page of a run, in the run's folder."""
BESIDE: Final = "report"
"""The folder of the files beside it."""
_TRANSCRIPTS_LIMIT = 1_000_000  # Characters of transcripts on the page itself, so that it is below 2 MB
_FILE_LIMIT = 1_500_000  # Characters after which a further file begins
_UNMEASURED = frozenset({TrialStatus.NOT_RUN})


class _Bounds(NamedTuple):
    """How much of a trial is shown."""

    text: int
    """Characters of each text."""
    messages: int


_ON_PAGE = _Bounds(text=8_000, messages=60)
_IN_FILE = _Bounds(text=40_000, messages=1_000)


class FileBeside(NamedTuple):
    """One of the files beside the page."""

    name: str
    html: str


class Going(NamedTuple):
    """A run without a verdict yet: how many trials are done and how many are planned."""

    done: int
    planned: int


class _Trials:
    """The trials of a run as HTML."""

    def __init__(self, view: RunView) -> None:
        self._template = templates().get_template("trial.html.j2")
        self._view = view
        self._planned = {task.name: task for task in view.plan.tasks} if view.plan else {}

    def html(self, trial: Trial, bounds: _Bounds) -> str:
        name = f"{trial.suite}/{trial.task_id}"
        transcript = self._view.transcript(trial.transcript_digest) if trial.transcript_digest else None
        one = trial_document(trial, transcript, self._planned.get(name), messages=bounds.messages)
        return self._template.render(one=one, id=anchor(name, trial.trial), limit=bounds.text).strip()


def page(view: RunView, beside: Mapping[Key, str], here: Mapping[Key, str], going: Going | None = None) -> str:
    """Render the page of a run: one HTML file that needs nothing from elsewhere.

    `beside` says which file shows a trial that the page does not, `here` has the trials that it shows. `going` says how
    far a run is that has no verdict yet.
    """
    run = run_page(view, here, beside)
    detailed, missing = {one.row.anchor for one in run.sections}, _left(view, {**here, **beside})
    template = templates().get_template("run.html.j2")
    return template.render(run=run, verdict=view.verdict, detailed=detailed, not_written=len(missing), going=going)


def articles_on_page(view: RunView) -> dict[Key, str]:
    """Render the trials that the page shows: of every task to look at those that did not pass and one that did, as far
    as there is room. The first of each task come first. Raise `StorageError`.
    """
    trials, make = by_task(view.trials), _Trials(view)
    wanted = []
    for finding in findings.findings(view.verdict):
        measured = [trial for trial in trials.get(finding.name, ()) if trial.status not in _UNMEASURED]
        pair = failed_and_passed(measured)
        wanted.append([*pair, *(one for one in measured if one.status is not TrialStatus.PASSED and one not in pair)])
    room, articles = _TRANSCRIPTS_LIMIT, dict[Key, str]()
    for trial in (one for turn in zip_longest(*wanted) for one in turn if one is not None):
        html = make.html(trial, _ON_PAGE)
        room -= len(html.encode())
        if room < 0:
            break
        articles[f"{trial.suite}/{trial.task_id}", trial.trial] = html
    return articles


def files_beside(
    view: RunView, here: Mapping[Key, str], places: dict[Key, str], most: int | None = None
) -> Iterator[FileBeside]:
    """Render the files with the trials that are not `here`, several tasks a file; at most `most` trials in all where
    given. Each file links to the one before it and to the next.

    `places` gets the file of each trial. Raise `StorageError`.
    """
    make = _Trials(view)
    render = partial(templates().get_template("beside.html.j2").render, run_id=view.verdict.run_id, back=f"../{PAGE}")
    tasks: dict[str, list[str]] = {}
    number, size = 1, 0
    for trial in _left(view, here)[:most]:
        if size > _FILE_LIMIT:
            yield FileBeside(_file(number), render(tasks=list(tasks.items()), number=number, is_last=False))
            tasks, number, size = {}, number + 1, 0
        name = f"{trial.suite}/{trial.task_id}"
        html = make.html(trial, _IN_FILE)
        tasks.setdefault(anchor(name), []).append(html)
        places[name, trial.trial] = _file(number)
        size += len(html)
    if tasks:
        yield FileBeside(_file(number), render(tasks=list(tasks.items()), number=number, is_last=True))


def _file(number: int) -> str:
    return f"{BESIDE}/trials-{number}.html"


def _left(view: RunView, here: Mapping[Key, str]) -> list[Trial]:
    """Return the trials that are not here and were measured or tried, those that did not pass first, then by task."""
    left = [
        trial
        for name, of_task in by_task(view.trials).items()
        for trial in of_task
        if (name, trial.trial) not in here and trial.status not in _UNMEASURED
    ]
    return sorted(left, key=lambda trial: trial.status is TrialStatus.PASSED)
