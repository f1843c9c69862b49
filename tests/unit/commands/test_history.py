"""The stored runs of a history, and two of them side by side."""

from pathlib import Path

import pytest

from passgate.tasks.commands.history import compare_runs, run_details, run_named, stored_runs
from passgate.tasks.errors import UsageError
from passgate.tasks.history.columns import summary_schema, trials_table
from passgate.tasks.history.dataset import History
from passgate.tasks.model.agent import AgentKind, AgentSpec
from passgate.tasks.reports.stored_runs import differences_table, stored_runs_table
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


def test_the_runs_of_a_history_are_listed_from_the_oldest_on(history: History) -> None:
    runs = stored_runs(history.summaries())
    assert [run.run_id for run in runs] == [FIRST, SECOND, THIRD]
    assert (runs[1].tasks, runs[1].passed, runs[1].measured, runs[1].cost) == (2, 5, 6, 3.0)
    assert stored_runs(summary_schema().empty_table()) == ()


def test_a_run_is_named_by_its_beginning_or_as_the_last() -> None:
    runs = [FIRST, SECOND, THIRD]
    assert [run_named(runs, name) for name in ("last", SECOND[:8], SECOND)] == [THIRD, SECOND, SECOND]
    with pytest.raises(UsageError, match="no run 'last'"):
        run_named((), "last")


@pytest.mark.parametrize(
    ("name", "problem"), [("2026", "3 runs whose ids begin"), ("x", "no run 'x'"), ("", "no run ''")]
)
def test_a_name_that_is_not_that_of_one_run_is_refused(name: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        run_named([FIRST, SECOND, THIRD], name)


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


def test_hostile_text_is_escaped_and_what_is_empty_has_no_table(history: History) -> None:
    run = stored_runs(history.summaries())[1]
    hostile = run.model_copy(update={"agent": "\x1b[31mred\u202e", "git_branch": "::error::x"})
    assert not {"\x1b", "\u202e"} & set(stored_runs_table([hostile], width=140, color=False))
    assert stored_runs_table((), width=80, color=False) == "No runs.\n"
    text = differences_table(*compare_runs(history, SECOND, SECOND), width=100, color=False)
    assert text == f"{SECOND} -> {SECOND}: 0 tasks of 2 differ\n"
