"""Which runs may leave a history."""

from typing import Any

import pyarrow as pa
import pytest

from passgate.tasks.commands.history import stored_runs
from passgate.tasks.commands.prune import Needs, pruned_runs, runs_before, runs_beyond
from passgate.tasks.history.columns import trials_table
from passgate.tasks.history.summaries import task_summaries
from passgate.tasks.model.agent import AgentKind, AgentSpec
from passgate.tasks.model.baseline import Pins
from passgate.tasks.model.history import PrunedRuns
from passgate.tasks.model.run import Revision
from passgate.tasks.reports.stored_runs import pruned_text
from tests.builders import a_plan, a_run_id, a_task, trials_of

IDS = tuple(a_run_id(f"2026010{day}") for day in range(1, 7))
NONE = Needs(2, "main", (), None, ())


def summary(run_id: str, *, branch: str = "main", agent: str = "mine", dirty: bool = False, **of_task: Any) -> pa.Table:
    task = a_task(**{"task_digest": "1"} | of_task)
    revision = Revision(commit=f"{run_id[7]:0<40}", branch=branch, dirty=dirty)
    plan = a_plan(task, run_id=run_id, agent=AgentSpec(kind=AgentKind.CLI, target=agent), revision=revision)
    return task_summaries(trials_table(trials_of(task, "ppp"), plan))


def pruned(summaries: list[pa.Table], needs: Needs = NONE) -> PrunedRuns:
    """What goes of a history of which everything is chosen."""
    table = pa.concat_tables(summaries)
    runs = stored_runs(table)
    return pruned_runs(runs, [run.run_id for run in runs], table, needs)


OF_BRANCH = summary(IDS[3], branch="topic")


def test_the_runs_before_a_day_and_beyond_a_number_of_each_gate_and_agent_are_chosen() -> None:
    table = pa.concat_tables([*(summary(run_id) for run_id in IDS[:4]), summary(IDS[4], agent="other")])
    runs = stored_runs(table)
    assert runs_before(runs, "2026-01-03") == set(IDS[:2])
    assert runs_beyond(runs, 3) == {IDS[0]}
    assert runs_beyond(runs, 1) == set(IDS[:3])


@pytest.mark.parametrize(
    ("summaries", "needs", "removed"),
    [
        # The newest runs of each agent on the baseline branch stay.
        ([*map(summary, IDS[:4])], NONE, IDS[:2]),
        ([*map(summary, IDS[:3]), summary(IDS[3], agent="other")], NONE, IDS[:1]),
        # No baseline is made from runs of other branches or of files that were changed.
        ([OF_BRANCH, summary(IDS[4], dirty=True), summary(IDS[5])], NONE, IDS[3:5]),
        ([OF_BRANCH], Needs(2, "main", ("4" + "0" * 39,), None, ()), ()),
        # Runs of a task before it was edited go; a task that a newer run lacks may come back as it was.
        ([*map(summary, IDS[:2]), summary(IDS[2], task_digest="2")], NONE, IDS[:2]),
        ([*map(summary, IDS[:2]), summary(IDS[3], task_id="other")], NONE, ()),
    ],
)
def test_runs_that_no_baseline_needs_go(summaries: list[pa.Table], needs: Needs, removed: tuple[str, ...]) -> None:
    assert tuple(run.run_id for run in pruned(summaries, needs).gone) == removed


@pytest.mark.parametrize(
    ("pinned_by", "ancestors"),
    [({"runs": (IDS[0],)}, ()), ({"commit": "1" + "0" * 39}, ("1" + "0" * 39,)), ({"commit": "1" + "0" * 39}, ())],
)
def test_the_runs_of_a_pinned_baseline_stay(pinned_by: dict[str, Any], ancestors: tuple[str, ...]) -> None:
    pins = Pins(**pinned_by, reason="x")
    result = pruned(list(map(summary, IDS)), Needs(2, "main", (), pins, ancestors))
    assert (result.pinned, result.needed, result.left) == (IDS[:1], IDS[4:], 3)
    assert tuple(run.run_id for run in result.gone) == IDS[1:4]


def test_what_goes_and_what_stays_is_said_and_hostile_text_escaped() -> None:
    needs = Needs(1, "main", (), Pins(runs=(IDS[0],), reason="x"), ())
    result = pruned([summary(run_id, agent="\x1b[31mred\u202e") for run_id in IDS[:3]], needs)
    text = pruned_text(result, done=False, width=120, color=False)
    assert text.endswith(
        "1 run would be removed.\n1 run stays: pinned in baseline.yaml\n"
        "1 run stays: needed by a baseline\n2 runs left.\n"
    )
    assert not {"\x1b", "\u202e"} & set(text)
    assert "1 run is removed." in pruned_text(result, done=True, width=120, color=False)
    nothing = PrunedRuns(gone=(), pinned=(), needed=(), left=0)
    assert pruned_text(nothing, done=True, width=80, color=False) == "Nothing to remove.\n0 runs left.\n"
