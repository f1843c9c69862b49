"""Which rows of a history are read for a baseline: those that it could not do without."""

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from passgate.tasks.history.baseline import ERROR_RATE_COLUMNS, baseline_of, error_rates_of
from passgate.tasks.history.columns import rows, table_of
from passgate.tasks.history.dataset import History
from passgate.tasks.history.recent import recent_runs
from passgate.tasks.model.agent import AgentKind, AgentSpec
from passgate.tasks.model.run import Base, Plan, Revision
from passgate.tasks.model.task import EvalTask, GateName, Metric, Scoring, Suite
from passgate.tasks.model.trial import TrialStatus
from passgate.tasks.model.verdict import Decision, Verdict
from passgate.tasks.planning.baseline import pooled_baseline, read_rows, read_telling_rows
from tests.builders import a_plan, a_policy, a_run_id, a_task, begun, trials_of, verdict_on

TASKS = tuple(a_task(task_id=name, task_digest=name) for name in ("one", "two", "of-another-plan"))
NOP = AgentSpec(kind=AgentKind.NOP)


def plan_at(night: int, **changes: object) -> Plan:
    run_id = a_run_id(f"{datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=night):%Y%m%d}")
    return a_plan(*TASKS[:2], **({"run_id": run_id, "created_at": begun(run_id)} | changes))


def pooling(runs: int) -> dict[str, object]:
    policy = a_policy()
    return {"policy": policy.model_copy(update={"baseline": policy.baseline.model_copy(update={"runs": runs})})}


def store(history: History, night: int, luck: random.Random) -> None:
    """A night of versions, models, branches and outcomes that are drawn; the last ones are hardly ever on main."""
    revision = Revision(
        branch="x" if night > 30 and luck.randrange(9) else "main",
        commit=luck.choice("ab") * 40,
        dirty=not luck.randrange(9),
    )
    plan = plan_at(night, revision=revision, **({} if luck.randrange(5) else {"agent": NOP}))
    trials = []
    for task in TASKS:
        version = task.model_copy(update={"task_digest": luck.choice(["old", *[task.task_digest] * 3])})
        statuses, model = "".join(luck.choices("pppfe-", k=3)), luck.choice(["m", "m", "m", "n,o"])
        if luck.randrange(5):
            update = {"model": model, "started_at": plan.created_at}
            trials += [one.model_copy(update=update) for one in trials_of(version, statuses)]
    if trials:
        history.write_run(plan.run_id, f"{plan.created_at:%Y-%m-%d}", table_of(rows(trials, plan)), {})


@pytest.mark.parametrize("seed", range(3))
def test_the_rows_that_are_read_say_what_all_rows_say(tmp_path: Path, seed: int) -> None:
    luck = random.Random(seed)
    history = History(str(tmp_path))
    for night in range(60):
        store(history, night, luck)
    ancestors = luck.choice([(), ("a" * 40,)])
    plan = plan_at(luck.randint(50, 60)).model_copy(update=pooling(9) | {"base": Base(ancestors=ancestors)})
    where = {"agent": str(plan.agent)}
    every = history.trials(where, ERROR_RATE_COLUMNS)
    read = read_telling_rows(plan, history, ERROR_RATE_COLUMNS, where).trials
    assert len(read) < len(every)
    for models in (None, {task.name: {"n"} for task in TASKS}):
        baselines = [baseline_of(plan, trials, models) for trials in (every, read)]
        assert baselines[0] == baselines[1]
        rates = [error_rates_of(baselines[0], trials) for trials in (every, read)]
        assert {name: rates[0][name] for name in rates[1]} == rates[1]
    of_tasks = [recent_runs(trials, plan.run_id) for trials in (every, read)]
    assert all(of_tasks[0].get(task.name) == of_tasks[1].get(task.name) for task in TASKS[:2])


def test_the_trials_of_runs_that_say_nothing_of_the_plan_are_not_opened(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    history = History(str(tmp_path))
    for night in range(27):
        plan = plan_at(night, revision=Revision(branch="main"))
        made = table_of(rows(trials_of(TASKS[0], "ppp"), plan))
        history.write_run(plan.run_id, f"{plan.created_at:%Y-%m-%d}", made, {})
    (tmp_path / f"trials/suite=golden/day=2026-01-01/{a_run_id('20260101')}.parquet").write_text("broken")
    earlier = read_telling_rows(plan_at(27), history, ERROR_RATE_COLUMNS)
    assert earlier.trials["run_id"].nunique() == 20
    assert not caplog.messages


OLD = a_task(task_id="old")
OTHER = a_task(task_id="other", task_digest="other")
POLICY = a_policy(suites=["golden"], blocks_on=["golden_regression", "task_failed"], admission={"passes": 17, "of": 20})


def nights_of(history: History, *tasks: tuple[EvalTask, str], nights: range = range(10)) -> None:
    for night in nights:
        plan = plan_at(night, revision=Revision(branch="main", commit="a" * 40))
        trials = [
            one.model_copy(update={"started_at": plan.created_at})
            for task, statuses in tasks
            for one in trials_of(task, statuses)
        ]
        history.write_run(plan.run_id, plan.day, table_of(rows(trials, plan)), {})


def now(history: Path, *tasks: EvalTask) -> Plan:
    plan = plan_at(30, policy=POLICY.model_copy(update={"history": str(history)}))
    return plan.model_copy(update={"tasks": tasks})


@pytest.mark.parametrize("name", [{"task_id": "new"}, {"suite": Suite.ADVERSARIAL}, {"file": "suites/golden/new.yaml"}])
def test_a_task_with_another_name_keeps_its_history_and_the_agent_that_breaks_then_fails(
    tmp_path: Path, name: dict[str, object]
) -> None:
    nights_of(History(str(tmp_path)), (OLD, "ppp"), (OTHER, "ppp"))
    new = OLD.model_copy(update=name)
    nights_of(History(str(tmp_path)), (new, "ppp"), (OTHER, "ppp"), nights=range(10, 12))
    plan = now(tmp_path, new, OTHER)
    baseline = pooled_baseline(plan, read_rows(plan))
    assert (baseline.of(new.name).n, len(baseline.of(new.name).newest)) == (36, 36)
    verdict = verdict_on(plan, POLICY, [*trials_of(new, "fff"), *trials_of(OTHER, "ppp")], baseline)
    assert (verdict.unarmed, verdict.not_admitted) == (0, ())
    assert verdict.decision is Decision.FAIL
    said = f"{new.name} keeps the history of {OLD.name}, which has the same inputs and graders"
    assert (said in verdict.notes) is (new.name != OLD.name)


@pytest.mark.parametrize(
    ("stored", "planned", "counted"),
    [
        # It is another task.
        ([(OLD, "ppp")], [a_task(task_id="new", task_digest="edited")], 0),
        ([(OLD, "ppp")], [a_task(task_id="new", grader_digest="others")], 0),
        # It is a copy of a task that is still there.
        ([(OLD, "ppp")], [a_task(task_id="new"), OLD], 0),
        # A run that has it under several names has it once.
        ([(OLD, "fff"), (a_task(task_id="new"), "ppp")], [a_task(task_id="new")], 30),
        ([(OLD, "ppp"), (a_task(task_id="older"), "fff")], [a_task(task_id="new")], 30),
    ],
)
def test_only_the_task_itself_lends_its_history_and_once(
    tmp_path: Path, stored: list[tuple[EvalTask, str]], planned: list[EvalTask], counted: int
) -> None:
    nights_of(History(str(tmp_path)), *stored)
    plan = now(tmp_path, *planned)
    found = pooled_baseline(plan, read_rows(plan))
    assert (found.of("golden/new").passed, found.of("golden/new").n) == (counted, counted)


MEAN = a_task(task_id="mean", task_digest="mean", metric=Metric.MEAN, scoring=Scoring(threshold=0.6))
ONCE = a_task(task_id="once", task_digest="once", metric=Metric.PASS_AT_K)
COMMIT = Revision(branch="x", commit="c" * 40)


def repeated(
    tmp_path: Path, *runs: Sequence[tuple[EvalTask, str]], now: Revision = COMMIT, **of_runs: object
) -> Verdict:
    """The verdict on a run after others of the same commit."""
    for night, tasks in enumerate(runs):
        plan = plan_at(night, **({"revision": COMMIT} | of_runs))
        made = [one for task, statuses in tasks for one in trials_of(task, statuses)]
        scored = [
            one.model_copy(update={"started_at": plan.created_at, "score": float(one.status is TrialStatus.PASSED)})
            for one in made
        ]
        History(str(tmp_path)).write_run(plan.run_id, plan.day, table_of(rows(scored, plan)), {})
    plan = plan_at(30, policy=POLICY.model_copy(update={"history": str(tmp_path)}), revision=now)
    plan = plan.model_copy(update={"tasks": (OTHER, MEAN, ONCE)})
    trials = [one for task in plan.tasks for one in trials_of(task, "p" * task.k)]
    return verdict_on(plan, POLICY, trials, pooled_baseline(plan, read_rows(plan), trials))


@pytest.mark.parametrize(
    ("task", "statuses", "is_red"),
    [
        (OTHER, "ppp", False),
        (OTHER, "ppf", True),
        (OTHER, "pfe", True),  # Whatever the error would have been
        (OTHER, "ppe", False),
        (MEAN, "ppf", False),
        (MEAN, "pff", True),
        (ONCE, "ffp", False),
        (ONCE, "fff", True),
    ],
)
def test_a_verdict_tells_what_earlier_runs_of_its_commit_were(
    tmp_path: Path, task: EvalTask, statuses: str, is_red: bool
) -> None:
    verdict = repeated(tmp_path, [(OTHER, "ppp")], [(task, statuses)])
    assert [one.failed for one in verdict.repeats] == [(), (task.name,) if is_red else ()]
    said = f"; red before, in 1 of 2 earlier runs: {task.name}" if is_red else "; no task failed before"
    assert verdict.notes[0] == f"run 3 of this commit{said}"


@pytest.mark.parametrize(
    "others",
    [
        {"revision": Revision(branch="x", commit="d" * 40)},
        {"revision": COMMIT.model_copy(update={"dirty": True})},
        {"now": COMMIT.model_copy(update={"dirty": True})},
        {"agent": NOP},
        {"gate": GateName.NIGHTLY},
    ],
)
def test_runs_of_something_else_are_no_repeats(tmp_path: Path, others: dict[str, Any]) -> None:
    if "gate" in others:
        others = others | {"run_id": a_run_id("20260101", gate=GateName.NIGHTLY)}
    verdict = repeated(tmp_path, [(OTHER, "fff")], **others)
    assert verdict.repeats == ()
    assert not any("of this commit" in note for note in verdict.notes)
