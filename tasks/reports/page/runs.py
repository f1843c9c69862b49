"""The list of all runs as a page."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from passgate.tasks.model.run_view import EarlierRun
from passgate.tasks.model.verdict import Decision
from passgate.tasks.reports import figures
from passgate.tasks.reports.page.charts import Spark, spark
from passgate.tasks.reports.page.environment import templates
from passgate.tasks.reports.page.run import DECISION_MARKS
from passgate.tasks.reports.page.texts import line

_RUN_ID = re.compile(r"(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)\d\dZ-(\w+)-")
_SPARK_RUNS = 20


def _shown_agent(agent: str) -> str:
    return line(agent) or figures.UNKNOWN


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

    @property
    def shown_as(self) -> str:
        return line(self.run_id)

    @property
    def by(self) -> str:
        return _shown_agent(self.agent)

    @property
    def mark(self) -> str:
        return DECISION_MARKS[Decision(self.decision)] if self.decision in list(Decision) else "…"

    @property
    def trials(self) -> str:
        return f"{self.passed}/{self.measured}" if self.decision else figures.UNKNOWN

    @property
    def spent(self) -> str:
        return figures.dollars(self.cost)


class _RunsOfAgent(NamedTuple):
    """The newest runs of one gate with one agent."""

    gate: str
    agent: str
    line: Spark | None

    @property
    def by(self) -> str:
        return _shown_agent(self.agent)


def runs_page(lines: Sequence[RunLine], trends: Mapping[tuple[str, str], str]) -> str:
    """Render the page with all runs, the newest first. `trends` has the link to the trend of each gate and agent."""
    return templates().get_template("runs.html.j2").render(lines=lines, series=_series(lines), trends=trends)


def _series(lines: Sequence[RunLine]) -> list[_RunsOfAgent]:
    groups: dict[tuple[str, str], list[EarlierRun]] = defaultdict(list)
    for one in lines:
        if one.measured:
            groups[one.gate, one.agent].append(EarlierRun(one.run_id, one.passed, one.measured))
    return [
        _RunsOfAgent(gate, agent, spark(runs[:_SPARK_RUNS][::-1])) for (gate, agent), runs in sorted(groups.items())
    ]
