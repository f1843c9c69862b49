"""`passgate baseline`: shown, pinned and cleared, in a real repository with a stored history."""

import json
from pathlib import Path

import pytest
import yaml

from passgate.tasks.formats.loading import load_policy, load_tasks
from passgate.tasks.history.columns import rows, table_of
from passgate.tasks.history.dataset import History
from passgate.tasks.model.agent import AgentKind, AgentSpec
from passgate.tasks.model.run import Revision
from passgate.tasks.model.task import GateName
from tests.builders import a_plan, a_run_id, begun, trials_of
from tests.gates import GATES, WRITES_OK
from tests.project import Project

pytestmark = pytest.mark.slow

FIRST, SECOND = (a_run_id(day, gate=GateName.NIGHTLY) for day in ("20260130", "20260131"))
EARLIER = {"GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z"}
WHY = ("--reason", "The provider was ill.", "--by", "Ann")


class Stored:
    """A repository on main with two commits, a task `a` and the runs that a test stores."""

    def __init__(self, project: Project) -> None:
        self.project = project
        project.write("gates.yaml", GATES.format(k=3, seconds=30, suites="golden"))
        project.write("suites/golden/a.yaml", WRITES_OK.format(name="a"))
        project.git("commit", "-q", "--amend", "--allow-empty", "-m", "First", **EARLIER)
        project.git("commit", "-q", "--allow-empty", "-m", "Second", **EARLIER)
        self.head, self.first = project.git("rev-list", "HEAD").split()

    @property
    def history(self) -> History:
        return History(str(self.project.path / ".passgate" / "history"))

    def run(self, run_id: str, statuses: str, commit: str, agent: AgentKind = AgentKind.ORACLE) -> None:
        (task,) = load_tasks(self.project.path / "suites", load_policy(self.project.path / "gates.yaml"))
        plan = a_plan(
            task,
            run_id=run_id,
            created_at=begun(run_id),
            gate=GateName.NIGHTLY,
            agent=AgentSpec(kind=agent),
            revision=Revision(commit=commit, branch="main"),
        )
        self.history.write_run(
            run_id, f"{plan.created_at:%Y-%m-%d}", table_of(rows(trials_of(task, statuses), plan)), {}
        )

    def says(self, *arguments: str) -> str:
        """What `passgate baseline` prints when it succeeds."""
        result = self.project.passgate("baseline", *arguments)
        assert result.returncode == 0, result.stderr
        return result.stdout

    def refuses(self, *arguments: str) -> str:
        result = self.project.passgate("baseline", *arguments)
        assert result.returncode == 2, result.stdout
        assert result.stdout == ""
        assert "Traceback" not in result.stderr
        return result.stderr

    @property
    def pins(self) -> Path:
        return self.project.path / "baseline.yaml"


@pytest.fixture
def stored(bare_project: Project) -> Stored:
    return Stored(bare_project)


@pytest.fixture
def two_runs(stored: Stored) -> Stored:
    """Green at the first commit, red at the second."""
    stored.run(FIRST, "ppp", stored.first)
    stored.run(SECOND, "fpp", stored.head)
    return stored


def test_the_baseline_is_that_of_the_merge_base(two_runs: Stored) -> None:
    two_runs.project.git("checkout", "-q", "-b", "change")
    two_runs.project.git("commit", "-q", "--allow-empty", "-m", "Change")
    lines = two_runs.says("show").splitlines()
    head, row = two_runs.head[:12], next(line for line in lines if line.startswith("a "))
    assert lines[0] == f"baseline  merge base with main {head} and its first-parent ancestors: 2 runs"
    assert lines[1] == "agent     oracle"
    assert row.split() == ["a", "unreliable", "1/2", "5/6", "83", "%", "[44", "%,", "97", "%]", SECOND]
    assert "1 task: 1 unreliable" in lines


def test_another_base_has_the_runs_of_its_own(two_runs: Stored) -> None:
    said = json.loads(two_runs.says("show", "--base", two_runs.first[:8], "--json"))
    assert said["commit"] == two_runs.first
    assert said["tasks"]["golden/a"] | {"wall_times": {}, "costs": {}} == {
        "state": "green",
        "counts": {FIRST: [3, 3]},
        "runs": [FIRST],
        "runs_green": 1,
        "green_in_a_row": 1,
        "passed": 3,
        "n": 3,
        "newest": [True, True, True],
        "wall_times": {},
        "costs": {},
        "before_edit": 0,
        "restart": None,
    }
    assert "no such commit" in two_runs.refuses("show", "--base", "nowhere")


def test_another_agent_has_a_baseline_of_its_own(two_runs: Stored) -> None:
    assert "1 task: 1 no baseline" in two_runs.says("show", "--agent", "nop")
    assert "unknown agent" in two_runs.refuses("show", "--agent", "nobody")


def test_tasks_of_every_gate_are_shown_and_new_ones_too(two_runs: Stored) -> None:
    two_runs.project.write("suites/golden/b.yaml", WRITES_OK.format(name="b") + "gates: {ci_merge_gate: false}\n")
    assert "2 tasks: 1 new task, 1 unreliable" in two_runs.says("show")


def test_without_a_branch_of_that_name_the_note_says_so(two_runs: Stored) -> None:
    two_runs.project.git("branch", "-m", "trunk")
    lines = two_runs.says("show").splitlines()
    assert lines[0].startswith("baseline  the branch main by its name, because there is no merge base: 2 runs")
    assert lines[2].startswith("note      the merge base is unknown")


def test_a_history_without_runs_says_how_to_get_one(stored: Stored) -> None:
    assert "has no runs yet: `passgate run` makes the first" in stored.refuses("show")
    two = stored.project.path / "other"
    assert f"the history {two} has no runs yet" in stored.refuses("show", "--history", str(two))


def test_a_pinned_commit_is_the_baseline_until_it_is_cleared(two_runs: Stored) -> None:
    short = two_runs.first[:12]
    pinned = f"commit {short}, by Ann: The provider was ill."
    result = two_runs.project.passgate("baseline", "pin", "--commit", "HEAD^", *WHY)
    assert (result.returncode, result.stdout) == (0, f"pinned  {pinned}\n")
    assert "commit baseline.yaml" in result.stderr
    assert yaml.safe_load(two_runs.pins.read_text()) == {
        "version": 1,
        "commit": two_runs.first,
        "reason": "The provider was ill.",
        "by": "Ann",
    }
    lines = two_runs.says("show").splitlines()
    assert lines[0] == f"baseline  pinned commit {short} and its first-parent ancestors: 1 run"
    assert lines[1] == f"pinned    {pinned}"
    assert "1 task: 1 green" in lines
    assert two_runs.says("clear") == f"cleared  {pinned}\n"
    assert not two_runs.pins.exists()
    assert "1 task: 1 unreliable" in two_runs.says("show")
    assert two_runs.says("clear") == "nothing is pinned\n"


def test_pinned_runs_are_the_baseline_and_what_they_replace_is_said(two_runs: Stored) -> None:
    two_runs.says("pin", "--commit", "HEAD", *WHY)
    said = two_runs.says("pin", "--run", "20260131", "--run", SECOND, "--reason", "Better.", "--by", "Bob")
    assert said.splitlines() == [
        f"pinned  1 run ({SECOND}), by Bob: Better.",
        f"before  commit {two_runs.head[:12]}, by Ann: The provider was ill.",
    ]
    assert yaml.safe_load(two_runs.pins.read_text())["runs"] == [SECOND]
    assert "1 task: 1 red before too" in two_runs.says("show")


def test_who_pins_is_whom_git_knows(two_runs: Stored) -> None:
    two_runs.project.git("config", "user.name", "Zoë of git")
    assert "by Zoë of git: why" in two_runs.says("pin", "--commit", "HEAD", "--reason", "why")


def test_the_pin_lies_beside_the_gates_file(two_runs: Stored) -> None:
    gates = two_runs.project.write("policies/gates.yaml", (two_runs.project.path / "gates.yaml").read_text())
    two_runs.says("pin", "--commit", "HEAD^", *WHY, "--gates", "policies/gates.yaml")
    assert gates.with_name("baseline.yaml").is_file()
    assert not two_runs.pins.exists()
    assert "pinned commit" in two_runs.says("show", "--gates", "policies/gates.yaml")
    assert "pinned" not in two_runs.says("show")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (WHY, "give --commit or --run, and not both"),
        (("--commit", "HEAD", "--run", FIRST, *WHY), "give --commit or --run, and not both"),
        (("--commit", "nowhere", *WHY), "git knows no commit 'nowhere'"),
        (("--run", "2030", *WHY), f"has no run '2030'; its newest are {SECOND}, {FIRST}"),
        (("--run", FIRST, "--history", "elsewhere", *WHY), "the history elsewhere has no runs yet"),
        (("--commit", "HEAD"), "--reason"),
        (("--commit", "HEAD", "--reason", " "), "--reason must not be blank"),
    ],
)
def test_what_cannot_be_pinned_is_refused_and_nothing_is_written(
    two_runs: Stored, arguments: tuple[str, ...], message: str
) -> None:
    assert message in two_runs.refuses("pin", *arguments)
    assert not two_runs.pins.exists()


def test_a_pin_that_cannot_be_read_is_a_problem_with_its_place_everywhere(two_runs: Stored) -> None:
    two_runs.project.write("baseline.yaml", "version: 1\ncommit: abc\nruns: [a]\nreason: why\n")
    problem = "baseline.yaml:3:1: runs: give `commit` or `runs`, not both"
    for arguments in (("show",), ("clear",), ("pin", "--commit", "HEAD", *WHY)):
        assert problem in two_runs.refuses(*arguments)
    result = two_runs.project.passgate("validate", "baseline.yaml")
    assert result.returncode == 2
    assert problem in result.stderr
    two_runs.project.write("baseline.yaml", "version: 1\ncommit: abc\nreason: why\n")
    result = two_runs.project.passgate("validate", "baseline.yaml")
    assert (result.returncode, result.stdout) == (0, "1 file checked, no problems\n")


def test_without_a_command_there_is_help(stored: Stored) -> None:
    said = stored.says()
    assert all(command in said for command in ("show", "pin", "clear"))
