"""View: an index of the runs of this folder, the page of each run, and the trend of each gate and agent, as files."""

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from pydantic import ConfigDict, ValidationError

from passgate.tasks.commands.report import write_latest_page
from passgate.tasks.commands.trend import trend_page
from passgate.tasks.errors import PassgateError
from passgate.tasks.history.storage import STATE_FOLDER, LocalStorage
from passgate.tasks.model.base import Frozen
from passgate.tasks.model.task import GateName
from passgate.tasks.reports.page import PAGE, RunLine, runs_page

INDEX: Final = STATE_FOLDER / "pages" / "index.html"
_RUNS: Final = STATE_FOLDER / "runs"
_MOST_RUNS: Final = 200


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


class WrittenPages(NamedTuple):
    """The pages that are written."""

    page: Path
    """The page to open: that of the run that was asked for, or the index."""
    left_out: tuple[str, ...]
    """Which pages are missing, and why."""


def write_pages(run: str | None = None) -> WrittenPages:
    """Write the index of the newest runs, the pages that runs lack or that are out of date, and all trend pages.

    Write the page of `run` in any case. Raise `PassgateError` if this page or the index cannot be written.
    """
    page, failures = INDEX, list[str]()
    if run is not None:
        written = write_latest_page(run)
        page = written.file
        failures += [f"the page shows no history: {written.without_history}"] if written.without_history else []
    folders = sorted((folder for folder in _RUNS.glob("*") if folder.is_dir()), reverse=True)[:_MOST_RUNS]
    failures += _write_outdated_pages(folders)
    lines = [_run_line(folder) for folder in folders]
    trends = dict[tuple[str, str], str]()
    failures += _write_trends(dict.fromkeys((one.gate, one.agent) for one in lines if one.measured), trends)
    _storage().write(INDEX.name, runs_page(lines, trends).encode("utf-8", "replace"))
    return WrittenPages(page, tuple(failures))


def _write_outdated_pages(folders: Iterable[Path]) -> Iterator[str]:
    """Write the pages and yield why a page cannot be written."""
    for folder in folders:
        if not _has_latest_page(folder):
            try:
                write_latest_page(folder.name)
            except PassgateError as error:
                yield f"the run {folder.name} has no up-to-date page: {error}"


def _has_latest_page(folder: Path) -> bool:
    page = folder / PAGE
    sources = [file for pattern in ("verdict.json", "journal*.jsonl") for file in folder.glob(pattern)]
    # A run at a URL has no journal here, so nothing says whether its page is up to date before it has a verdict.
    if not sources or not page.is_file():
        return False
    return max(file.stat().st_mtime_ns for file in sources) <= page.stat().st_mtime_ns


def _write_trends(pairs: Iterable[tuple[str, str]], links: dict[tuple[str, str], str]) -> Iterator[str]:
    """Write the trend of each gate and agent and add its link. Yield why a page cannot be written."""
    for gate, agent in pairs:
        # The name of a run's folder can contain anything in place of the gate.
        if gate not in list(GateName) or not agent:
            continue
        # An agent can be a command line: a digest is always a valid file name.
        name = f"trend-{gate}-{hashlib.sha256(agent.encode('utf-8', 'replace')).hexdigest()[:16]}.html"
        try:
            html = trend_page(GateName(gate), agent, home=INDEX.name)
            _storage().write(name, html.encode("utf-8", "replace"))
            links[gate, agent] = name
        except PassgateError as error:
            yield f"{gate} of {agent} has no trend page: {error}"


def _storage() -> LocalStorage:
    return LocalStorage(INDEX.parent)


def _run_line(folder: Path) -> RunLine:
    has_page = (folder / PAGE).is_file()
    try:
        head = _VerdictHead.model_validate_json((folder / "verdict.json").read_bytes())
    except (OSError, ValidationError):
        return RunLine(folder.name, has_page=has_page)
    suites = head.measurement.suites
    return RunLine(
        folder.name,
        head.decision,
        head.agent,
        sum(suite.trials_passed for suite in suites),
        sum(suite.trials_measured for suite in suites),
        head.measurement.cost,
        has_page,
    )
