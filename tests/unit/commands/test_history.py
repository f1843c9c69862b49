"""The stored runs of a history, and two of them side by side."""

from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from passgate.tasks.commands.history import (
    BaselineNeeds,
    compare_runs,
    find_run_id,
    prunable_runs,
    run_details,
)
from passgate.tasks.errors import UsageError
from passgate.tasks.history.columns import trials_table
from passgate.tasks.history.dataset import History
from passgate.tasks.history.summaries import task_summaries
from passgate.tasks.model.agent import AgentKind, AgentSpec
from passgate.tasks.model.baseline import Pins
from passgate.tasks.model.history import PrunedRuns
from passgate.tasks.model.run import Revision
from passgate.tasks.reports.stored_runs import differences_table
from tests.builders import a_plan, a_run_id, a_task, trials_of

FIRST, SECOND, THIRD, FOURTH, FIFTH = (a_run_id(f"2026010{day}") for day in range(1, 6))


def store(history: History, run_id: str, statuses: dict[str, str], agent: str = "my-agent") -> None:
    """Store a run with these statuses of its tasks."""
    plan = a_plan(run_id=run_id, agent=AgentSpec(kind=AgentKind.CLI, target=agent))
    tasks = [a_task(task_id=name) for name in statuses]
    trials = [trial for task in tasks for trial in trials_of(task, statuses[task.task_id], cost=0.5)]
    history.write_run(run_id, trials_table(trials, plan), {})


@pytest.fixture
def history(tmp_path: Path) -> History:
    made = History(str(tmp_path))
    store(made, SECOND, {"say-yes": "ppf", "other": "ppp"})
    store(made, FIRST, {"say-yes": "ppp", "old": "p"})
    store(made, THIRD, {"say-yes": "fff"})
    return made


def test_a_run_is_named_by_its_beginning_or_as_the_last() -> None:
    runs = [FIRST, SECOND, THIRD]
    assert [find_run_id(runs, name) for name in ("last", SECOND[:8], SECOND)] == [THIRD, SECOND, SECOND]
    with pytest.raises(UsageError, match="no run 'last'"):
        find_run_id((), "last")


@pytest.mark.parametrize(
    ("name", "problem"), [("2026", "3 runs whose ids begin"), ("x", "no run 'x'"), ("", "no run ''")]
)
def test_a_name_that_is_not_that_of_one_run_is_refused(name: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        find_run_id([FIRST, SECOND, THIRD], name)


def test_a_run_is_compared_with_the_one_before_it_of_the_same_gate_and_agent(history: History) -> None:
    store(history, FOURTH, {"say-yes": "ppp"}, agent="b")
    store(history, FIFTH, {"say-yes": "ppp"})
    assert [run.run_id for run in compare_runs(history, "last", None)[:2]] == [THIRD, FIFTH]
    with pytest.raises(UsageError, match="no run of cli:b at ci_merge before"):
        compare_runs(history, FOURTH, None)


def test_the_tasks_that_differ_most_stand_first(history: History) -> None:
    first, third, differences = compare_runs(history, THIRD, FIRST)
    assert [(one.task_id, one.before, one.after) for one in differences] == [
        ("say-yes", (3, 3), (0, 3)),
        ("old", (1, 1), None),
    ]
    text = differences_table(first, third, differences, width=100, color=False)
    assert "2 tasks of 2 differ" in text
    assert "-100 points" in text
    assert "gone" in text
    assert "new" in differences_table(*compare_runs(history, FIRST, SECOND), width=100, color=False)


def test_a_run_whose_file_is_broken_is_a_mistake(history: History, tmp_path: Path) -> None:
    (tmp_path / f"trials/{SECOND}.parquet").write_text("broken")
    for ask in (lambda: run_details(history, SECOND), lambda: compare_runs(history, THIRD, SECOND)):
        with pytest.raises(UsageError, match=f"no trials of {SECOND} that can be read"):
            ask()


IDS = tuple(a_run_id(f"2026010{day}") for day in range(1, 7))
NONE = BaselineNeeds(2, "main", (), None, ())


def summary(
    run_id: str,
    statuses: str = "ppp",
    *,
    branch: str = "main",
    agent: str = "mine",
    dirty: bool = False,
    **of_task: Any,
) -> pa.Table:
    task = a_task(**{"task_digest": "1"} | of_task)
    revision = Revision(commit=f"{run_id[7]:0<40}", branch=branch, dirty=dirty)
    plan = a_plan(task, run_id=run_id, agent=AgentSpec(kind=AgentKind.CLI, target=agent), revision=revision)
    return task_summaries(trials_table(trials_of(task, statuses), plan))


long_summary = partial(summary, k=20)


def edited(run_id: str, trials: int, **of_task: Any) -> pa.Table:
    """A run of the task after its edit, with so many of its 20 trials."""
    return long_summary(run_id, "p" * trials, task_digest="2", **of_task)


def pruned(summaries: list[pa.Table], needs: BaselineNeeds = NONE) -> PrunedRuns:
    """What goes of a history of which everything is chosen."""
    return prunable_runs(pa.concat_tables(summaries), needs)


OF_BRANCH = summary(IDS[3], branch="topic")


def test_the_runs_before_a_day_and_beyond_a_number_of_each_gate_and_agent_are_chosen() -> None:
    table = pa.concat_tables([*(summary(run_id) for run_id in IDS[:4]), summary(IDS[4], agent="other")])
    no_needs = BaselineNeeds(0, "none", (), None, ())

    def gone(**chosen: Any) -> set[str]:
        return {run.run_id for run in prunable_runs(table, no_needs, **chosen).gone}

    assert gone(before="2026-01-03") == set(IDS[:2])
    assert gone(keep=3) == {IDS[0]}
    assert gone(keep=1) == set(IDS[:3])


@pytest.mark.parametrize(
    ("summaries", "needs", "removed"),
    [
        # The newest runs of each agent on the baseline branch stay.
        ([*map(summary, IDS[:4])], NONE, IDS[:2]),
        ([*map(summary, IDS[:3]), summary(IDS[3], agent="other")], NONE, IDS[:1]),
        # No baseline is made from runs of other branches or of files that were changed.
        ([OF_BRANCH, summary(IDS[4], dirty=True), summary(IDS[5])], NONE, IDS[3:5]),
        ([OF_BRANCH], BaselineNeeds(2, "main", ("4" + "0" * 39,), None, ()), ()),
        # Runs of a task before its edit go once it has 20 trials as it is now: until then its baseline pools both.
        ([*map(long_summary, IDS[:3]), edited(IDS[3], 20)], NONE, IDS[:3]),
        ([*map(long_summary, IDS[:3]), edited(IDS[3], 19)], NONE, IDS[:1]),
        ([*map(long_summary, IDS[:3]), edited(IDS[3], 19, grader_digest="2")], NONE, IDS[:1]),
        ([*map(summary, IDS[:3]), edited(IDS[3], 19)], NONE, IDS[:3]),
        # A task that a newer run lacks may come back as it was.
        ([*map(summary, IDS[:2]), summary(IDS[3], task_id="other")], NONE, ()),
    ],
)
def test_runs_that_no_baseline_needs_go(
    summaries: list[pa.Table], needs: BaselineNeeds, removed: tuple[str, ...]
) -> None:
    assert tuple(run.run_id for run in pruned(summaries, needs).gone) == removed


@pytest.mark.parametrize(
    ("pinned_by", "ancestors"),
    [({"runs": (IDS[0],)}, ()), ({"commit": "1" + "0" * 39}, ("1" + "0" * 39,)), ({"commit": "1" + "0" * 39}, ())],
)
def test_the_runs_of_a_pinned_baseline_stay(pinned_by: dict[str, Any], ancestors: tuple[str, ...]) -> None:
    pins = Pins(**pinned_by, reason="x")
    result = pruned(list(map(summary, IDS)), BaselineNeeds(2, "main", (), pins, ancestors))
    assert (result.pinned, result.needed, result.left) == (IDS[:1], IDS[4:], 3)
    assert tuple(run.run_id for run in result.gone) == IDS[1:4]
