"""`passgate baseline`: shown, pinned and cleared, in a real repository with a stored history."""

import json
from typing import Any

import pytest
import yaml

from passgate.tasks.model.task import GateName
from tests.builders import a_run_id
from tests.cli.commands import Here, exits, refused, told
from tests.cli.stored import store_run
from tests.gates import WRITES_OK

FIRST, SECOND = (a_run_id(day, gate=GateName.NIGHTLY) for day in ("20260130", "20260131"))
EARLIER = {"GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z"}
SHOW, CLEAR, PIN = (("baseline", word) for word in ("show", "clear", "pin"))
WHY = ("--reason", "The provider was ill.", "--by", "Ann")


@pytest.fixture
def empty(gate_here: Here) -> Here:
    """A repository on main with two commits and a task `a`."""
    gate_here.git("commit", "-q", "--amend", "--allow-empty", "-m", "First", **EARLIER)
    gate_here.git("commit", "-q", "--allow-empty", "-m", "Second", **EARLIER)
    return gate_here


@pytest.fixture
def stored(empty: Here) -> Here:
    """The same with two runs: green at the first commit, red at the second."""
    for run_id, statuses, commit in ((FIRST, "ppp", "HEAD^"), (SECOND, "fpp", "HEAD")):
        store_run(empty, run_id, statuses, empty.git("rev-parse", commit), gate=GateName.NIGHTLY)
    return empty


def pins(project: Here) -> Any:
    return yaml.safe_load((project.path / "baseline.yaml").read_text())


def test_the_baseline_is_that_of_the_merge_base(stored: Here) -> None:
    head = stored.git("rev-parse", "HEAD")[:12]
    stored.git("checkout", "-q", "-b", "change")
    stored.git("commit", "-q", "--allow-empty", "-m", "Change")
    lines = told(stored, *SHOW).splitlines()
    row = next(line for line in lines if line.startswith("a "))
    assert lines[0] == f"baseline  merge base with main {head} and its first-parent ancestors: 2 runs"
    assert lines[1] == "agent     oracle"
    assert row.split() == ["a", "unreliable", SECOND, "1/2", "5/6", "83", "%", "[44", "%,", "97", "%]"]
    assert "1 task: 1 unreliable" in lines


def test_another_base_has_the_runs_of_its_own(stored: Here) -> None:
    first = stored.git("rev-parse", "HEAD^")
    said = json.loads(told(stored, *SHOW, "--base", first[:8], "--json"))
    assert said["commit"] == first
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


def test_another_agent_and_a_new_task_have_no_baseline_yet(stored: Here) -> None:
    assert "1 task: 1 no baseline" in told(stored, *SHOW, "--agent", "nop")
    stored.write("suites/golden/b.yaml", WRITES_OK.format(name="b") + "gates: {ci_merge_gate: false}\n")
    assert "2 tasks: 1 new task, 1 unreliable" in told(stored, *SHOW)


def test_without_a_branch_of_that_name_the_note_says_so(stored: Here) -> None:
    stored.git("branch", "-m", "other")
    lines = told(stored, *SHOW).splitlines()
    assert lines[0].startswith("baseline  the branch main by its name, because there is no merge base: 2 runs")
    assert lines[2].startswith("note      the merge base is unknown")


def test_a_history_without_runs_says_how_to_get_one(empty: Here) -> None:
    assert "has no runs yet: `passgate run` makes the first" in refused(empty, *SHOW)
    other = empty.path / "other"
    assert f"the history {other} has no runs yet" in refused(empty, *SHOW, "--history", str(other))


def test_a_pinned_commit_is_the_baseline_until_it_is_cleared(stored: Here) -> None:
    first = stored.git("rev-parse", "HEAD^")
    pinned = f"commit {first[:12]}, by Ann: The provider was ill."
    result = exits(stored, 0, *PIN, "--commit", "HEAD^", *WHY)
    assert result.stdout == f"pinned  {pinned}\n"
    assert "commit baseline.yaml" in result.stderr
    assert pins(stored) == {"version": 1, "commit": first, "reason": "The provider was ill.", "by": "Ann"}
    lines = told(stored, *SHOW).splitlines()
    assert lines[0] == f"baseline  pinned commit {first[:12]} and its first-parent ancestors: 1 run"
    assert lines[1] == f"pinned    {pinned}"
    assert "1 task: 1 green" in lines
    assert told(stored, *CLEAR) == f"cleared  {pinned}\n"
    assert not (stored.path / "baseline.yaml").exists()
    assert "1 task: 1 unreliable" in told(stored, *SHOW)
    assert told(stored, *CLEAR) == "nothing is pinned\n"


def test_who_pins_is_whom_git_knows(stored: Here) -> None:
    stored.git("config", "user.name", "Zoë of git")
    assert "by Zoë of git: why" in told(stored, *PIN, "--commit", "HEAD", "--reason", "why")


def test_the_pin_lies_beside_the_gates_file(stored: Here) -> None:
    gates = stored.write("policies/gates.yaml", (stored.path / "gates.yaml").read_text())
    told(stored, *PIN, "--commit", "HEAD^", *WHY, "--gates", "policies/gates.yaml")
    assert gates.with_name("baseline.yaml").is_file()
    assert not (stored.path / "baseline.yaml").exists()
    assert "pinned commit" in told(stored, *SHOW, "--gates", "policies/gates.yaml")
    assert "pinned" not in told(stored, *SHOW)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((*SHOW, "--base", "nowhere"), "no such commit"),
        ((*SHOW, "--agent", "nobody"), "unknown agent"),
        ((*PIN, *WHY), "give --commit or --run, and not both"),
        ((*PIN, "--commit", "HEAD", "--run", FIRST, *WHY), "give --commit or --run, and not both"),
        ((*PIN, "--commit", "nowhere", *WHY), "git knows no commit 'nowhere'"),
        ((*PIN, "--run", "2030", *WHY), f"has no run '2030'; its newest are {SECOND}, {FIRST}"),
        ((*PIN, "--run", FIRST, "--history", "elsewhere", *WHY), "the history elsewhere has no runs yet"),
        ((*PIN, "--commit", "HEAD"), "--reason"),
        ((*PIN, "--commit", "HEAD", "--reason", " "), "--reason must not be blank"),
        ((*PIN, "--commit", "HEAD", "--reason", "\u200b"), "--reason must not be blank"),
    ],
)
def test_what_cannot_be_shown_or_pinned_is_refused_and_nothing_is_written(
    stored: Here, words: tuple[str, ...], message: str
) -> None:
    assert message in refused(stored, *words)
    assert not (stored.path / "baseline.yaml").exists()


def test_a_pin_that_cannot_be_read_is_a_problem_with_its_place_everywhere(stored: Here) -> None:
    stored.write("baseline.yaml", "version: 1\ncommit: abc\nruns: [a]\nreason: why\n")
    for words in (SHOW, CLEAR, (*PIN, "--commit", "HEAD", *WHY), ("validate", "baseline.yaml")):
        assert "baseline.yaml:3:1: runs: give `commit` or `runs`, not both" in refused(stored, *words)
    stored.write("baseline.yaml", "version: 1\ncommit: abc\nreason: why\n")
    assert told(stored, "validate", "baseline.yaml") == "1 file checked, no problems\n"


def test_without_a_command_there_is_help(here: Here) -> None:
    assert all(command in told(here, "baseline") for command in ("show", "pin", "clear"))
