"""The trials that a baseline is read from say of it what all trials of the history do."""

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from passgate.tasks.history.baseline import baseline_of, error_rates_of
from passgate.tasks.history.columns import rows, table_of
from passgate.tasks.history.encoding import encoded
from passgate.tasks.history.recent import recent_runs
from passgate.tasks.history.summaries import summarised
from passgate.tasks.history.telling_runs import SUMMARY_COLUMNS, rows_of_tasks, rows_with, telling_trials
from passgate.tasks.model.agent import AgentKind, AgentSpec
from passgate.tasks.model.baseline import Baseline, BaselineState
from passgate.tasks.model.run import Base, Plan, Revision
from passgate.tasks.model.trial import TrialStatus
from tests.builders import a_plan, a_policy, a_run_id, a_task, begun, trials_of
from tests.searches import costly

ONE, TWO, OTHER = (a_task(task_id=name, task_digest=name) for name in ("one", "two", "of-another-plan"))
OWN, NOP = AgentSpec(kind=AgentKind.CLI, target="my-agent"), AgentSpec(kind=AgentKind.NOP)
RECENT = 1
STATUSES = ("ppp", "ppp", "ppf", "pep", "f", "fff", "eee", "e")


def a_night(number: int, pooled: int = 2, **changes: object) -> Plan:
    run_id = a_run_id(f"{datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=number):%Y%m%d}")
    policy = a_policy()
    policy = policy.model_copy(update={"baseline": policy.baseline.model_copy(update={"runs": pooled})})
    plain: dict[str, object] = {"revision": Revision(branch="main"), "policy": policy}
    return a_plan(ONE, TWO, run_id=run_id, created_at=begun(run_id), **(plain | changes))


def a_run(plan: Plan, statuses: str = "ppp", models: Sequence[str] = ("m", "m", "m")) -> pa.Table:
    told = zip(trials_of(ONE, statuses), models, strict=False)
    return table_of(rows([trial.model_copy(update={"model": model}) for trial, model in told], plan))


def a_drawn_run(number: int, luck: random.Random) -> pa.Table:
    revision = Revision(
        branch=luck.choice(["main", "main", "x"]), commit=luck.choice("ab") * 40, dirty=luck.random() < 0.2
    )
    plan, trials = a_night(number, revision=revision, agent=luck.choice([OWN, NOP])), []
    for task in (ONE, TWO, OTHER):
        changes = {"task_digest": luck.choice(["old", task.task_digest, task.task_digest])}
        version = task.model_copy(update=changes | ({} if luck.randrange(5) else {"grader_digest": "other"}))
        of_task = trials_of(version, luck.choice(STATUSES)) if luck.randrange(4) else []
        if of_task and not luck.randrange(4):
            of_task.append(of_task[0].model_copy(update={"trial": 3, "status": TrialStatus.FAILED}))  # confirming
        trials += [one.model_copy(update={"model": luck.choice(["m", "m", "n", "m,n", ""])}) for one in of_task]
    return table_of(rows(trials, plan))


def told_by(plan: Plan, table: pa.Table, trials: pd.DataFrame, where: dict[str, str]) -> pd.DataFrame:
    """What is read of these trials by the summaries of a history; `trials` are those that can be read."""
    ids = [task.task_id for task in plan.tasks]
    summaries = rows_with(rows_of_tasks(encoded(summarised(table)).select(list(SUMMARY_COLUMNS)), plan.tasks), where)
    of_tasks = trials[trials["task_id"].isin(ids)]
    return telling_trials(plan, summaries, lambda runs: of_tasks[of_tasks["run_id"].isin(runs)], RECENT)


@costly
@given(st.integers(0, 10_000), st.integers(1, 9), st.integers(1, 3), st.booleans())
def test_the_trials_that_are_read_say_what_all_say(seed: int, nights: int, pooled: int, of_agent: bool) -> None:
    luck = random.Random(seed)
    table = pa.concat_tables([a_drawn_run(number, luck) for number in range(nights)])
    plan = a_night(nights - luck.randrange(2), pooled, base=Base(ancestors=luck.choice([(), ("a" * 40,)])))
    every = table.to_pandas()
    every = every[~every["run_id"].isin([run for run in every["run_id"].unique() if not luck.randrange(6)])]
    where = {"agent": str(plan.agent)} if of_agent else {}
    every = every[every["agent"] == str(plan.agent)] if of_agent else every
    read = told_by(plan, table, every, where)
    for models in (None, {ONE.name: {"n"}, TWO.name: {"m", "n"}}):
        baseline = baseline_of(plan, every, models)
        assert baseline_of(plan, read, models) == baseline
        rates = error_rates_of(baseline, every)
        assert error_rates_of(baseline, read) == {name: rate for name, rate in rates.items() if name != OTHER.name}
    recent = [recent_runs(trials, plan.run_id, RECENT) for trials in (every, read)] if of_agent else [{}, {}]
    assert all(recent[0].get(task.name) == recent[1].get(task.name) for task in plan.tasks)


def baseline_read(plan: Plan, table: pa.Table, models: Sequence[str] = (), without: Sequence[str] = ()) -> Baseline:
    every = table.to_pandas()
    every = every[(every["agent"] == str(plan.agent)) & ~every["run_id"].isin(list(without))]
    return baseline_of(plan, told_by(plan, table, every, {"agent": str(plan.agent)}), {ONE.name: models})


def test_a_task_that_was_never_measured_is_not_new_because_another_agent_ran_it_last() -> None:
    table = pa.concat_tables([a_run(a_night(0), "eee"), a_run(a_night(1, agent=NOP))])
    assert baseline_read(a_night(2), table).of(ONE.name).state is BaselineState.NONE


@pytest.mark.parametrize("lost", [1, 2])
def test_a_run_whose_trials_cannot_be_read_makes_room_for_an_older_one(lost: int) -> None:
    nights = [a_night(number) for number in range(4)]
    without = [night.run_id for night in nights[-lost:]]
    found = baseline_read(a_night(4), pa.concat_tables(map(a_run, nights)), without=without)
    assert found.runs == tuple(night.run_id for night in nights[2 - lost : 4 - lost])


def test_a_run_in_which_a_model_answered_no_measured_trial_makes_room_for_an_older_one() -> None:
    nights = [a_night(number, 1) for number in range(2)]
    table = pa.concat_tables([a_run(nights[0], "ffe", ("n", "n", "m")), a_run(nights[1], "ffe", ("m", "m", "n"))])
    assert baseline_read(a_night(2, 1), table, ["n"]).runs == (nights[0].run_id,)
