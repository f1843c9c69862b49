"""What the pages say of the baseline, of who judges, of grader checks, of releases and of forecasts."""

import re
from pathlib import Path
from typing import get_args

import pytest
import yaml

from passgate.tasks.agents import parse_agent
from passgate.tasks.commands.forecast import forecast, history_basis
from passgate.tasks.formats import digests
from passgate.tasks.formats.loading import load_tasks
from passgate.tasks.integrity.checkout import BRANCH_VARIABLES, TARGET_COMMIT_VARIABLES, TARGET_VARIABLES
from passgate.tasks.integrity.judging_places import What
from passgate.tasks.model.baseline import BaselineState
from passgate.tasks.model.run import Revision, RunRequest
from passgate.tasks.model.task import GateName
from passgate.tasks.model.verdict import Finding
from passgate.tasks.planning.plan import PlanFiles, make_plan
from passgate.tasks.planning.requirements import problems_of
from passgate.tasks.reports.forecast import forecast_text
from tests.builders import SHIPPED, task_document
from tests.docs.pages import PAGES, blocks, code_in, listing, meanings, section, terms
from tests.project import REPOSITORY


def test_the_states_and_findings_of_failed_tasks() -> None:
    states = list(map(str, BaselineState))
    assert terms(listing(section("docs/baseline.md", "Evidence"))) == states
    assert set(map(str, Finding)) <= code_in(section("docs/baseline.md", "Evidence"))
    assert set(map(str, Finding)) <= code_in(meanings("docs/gates.md", "verdict.json")["confirmations"])


def test_where_the_branches_are_read_from() -> None:
    assert set(BRANCH_VARIABLES) <= code_in(section("docs/baseline.md", "What is pooled"))
    assert {*TARGET_VARIABLES, *TARGET_COMMIT_VARIABLES} <= code_in(section("docs/integrity.md", "In CI"))


def test_what_an_edit_is() -> None:
    edits = listing(section("docs/integrity.md", "What is an edit"))
    assert re.findall(r"^- ([\w ]+):", edits, re.MULTILINE) == list(get_args(What))
    assert code_in(section("docs/integrity.md", "What is an edit")) >= digests._COPYING


def test_a_grader_that_cannot_fail_is_refused_as_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = Path("suites", "golden", "order-1_1.yaml")
    file.parent.mkdir(parents=True)
    document = task_document(task_id="order-1_1", graders=[{"type": "output_check", "matches": ".*"}])
    file.write_text(yaml.safe_dump(document, sort_keys=False))
    (problem,) = problems_of(load_tasks(Path("suites"), SHIPPED), SHIPPED.gates[GateName.CI_MERGE])
    without_place = re.compile(r":\d+:\d+:")
    assert without_place.sub("", str(problem)) in without_place.sub("", PAGES["docs/grader-checks.md"])


def words_of(forecast: str) -> list[list[str]]:
    """The words of each line, but for how often the gate is INCONCLUSIVE: rounding leaves 0 or next to it."""
    return [line.split() for line in forecast.strip().splitlines() if not line.startswith("INCONCLUSIVE")]


@pytest.mark.slow
def test_the_forecast_of_the_shipped_gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    agent = "cli:my-agent {prompt}"
    request = RunRequest(agent=agent, suites=str(REPOSITORY / "suites"), gates=str(REPOSITORY / "gates.yaml"))
    plan = make_plan(GateName.CI_MERGE, request, parse_agent(agent), revision=Revision(), files=PlanFiles.of(request))
    rates = {f"{task.suite}/{task.task_id}": 0.95 for task in plan.tasks}
    text = forecast_text(forecast(plan, history_basis(plan, rates, "assumed")), width=100, color=False)
    shown = next(block.values[0].text for block in blocks("text", page="docs/forecast.md"))
    assert words_of(shown) == words_of(text), "`passgate forecast ci_merge --assume 0.95`"
