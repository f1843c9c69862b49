"""The stored runs of a history, and two of them side by side."""

import pyarrow as pa
import pytest

from passgate.tasks.commands.history import COLUMNS, run_before, run_named, stored_runs, task_differences
from passgate.tasks.errors import UsageError
from passgate.tasks.history.columns import rows, summary_schema, table_of
from passgate.tasks.history.summaries import summarised
from passgate.tasks.model.agent import AgentKind, AgentSpec
from passgate.tasks.reports.stored_runs import differences_table, stored_runs_table
from tests.builders import a_plan, a_run_id, a_task, trials_of

FIRST, SECOND, THIRD = (a_run_id(day) for day in ("20260101", "20260102", "20260103"))
TASK, OTHER = a_task(), a_task(task_id="other")


def summaries(*runs: tuple[str, dict[str, str]], agent: str = "my-agent") -> pa.Table:
    """Of each run the statuses of its tasks."""
    made = []
    for run_id, statuses in runs:
        plan = a_plan(run_id=run_id, agent=AgentSpec(kind=AgentKind.CLI, target=agent))
        tasks = [a_task(task_id=name) for name in statuses]
        trials = [trial for task in tasks for trial in trials_of(task, statuses[task.task_id], cost=0.5)]
        made.append(summarised(table_of(rows(trials, plan))))
    return pa.concat_tables(made).select(list(COLUMNS))


HISTORY = summaries(
    (SECOND, {"say-yes": "ppf", "other": "ppp"}), (FIRST, {"say-yes": "ppp", "old": "p"}), (THIRD, {"say-yes": "fff"})
)


def test_the_runs_of_a_history_are_listed_from_the_oldest_on() -> None:
    runs = stored_runs(HISTORY)
    assert [run.run_id for run in runs] == [FIRST, SECOND, THIRD]
    assert (runs[1].tasks, runs[1].passed, runs[1].measured, runs[1].cost) == (2, 5, 6, 3.0)
    assert stored_runs(summary_schema().empty_table().select(list(COLUMNS))) == ()


def test_a_run_is_named_by_its_beginning_or_as_the_last() -> None:
    runs = stored_runs(HISTORY)
    assert [run_named(runs, name).run_id for name in ("last", SECOND[:8])] == [THIRD, SECOND]
    with pytest.raises(UsageError, match="no run 'last'"):
        run_named((), "last")


@pytest.mark.parametrize(
    ("name", "problem"), [("2026", "3 runs whose ids begin"), ("x", "no run 'x'"), ("", "no run ''")]
)
def test_a_name_that_is_not_that_of_one_run_is_refused(name: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        run_named(stored_runs(HISTORY), name)


def test_the_run_before_is_another_one_of_the_same_gate_and_agent() -> None:
    of_a = summaries((FIRST, {"a": "p"}), (THIRD, {"a": "f"}))
    runs = stored_runs(pa.concat_tables([of_a, summaries((SECOND, {"a": "p"}), agent="b")]))
    assert run_before(runs, runs[2]).run_id == FIRST
    with pytest.raises(UsageError, match="no run of cli:b at ci_merge before"):
        run_before(runs, runs[1])


def test_the_tasks_that_differ_most_stand_first() -> None:
    first, second, third = stored_runs(HISTORY)
    told = task_differences(HISTORY, first, third)
    assert [(one.task_id, one.before, one.after) for one in told] == [
        ("say-yes", (3, 3), (0, 3)),
        ("old", (1, 1), None),
    ]
    text = differences_table(first, third, told, width=100, color=False)
    assert "2 tasks of 2 differ" in text
    assert "-100 points" in text
    assert "gone" in text
    assert "new" in differences_table(first, second, task_differences(HISTORY, first, second), width=100, color=False)


def test_hostile_text_is_escaped_and_what_is_empty_has_no_table() -> None:
    run = stored_runs(HISTORY)[1]
    hostile = run.model_copy(update={"agent": "\x1b[31mred\u202e", "git_branch": "::error::x"})
    assert not {"\x1b", "\u202e"} & set(stored_runs_table([hostile], width=140, color=False))
    assert stored_runs_table((), width=80, color=False) == "No runs.\n"
    text = differences_table(run, run, task_differences(HISTORY, run, run), width=100, color=False)
    assert text == f"{SECOND} -> {SECOND}: 0 tasks of 2 differ\n"
