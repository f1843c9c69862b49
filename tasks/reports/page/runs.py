"""The list of all runs as a page."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from passgate.tasks.model.verdict import EarlierRun
from passgate.tasks.reports import figures
from passgate.tasks.reports.page.charts import spark
from passgate.tasks.reports.page.environment import templates
from passgate.tasks.reports.page.run import DECISION_MARKS

_RUN_ID = re.compile(r"(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)\d\dZ-(\w+)-")
_SPARK_RUNS = 20


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
