"""`passgate forecast` as its users see it."""

import json
import re
from xml.etree import ElementTree

import pytest

from tests.builders import task_document
from tests.project import REPOSITORY, Project

pytestmark = pytest.mark.slow

KEYS = {
    "schema_version",
    "gate",
    "agent",
    "rates",
    "baseline_runs",
    "red",
    "red_error",
    "agent_falls",
    "run_spread",
    "inconclusive",
    "strict_red",
    "catches",
    "effort",
    "rules",
    "causes",
    "target",
    "advice",
    "tasks",
    "curve",
    "simulated",
    "seed",
    "notes",
}
TASKS = 20


@pytest.fixture
def strict(bare_project: Project) -> Project:
    """The seed's gate: twenty golden tasks of three trials, any of which blocks."""
    gates = (REPOSITORY / "gates.yaml").read_text()
    bare_project.write("gates.yaml", gates)
    for number in range(TASKS):
        task = task_document(task_id=f"t{number:02}")
        bare_project.write(f"suites/golden/t{number:02}.yaml", json.dumps(task))
    return bare_project


def forecast(project: Project, *arguments: str) -> dict:
    result = project.passgate("forecast", "release_candidate", "--json", *arguments)
    assert (result.returncode, result.stderr) == (0, "")
    return json.loads(result.stdout)


def test_the_seeds_gate_on_its_first_day(strict: Project) -> None:
    result = strict.passgate("forecast", "release_candidate", "--assume", "0.99")
    assert result.returncode == 0, result.stderr
    assert re.search(r"FAIL +45 %", result.stdout)
    assert "regression: {mode: evidence}" in result.stdout
    assert not (strict.path / ".passgate").exists()


def test_programs_get_every_number_under_keys_that_stay(strict: Project) -> None:
    found = forecast(strict, "--assume", "0.99", "--runs", "500", "--seed", "3")
    assert set(found) == KEYS
    assert found["red"] == pytest.approx(0.4528, abs=1e-3)
    assert (found["simulated"], found["seed"], found["rates"], len(found["tasks"])) == (500, 3, "assumed", TASKS)
    assert found["tasks"][0]["task"] == "golden/t00"


def test_rates_of_single_tasks(strict: Project) -> None:
    strict.write("rates.json", json.dumps([0.5] + [1.0] * (TASKS - 1)))
    found = forecast(strict, "--rates", "rates.json")
    assert [task["pass_rate"] for task in found["tasks"][:2]] == [0.5, 1.0]
    assert found["red"] == pytest.approx(1 - 0.5**3)
    assert {cause["task"] for cause in found["causes"] if cause["task"]} == {"golden/t00"}


def test_a_history_without_runs_says_what_to_do(strict: Project) -> None:
    result = strict.passgate("forecast", "ci_merge", "--agent", "nop", "--history", "somewhere")
    assert (result.returncode, result.stdout) == (2, "")
    assert "the history somewhere has no runs of nop on main" in result.stderr
    assert "--assume 0.99" in result.stderr


def test_a_rates_file_with_mistakes_names_each_with_its_place(strict: Project) -> None:
    strict.write("rates.json", '{\n  "golden/t00": 1.5,\n  "golden/t000": 0.9\n}')
    result = strict.passgate("forecast", "ci_merge", "--rates", "rates.json")
    assert result.returncode == 2
    assert "rates.json:2:17: golden/t00: expected a rate from 0 to 1, as in 0.98" in result.stderr
    assert (
        "rates.json:3:3: golden/t000: the gate has no task 'golden/t000'; did you mean 'golden/t00'?" in result.stderr
    )
    assert "2 problems found" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--assume", "0.9", "--rates", "r.json"), "give --assume or --rates, not both"),
        (("--assume", "1.1"), "should be less than or equal to 1"),
        (("--assume", "0.9", "--plot", "x.png"), "--plot x.png: the picture is an SVG: give FILE.svg"),
        (("--assume", "0.9", "--plot", "x", "--gates", "none.yaml"), "--plot x: the picture is an SVG: give FILE.svg"),
        (("--assume", "0.9", "--base", "no-such"), "--base no-such: the repository of"),
        (("--assume", "0.9", "--gates", "none.yaml"), "no gates file none.yaml"),
    ],
)
def test_bad_usage_is_2_with_the_reason(strict: Project, arguments: tuple[str, ...], message: str) -> None:
    result = strict.passgate("forecast", "ci_merge", *arguments)
    assert (result.returncode, result.stdout) == (2, "")
    assert message in " ".join(result.stderr.split())


def test_the_picture(strict: Project) -> None:
    pytest.importorskip("matplotlib")
    result = strict.passgate("forecast", "ci_merge", "--assume", "0.99", "--plot", "forecast.svg")
    assert result.returncode == 0, result.stderr
    assert "this policy" in "".join(ElementTree.parse(strict.path / "forecast.svg").getroot().itertext())
    assert "plot  forecast.svg" in result.stderr
    nowhere = strict.passgate("forecast", "ci_merge", "--assume", "0.99", "--plot", "none/x.svg")
    assert nowhere.returncode == 2
    assert "cannot write none/x.svg" in nowhere.stderr


def test_of_stored_runs(project: Project) -> None:
    """The rates are those of the history."""
    project.write("suites/golden/a.yaml", json.dumps(task_document(task_id="a")))
    project.write("yes.py", "def agent(attempt):\n    return 'yes'\n")
    project.write(".gitignore", "__pycache__\n")
    project.write(
        "gates.yaml",
        "version: 1\nsuites: {golden: {k: 3, metric: pass^k, max_steps: 5}}\n"
        "gates: {ci_merge: {suites: [golden], blocks_on: [golden_regression, task_failed]}}\n",
    )
    project.git("add", ".")
    project.git("commit", "-qm", "A gate")
    for _ in range(2):
        assert project.passgate("run", "ci_merge", "--agent", "python:yes:agent").returncode == 0
    result = project.passgate("forecast", "ci_merge", "--agent", "python:yes:agent", "--json")
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert (found["rates"], found["baseline_runs"]) == ("history", 2)
    (task,) = found["tasks"]
    assert (task["passed"], task["n"], task["state"]) == (6, 6, "green")
    assert task["pass_rate"] == pytest.approx(6.5 / 7)


@pytest.mark.parametrize("shipped", [True, False], ids=["the shipped suites", "the suites that init writes"])
def test_the_shipped_policy_leaves_a_steady_agent_green(bare_project: Project, shipped: bool) -> None:
    """At 99 % per trial a gate may be red for no more than 2 % of the changes that change nothing."""
    assert bare_project.passgate("init").returncode == 0
    suites = str(REPOSITORY / "suites") if shipped else "suites"
    told = bare_project.passgate("forecast", "ci_merge", "--assume", "0.99", "--suites", suites, "--json")
    assert told.returncode == 0, told.stderr
    forecast = json.loads(told.stdout)
    assert forecast["red"] <= forecast["target"] == 0.02
