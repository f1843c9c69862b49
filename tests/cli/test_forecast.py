"""`passgate forecast` as its users see it."""

import json
import re
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.builders import a_run_id, task_document
from tests.cli.commands import Here, exits, refused, told
from tests.cli.stored import store_run
from tests.gates import gate_of
from tests.project import REPOSITORY

pytestmark = pytest.mark.slow

KEYS = {
    *("schema_version", "gate", "agent", "rates", "baseline_runs", "red", "red_error", "agent_falls", "run_spread"),
    *("inconclusive", "strict_red", "catches", "effort", "rules", "causes", "target", "advice", "tasks", "curve"),
    *("simulated", "seed", "notes"),
}
TASKS = 20
ASSUMED = ("--assume", "0.99")


@pytest.fixture
def strict(here: Here) -> Here:
    """The seed's gate: twenty golden tasks of three trials, any of which blocks."""
    here.write("gates.yaml", (REPOSITORY / "gates.yaml").read_text())
    for name in (f"t{number:02}" for number in range(TASKS)):
        here.write(f"suites/golden/{name}.yaml", json.dumps(task_document(task_id=name)))
    return here


def forecast(project: Here, *arguments: str, gate: str = "release_candidate") -> Any:
    result = exits(project, 0, "forecast", gate, "--json", *arguments)
    assert result.stderr == ""
    return json.loads(result.stdout)


def test_the_seeds_gate_on_its_first_day_and_its_picture(strict: Here) -> None:
    result = exits(strict, 0, "forecast", "release_candidate", *ASSUMED, "--plot", "forecast.svg")
    assert re.search(r"FAIL +4[3-7] %", result.stdout)
    assert "regression: {mode: evidence}" in result.stdout
    assert "this policy" in "".join(ElementTree.parse(strict.path / "forecast.svg").getroot().itertext())
    assert "plot  forecast.svg" in result.stderr
    assert not (strict.path / ".passgate").exists()


def test_programs_get_every_number_under_keys_that_stay(strict: Here) -> None:
    found = forecast(strict, *ASSUMED, "--runs", "500", "--seed", "3")
    assert set(found) == KEYS
    assert found["red"] == pytest.approx(0.4528, abs=0.07)
    assert (found["simulated"], found["seed"], found["rates"], len(found["tasks"])) == (500, 3, "assumed", TASKS)
    assert found["tasks"][0]["task"] == "golden/t00"


def test_rates_of_single_tasks(strict: Here) -> None:
    strict.write("rates.json", json.dumps([0.5] + [1.0] * (TASKS - 1)))
    found = forecast(strict, "--rates", "rates.json")
    assert [task["pass_rate"] for task in found["tasks"][:2]] == [0.5, 1.0]
    assert found["red"] == pytest.approx(1 - 0.5**3, abs=0.01)
    assert {cause["task"] for cause in found["causes"] if cause["task"]} == {"golden/t00"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--assume", "0.9", "--rates", "r.json"), "give --assume or --rates, not both"),
        (("--agent", "nop", "--history", "somewhere"), "the history somewhere has no runs of nop on main"),
        (("--agent", "nop", "--history", "somewhere"), "`--assume 0.99`"),
        (("--rates", "none.json"), "none.json:1:1: cannot be read"),
        (("--assume", "1.1"), "should be less than or equal to 1"),
        (("--assume", "0.9", "--plot", "x.png"), "--plot x.png: the picture is an SVG: give FILE.svg"),
        (("--assume", "0.9", "--plot", "x", "--gates", "none.yaml"), "--plot x: the picture is an SVG: give FILE.svg"),
        (("--assume", "0.9", "--base", "no-such"), "--base no-such: the repository of"),
        (("--assume", "0.9", "--gates", "none.yaml"), "no gates file none.yaml"),
    ],
)
def test_bad_usage_is_2_with_the_reason(strict: Here, arguments: tuple[str, ...], message: str) -> None:
    assert message in " ".join(refused(strict, "forecast", "ci_merge", *arguments).split())


def test_the_rates_are_those_of_stored_runs(here: Here) -> None:
    gate_of(here, "a")
    here.git("commit", "-q", "--amend", "--allow-empty", "-m", "First", GIT_COMMITTER_DATE="2026-01-01T00:00:00Z")
    for day in ("20260130", "20260131"):
        store_run(here, a_run_id(day), "ppp", here.git("rev-parse", "HEAD"))
    found = forecast(here, gate="ci_merge")
    assert (found["rates"], found["baseline_runs"]) == ("history", 2)
    (task,) = found["tasks"]
    assert (task["passed"], task["n"], task["state"]) == (6, 6, "green")
    assert task["pass_rate"] == pytest.approx(6.5 / 7)


@pytest.mark.parametrize("shipped", [True, False], ids=["the shipped suites", "the suites that init writes"])
def test_the_shipped_policy_leaves_a_steady_agent_green(here: Here, shipped: bool) -> None:
    """At 99 % per trial a gate may be red for no more than 2 % of the changes that change nothing."""
    told(here, "init")
    found = forecast(here, *ASSUMED, "--suites", str(REPOSITORY / "suites") if shipped else "suites", gate="ci_merge")
    assert found["red"] <= found["target"] == 0.02
