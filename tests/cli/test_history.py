"""`passgate history`."""

import json
import shutil
from pathlib import Path

import pytest
import yaml
from bench.generated_history import night_id, write_generated

from tests.builders import a_run_id
from tests.cli.commands import Here, exits, refused, told
from tests.cli.stored import store_run
from tests.gates import gate_of, newest_run, shell_agent
from tests.object_store import ObjectStore, object_store
from tests.project import REPOSITORY, Project
from tests.scenarios import Scenarios
from tests.scenarios.histories import three_nights

__all__ = ["object_store"]


def gates_with(runs: int) -> str:
    """The shipped gates, for baselines of so many runs."""
    gates = yaml.safe_load((REPOSITORY / "gates.yaml").read_text(encoding="utf-8"))
    return yaml.safe_dump(gates | {"baseline": {**gates.get("baseline", {}), "runs": runs}})


@pytest.fixture
def kept(scenario: Scenarios, here: Here) -> Path:
    """A history of three nights, which is the history of the project's commands."""
    shutil.copytree(scenario(three_nights).path / "kept", here.path / "kept")
    here.environment["PASSGATE_HISTORY_URL"] = "kept"
    return here.path / "kept"


@pytest.mark.usefixtures("kept")
def test_runs_are_listed_compared_and_shown(here: Here) -> None:
    assert runs_of(here) == [night_id(night) for night in range(3)]
    assert told(here, "history", "compare", "last").startswith(f"{night_id(1)} -> {night_id(2)}: ")
    assert told(here, "history", "show", "last").startswith(f"{night_id(2)}\n")
    assert json.loads(told(here, "history", "show", night_id(0), "--format", "json"))["run"]["tasks"] == 33


def runs_of(project: Project) -> list[str]:
    """The ids of the runs that are listed."""
    return [line.split()[0] for line in told(project, "history", "list").splitlines()[1:]]


def test_a_history_of_nothing_is_no_mistake(here: Here) -> None:
    assert told(here, "history", "list") == "No runs.\n"
    assert told(here, "history", "prune", "--keep", "1") == "Nothing to remove.\n0 runs left.\n"


def test_old_runs_go_when_somebody_says_yes(here: Here, kept: Path) -> None:
    here.write("gates.yaml", gates_with(runs=1))
    dry = told(here, "history", "prune", "--before", "2025-01-03", "--dry-run")
    assert dry.endswith("2 runs would be removed.\n1 run left.\n")
    assert "give --before or --keep" in refused(here, "history", "prune", "--yes")
    assert "give --yes to remove these runs" in exits(here, 2, "history", "prune", "--keep", "1").stderr
    here.write("baseline.yaml", f"runs: [{night_id(0)}]\nreason: it was good\n")
    gone = told(here, "history", "prune", "--keep", "1", "--yes")
    assert gone.endswith("1 run is removed.\n1 run stays: pinned in baseline.yaml\n2 runs left.\n")
    assert not list(kept.rglob(f"*{night_id(1)}*"))
    assert len(runs_of(here)) == 2


@pytest.mark.slow
def test_all_of_it_works_at_a_url(bare_project: Project, object_store: ObjectStore) -> None:
    def history(*arguments: str) -> str:
        return told(bare_project, "history", *arguments)

    url = object_store.new_url()
    bare_project.environment = {**object_store.environment, "PASSGATE_ENGINE": "none", "PASSGATE_HISTORY_URL": url}
    write_generated(url, 12, 1)
    bare_project.write("gates.yaml", gates_with(runs=2))
    ids = [night_id(night) for night in range(12)]
    assert runs_of(bare_project) == ids
    assert history("compare", ids[3], ids[7]).startswith(f"{ids[3]} -> {ids[7]}: ")
    assert history("show", ids[5]).startswith(ids[5])
    assert history("prune", "--before", "2025-01-11", "--yes").endswith("10 runs are removed.\n2 runs left.\n")
    assert not [name for name in object_store.keys(url) if ids[0] in name]
    assert runs_of(bare_project) == ids[10:]
    assert told(bare_project, "trend").startswith("nightly of ")
    gate_of(bare_project, "a", k=1)
    told(bare_project, "run", "ci_merge", *shell_agent(bare_project))
    run_id = newest_run(bare_project).name
    assert runs_of(bare_project) == [*ids[10:], run_id]
    assert {f"{folder}/{run_id}.parquet" for folder in ("trials", "transcripts")} <= set(object_store.keys(url))
    told(bare_project, "run", "ci_merge", *shell_agent(bare_project))
    assert history("compare", run_id, newest_run(bare_project).name).startswith(f"{run_id} -> ")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("prune", "--keep", "1", "--json"), "nobody sees what is to go: give --dry-run or --yes too"),
        (("prune", "--keep", "1", "--quiet"), "nobody sees what is to go: give --dry-run or --yes too"),
        (("prune",), "give --before or --keep to say what is to go, not both"),
    ],
)
def test_what_nobody_could_see_is_refused(here: Here, kept: Path, arguments: tuple[str, ...], said: str) -> None:
    before = sorted(kept.rglob("*"))
    assert said in refused(here, "history", *arguments)
    assert sorted(kept.rglob("*")) == before


RUN = a_run_id("20260130")
REMEDY = "a line in .gitignore and a commit"


def bring_history(project: Here, location: str) -> None:
    """Commit a history in which the task has failed before too."""
    store_run(project, RUN, "fff", project.git("rev-parse", "HEAD"), location)
    project.git("add", "--all", "--force")
    project.git("commit", "-q", "-m", "A better baseline")


@pytest.mark.parametrize(
    "command",
    [
        ("run", "ci_merge"),
        ("forecast", "ci_merge"),
        ("burn-in", "ci_merge", "--runs", "2"),
        ("trend",),
        ("baseline", "show"),
        ("baseline", "pin", "--run", RUN, "--reason", "It is better."),
    ],
    ids=" ".join,
)
def test_no_command_reads_a_history_that_git_tracks(gate_here: Here, command: tuple[str, ...]) -> None:
    bring_history(gate_here, "kept/history")
    said = refused(gate_here, *command, "--history", "kept/history")
    assert "the history kept/history must not be in git, but git tracks kept/history/" in said
    assert f"`git rm -r --cached kept/history`, {REMEDY}" in said


def test_the_history_that_the_policy_names_is_no_other(gate_here: Here) -> None:
    bring_history(gate_here, "kept")
    gate_here.write("gates.yaml", (gate_here.path / "gates.yaml").read_text() + "history: kept\n")
    assert "the history kept must not be in git" in refused(gate_here, "run", "ci_merge")


@pytest.mark.parametrize(
    "command",
    [
        ("run", "ci_merge"),
        ("run", "ci_merge", "--resume", "last"),
        ("judge", "last"),
        ("sign-off", "last", "--by", "Eve", "--decision", "approve", "--reason", "Mine."),
    ],
    ids=" ".join,
)
def test_no_command_goes_on_with_runs_that_git_tracks(gate_here: Here, command: tuple[str, ...]) -> None:
    gate_here.write(f".passgate/runs/{RUN}/plan.json", "{}")
    gate_here.git("add", "--all", "--force")
    said = refused(gate_here, *command)
    assert f"passgate's folder .passgate must not be in git, but git tracks .passgate/runs/{RUN}/plan.json" in said
    assert f"`git rm -r --cached .passgate`, {REMEDY}" in said
