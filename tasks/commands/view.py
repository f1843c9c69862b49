"""View: an index of the runs of this folder, the page of each run, and the trend of each gate and agent, as files."""

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from passgate.tasks.commands.report import write_latest_page
from passgate.tasks.commands.trend import trend_page
from passgate.tasks.errors import PassgateError
from passgate.tasks.history.storage import STATE_FOLDER, LocalStorage
from passgate.tasks.model.task import GateName
from passgate.tasks.model.verdict import EarlierRun
from passgate.tasks.reports import figures
from passgate.tasks.reports.page import DECISION_MARKS, PAGE
from passgate.tasks.reports.page.rendering import spark, templates

INDEX: Final = STATE_FOLDER / "pages" / "index.html"
_RUNS: Final = STATE_FOLDER / "runs"
_MOST_RUNS: Final = 200
_SPARK_RUNS: Final = 20
_RUN_ID: Final = re.compile(r"(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)\d\dZ-(\w+)-")


class _RunLine(NamedTuple):
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


def write_pages(run: str | None = None) -> tuple[Path, list[str]]:
    """Write the index of the newest runs, that of `run` and other outdated pages, and all trend pages.

    Return the page to open, and why pages are missing. Raise `PassgateError` without that page or the index.
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
    storage.write(INDEX.name, _index_page(lines, trends).encode("utf-8", "replace"))
    return page, failures


def _has_latest_page(folder: Path) -> bool:
    page = folder / PAGE
    sources = [file for pattern in ("verdict.json", "journal*.jsonl") for file in folder.glob(pattern)]
    # A run at a URL has no journal here, so nothing says whether its page is up to date before it has a verdict.
    if not sources or not page.is_file():
        return False
    return max(file.stat().st_mtime_ns for file in sources) <= page.stat().st_mtime_ns


def _run_line(folder: Path) -> _RunLine:
    has_page = (folder / PAGE).is_file()
    try:
        verdict = json.loads((folder / "verdict.json").read_bytes())
        suites, cost = verdict["measurement"]["suites"], verdict["measurement"]["cost"]
        return _RunLine(
            folder.name,
            str(verdict["decision"]),
            str(verdict["agent"]),
            sum(int(suite["trials_passed"]) for suite in suites),
            sum(int(suite["trials_measured"]) for suite in suites),
            None if cost is None else float(cost),
            has_page,
        )
    except (OSError, ValueError, LookupError, TypeError):
        return _RunLine(folder.name, has_page=has_page)


def _index_page(lines: Sequence[_RunLine], trends: Mapping[tuple[str, str], str]) -> str:
    """Render the page with all runs, the newest first. `trends` has the link to the trend of each gate and agent."""
    groups: dict[tuple[str, str], list[EarlierRun]] = defaultdict(list)
    for one in lines:
        if one.measured:
            groups[one.gate, one.agent].append(EarlierRun(one.run_id, one.passed, one.measured))
    series = [(*pair, spark(runs[:_SPARK_RUNS][::-1])) for pair, runs in sorted(groups.items())]
    template = templates().get_template("runs.html.j2")
    return template.render(lines=lines, series=series, trends=trends, marks=DECISION_MARKS)
