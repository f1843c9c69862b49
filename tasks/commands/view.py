"""View: the pages of all runs of this folder, made when somebody asks for them, also of a run that is going on."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from pydantic import ConfigDict, ValidationError

from passgate.tasks.commands.report import StoredRun, followed_run
from passgate.tasks.commands.trend_page import trend_page
from passgate.tasks.errors import PassgateError
from passgate.tasks.history.masking import masker_of
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.history.storage import STATE_FOLDER
from passgate.tasks.model.base import Frozen
from passgate.tasks.model.run_view import RunView
from passgate.tasks.model.task import GateName
from passgate.tasks.reports.page.build import (
    PAGE,
    Going,
    Key,
    articles_on_page,
    page,
    trial_page,
)
from passgate.tasks.reports.page.runs import RunLine, error_page, runs_page

HTML = "text/html; charset=utf-8"
JSON = "application/json"
_MOST_RUNS = 200


class ServedPage(NamedTuple):
    """What is answered to a request."""

    content_type: str
    text: str


class _Fingerprint(NamedTuple):
    """How far a run is: it changes when there is something new to show."""

    judged: int
    journal: int


class _SuiteHead(Frozen):
    model_config = ConfigDict(extra="ignore")

    trials_passed: int
    trials_measured: int


class _MeasurementHead(Frozen):
    model_config = ConfigDict(extra="ignore")

    suites: tuple[_SuiteHead, ...]
    cost: float | None


class _VerdictHead(Frozen):
    """What the list of runs shows of a verdict."""

    model_config = ConfigDict(extra="ignore")

    decision: str
    agent: str
    measurement: _MeasurementHead


class Viewer:
    """Answers requests for pages by their paths. Every request reads what is on disk now."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or STATE_FOLDER / "runs"
        self._heads: dict[str, tuple[int, RunLine]] = {}
        self._views: dict[str, tuple[_Fingerprint, StoredRun]] = {}

    def answer(self, path: str) -> ServedPage | None:
        """The page at a path without its token, as in `runs/RUN/report.html` or `trend/GATE/AGENT`; `None` where there
        is none.

        Raises `PassgateError` for a run that cannot be read.
        """
        match path.split("/", 2):
            case [""]:
                return ServedPage(HTML, runs_page(self._lines()))
            case ["trend", gate, agent] if gate in list(GateName) and agent:
                return ServedPage(HTML, trend_page(GateName(gate), agent, home="../../"))
            case ["runs", run_id, rest] if run_id in self._names():
                return self._of_run(run_id, rest)
            case _:
                return None

    def _names(self) -> list[str]:
        """The runs of the folder, the newest first."""
        if not self._folder.is_dir():
            return []
        return sorted((entry.name for entry in self._folder.iterdir() if entry.is_dir()), reverse=True)

    def _lines(self) -> list[RunLine]:
        return [self._line(run_id) for run_id in self._names()[:_MOST_RUNS]]

    def _line(self, run_id: str) -> RunLine:
        file = self._folder / run_id / "verdict.json"
        try:
            changed = file.stat().st_mtime_ns
            if run_id not in self._heads or self._heads[run_id][0] != changed:
                self._heads[run_id] = changed, _line_of(run_id, file.read_bytes())
            return self._heads[run_id][1]
        except (OSError, ValidationError):
            return RunLine(run_id)

    def _of_run(self, run_id: str, rest: str) -> ServedPage | None:
        store = RunStore.of(run_id)
        if rest == "state":
            return ServedPage(JSON, json.dumps(self._progress(run_id)))
        stored = self._stored(run_id, store)
        if rest == PAGE:
            return ServedPage(HTML, self._page(stored))
        name, _, number = rest.removeprefix("trials/").rpartition("/")
        if not rest.startswith("trials/") or not number.isdigit():
            return None
        key = name, int(number)
        shown = trial_page(stored.view, key, back="../" * (rest.count("/")) + PAGE)
        return None if shown is None else ServedPage(HTML, _masked(stored.view, shown))

    def _page(self, stored: StoredRun) -> str:
        view = stored.view
        here = articles_on_page(view)
        keys: list[Key] = [(f"{one.suite}/{one.task_id}", one.trial) for one in view.trials]
        places: Mapping[Key, str] = {key: f"trials/{key[0]}/{key[1]}" for key in keys if key not in here}
        going = Going(len(view.trials), stored.planned) if stored.going_on else None
        return _masked(view, page(view, dict(places), here, home="../../", going=going))

    def _progress(self, run_id: str) -> _Fingerprint:
        folder = self._folder / run_id
        judged = folder / "verdict.json"
        return _Fingerprint(
            judged.stat().st_mtime_ns if judged.exists() else 0,
            sum(part.stat().st_size for part in folder.glob("journal*.jsonl")),
        )

    def _stored(self, run_id: str, store: RunStore) -> StoredRun:
        progress = self._progress(run_id)
        known = self._views.get(run_id)
        if known is None or known[0] != progress:
            known = progress, followed_run(store)
            self._views = {run_id: known}  # One is enough: readers look at one run at a time
        return known[1]


def _line_of(run_id: str, content: bytes) -> RunLine:
    head = _VerdictHead.model_validate_json(content)
    suites = head.measurement.suites
    return RunLine(
        run_id,
        head.decision,
        head.agent,
        sum(suite.trials_passed for suite in suites),
        sum(suite.trials_measured for suite in suites),
        head.measurement.cost,
    )


def _masked(view: RunView, html: str) -> str:
    return masker_of(view.plan).text(html) if view.plan else html


def why_not(error: PassgateError) -> str:
    """The page for a run that cannot be read."""
    return error_page(str(error))
