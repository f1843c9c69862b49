"""View: an index of the runs of this folder, the page of each run, and the trend of each gate and agent, as files."""

import hashlib
import json
from pathlib import Path
from typing import Final

from passgate.tasks.commands.report import write_latest_page
from passgate.tasks.commands.trend import trend_page
from passgate.tasks.errors import PassgateError
from passgate.tasks.history.storage import STATE_FOLDER, LocalStorage
from passgate.tasks.model.task import GateName
from passgate.tasks.reports.page import PAGE, RunLine, runs_page

INDEX: Final = STATE_FOLDER / "pages" / "index.html"
_RUNS: Final = STATE_FOLDER / "runs"
_MOST_RUNS: Final = 200


def write_pages(run: str | None = None) -> tuple[Path, list[str]]:
    """Write the index of the newest runs, the pages that runs lack or that are out of date, and all trend pages.

    Write the page of `run` in any case. Return the page to open, that of `run` or the index, and why pages are missing.
    Raise `PassgateError` if this page or the index cannot be written.
    """
    page, failures = INDEX, list[str]()
    if run is not None:
        written = write_latest_page(run)
        page = written.file
        failures += [f"the page shows no history: {written.without_history}"] if written.without_history else []
    folders = sorted((folder for folder in _RUNS.glob("*") if folder.is_dir()), reverse=True)[:_MOST_RUNS]
    for folder in folders:
        if not _has_latest_page(folder):
            try:
                write_latest_page(folder.name)
            except PassgateError as error:
                failures.append(f"the run {folder.name} has no up-to-date page: {error}")
    lines = [_run_line(folder) for folder in folders]
    trends, storage = dict[tuple[str, str], str](), LocalStorage(INDEX.parent)
    for gate, agent in dict.fromkeys((one.gate, one.agent) for one in lines if one.measured):
        # The name of a run's folder can contain anything in place of the gate.
        if gate not in list(GateName) or not agent:
            continue
        # An agent can be a command line: a digest is always a valid file name.
        name = f"trend-{gate}-{hashlib.sha256(agent.encode('utf-8', 'replace')).hexdigest()[:16]}.html"
        try:
            html = trend_page(GateName(gate), agent, home=INDEX.name)
            storage.write(name, html.encode("utf-8", "replace"))
            trends[gate, agent] = name
        except PassgateError as error:
            failures.append(f"{gate} of {agent} has no trend page: {error}")
    storage.write(INDEX.name, runs_page(lines, trends).encode("utf-8", "replace"))
    return page, failures


def _has_latest_page(folder: Path) -> bool:
    page = folder / PAGE
    sources = [file for pattern in ("verdict.json", "journal*.jsonl") for file in folder.glob(pattern)]
    # A run at a URL has no journal here, so nothing says whether its page is up to date before it has a verdict.
    if not sources or not page.is_file():
        return False
    return max(file.stat().st_mtime_ns for file in sources) <= page.stat().st_mtime_ns


def _run_line(folder: Path) -> RunLine:
    has_page = (folder / PAGE).is_file()
    try:
        verdict = json.loads((folder / "verdict.json").read_bytes())
        suites, cost = verdict["measurement"]["suites"], verdict["measurement"]["cost"]
        return RunLine(
            folder.name,
            str(verdict["decision"]),
            str(verdict["agent"]),
            sum(int(suite["trials_passed"]) for suite in suites),
            sum(int(suite["trials_measured"]) for suite in suites),
            None if cost is None else float(cost),
            has_page,
        )
    except (OSError, ValueError, LookupError, TypeError):
        return RunLine(folder.name, has_page=has_page)
