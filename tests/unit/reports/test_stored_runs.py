"""The runs of a history as texts."""

from collections.abc import Callable

import pytest
from tests.builders import a_run_id

from passgate.tasks.model.history import PrunedRuns, RecordedRun, RecordedRunDetails, RecordedTask
from passgate.tasks.model.task import GateName, Metric, Suite
from passgate.tasks.model.verdict import Decision
from passgate.tasks.reports.stored_runs import pruned_text, run_summary, stored_runs_table

RUN = RecordedRun(
    run_id=a_run_id("20260131"),
    gate=GateName.NIGHTLY,
    agent="python:agent:agent",
    git_branch="main",
    git_commit="5c1f00d1c2a3b4c5",
    tasks=2,
    passed=7,
    measured=8,
    errors=1,
    cost=0.5,
)
GREEN = RecordedTask(
    suite=Suite.GOLDEN,
    task_id="say-yes",
    k=3,
    metric=Metric.PASS_HAT_K,
    outcomes="ppp",
    passed=3,
    failed=0,
    errors=0,
    not_run=0,
    confirming_passed=0,
    confirming_failed=0,
    violations=0,
    value=1.0,
    wall_time_seconds=1.25,
    total_cost=0.2,
)
RED = GREEN.model_copy(
    update={
        "suite": Suite.ADVERSARIAL,
        "task_id": "attack",
        "k": 10,
        "outcomes": "ppppfennnn",
        "passed": 4,
        "failed": 1,
        "errors": 1,
        "not_run": 4,
        "confirming_passed": 2,
        "confirming_failed": 1,
        "violations": 1,
        "value": None,
        "wall_time_seconds": None,
        "total_cost": None,
    }
)
OTHER = RUN.model_copy(update={"run_id": a_run_id("20260201"), "git_commit": "", "git_branch": "", "cost": None})
PRUNED = PrunedRuns(gone=(RUN, OTHER), pinned=("a",), needed=("b", "c"), left=3)
DETAILS = RecordedRunDetails(
    run=RUN, models=("large", "small"), git_dirty=True, passgate_version="0.1.0", tasks=(GREEN, RED)
)


@pytest.mark.parametrize("width", [60, 80, 100, 140])
@pytest.mark.parametrize("agent", ["oracle", "cli:sh /work/agents/my-agent.sh --model large --task {prompt_file}"])
@pytest.mark.parametrize("gate", list(GateName))
def test_a_run_is_one_line_at_every_width(width: int, agent: str, gate: GateName) -> None:
    run_id = a_run_id("20260131").replace("ci_merge", gate)
    branch = "dependabot/npm_and_yarn/a-package-with-a-long-name-1.2.3"
    run = RUN.model_copy(update={"run_id": run_id, "gate": gate, "agent": agent, "git_branch": branch})
    lines = stored_runs_table([run, run], width=width, color=False).splitlines()
    assert [line.split()[0] for line in lines] == ["run", run_id, run_id]
    assert max(map(len, lines)) <= width
    assert all(line.endswith("7/8 +1 error $0.5000") or width > 80 for line in lines[1:])


def test_a_list_leaves_out_columns_where_there_is_little_room() -> None:
    heads = [stored_runs_table([RUN], width=width, color=False).split("\n")[0].split() for width in (100, 90, 80, 76)]
    wide = ["run", "agent", "branch", "commit", "tasks", "trials", "cost"]
    assert heads == [wide, [*wide[:4], *wide[5:]], [*wide[:3], *wide[5:]], [*wide[:2], *wide[5:]]]


@pytest.mark.parametrize(("width", "has_reason"), [(160, True), (80, False)])
def test_a_list_says_how_each_run_ended_and_why(width: int, has_reason: bool) -> None:
    red = RUN.model_copy(update={"decision": Decision.FAIL, "reason": "task_failed golden/refund +2"})
    head, without, line = stored_runs_table([RUN, red], width=width, color=False).splitlines()
    assert (head.split()[1], "reason" in head.split()) == ("verdict", has_reason)
    assert (without.split()[1], line.split()[1]) == ("-", "FAIL")
    assert ("task_failed golden/refund +2" in line) == has_reason


@pytest.mark.parametrize(
    ("text", "file"),
    [
        (run_summary(DETAILS, width=100, color=False), "show.txt"),
        (DETAILS.model_dump_json(indent=2) + "\n", "show.json"),
        (pruned_text(PRUNED, done=False, width=100, color=False), "prune.txt"),
    ],
    ids=["run", "json", "pruned"],
)
def test_reads_as_the_golden_file(text: str, file: str, matches_golden: Callable[[str, str], None]) -> None:
    matches_golden(text, f"history_{file}")


def test_hostile_text_of_a_run_is_escaped() -> None:
    hostile = "\x1b[31m[bold]red\u202e"
    task = GREEN.model_copy(update={"task_id": hostile})
    run = RUN.model_copy(update={"agent": hostile, "git_branch": hostile})
    changed = {"run": run, "tasks": (task,), "models": (hostile,), "passgate_version": hostile}
    text = run_summary(DETAILS.model_copy(update=changed), width=200, color=False)
    assert not {"\x1b", "\u202e"} & set(text + stored_runs_table([run], width=140, color=False))
    assert text.count("[bold]") == 5
