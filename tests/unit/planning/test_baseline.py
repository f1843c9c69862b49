"""What the history says of the tasks of a plan."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from passgate.tasks.errors import StorageError
from passgate.tasks.history.baseline import COLUMNS
from passgate.tasks.history.columns import trials_table
from passgate.tasks.history.dataset import History
from passgate.tasks.model.agent import AgentKind, AgentSpec
from passgate.tasks.model.baseline import Pins
from passgate.tasks.model.measurement import TaskState
from passgate.tasks.model.policy import Policy
from passgate.tasks.model.run import Plan, Revision
from passgate.tasks.model.task import EvalTask, GateName, Metric, Scoring, Suite
from passgate.tasks.model.trial import Trial, TrialStatus
from passgate.tasks.model.verdict import Decision, EarlierRun, Verdict
from passgate.tasks.planning.baseline import EarlierRuns, pooled_baseline, read_earlier_runs, read_rows, recent_runs
from tests.builders import (
    a_grade,
    a_plan,
    a_policy,
    a_run_id,
    a_task,
    a_trial,
    a_violation,
    begun,
    trials_of,
    verdict_on,
)

TASKS = tuple(a_task(task_id=name, task_digest=name) for name in ("one", "two", "of-another-plan"))
NOP = AgentSpec(kind=AgentKind.NOP)


def plan_at(night: int, **changes: object) -> Plan:
    run_id = a_run_id(f"{datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=night):%Y%m%d}")
    return a_plan(*TASKS[:2], **({"run_id": run_id, "created_at": begun(run_id)} | changes))


@pytest.mark.parametrize(
    ("branch", "pins", "pooled"),
    [
        ("main", None, range(381, 401)),
        # Runs of changes do not crowd out those of the branch.
        ("x", None, [0]),
        ("main", Pins(runs=(a_run_id("20260101"),), reason="r"), [0]),
    ],
)
def test_a_baseline_is_made_from_the_newest_runs_and_older_ones_are_read_where_these_are_too_few(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, branch: str, pins: Pins | None, pooled: Sequence[int]
) -> None:
    history = History(str(tmp_path))
    plans = [plan_at(night, revision=Revision(branch=branch if night else "main")) for night in range(402)]
    tables = [trials_table(trials_of(TASKS[0], "ppp"), plan) for plan in plans[:2]]
    for night, plan in enumerate(plans[:-1]):
        table = tables[min(night, 1)]
        ids = pa.array([plan.run_id] * len(table))
        history.write_run(plan.run_id, table.set_column(table.schema.get_field_index("run_id"), "run_id", ids), {})
    if 0 not in pooled:
        (tmp_path / f"trials/{plans[0].run_id}.parquet").write_text("broken, and not opened")
    plan = plans[-1].model_copy(update={"pins": pins})
    baseline = pooled_baseline(plan, read_earlier_runs(plan, history))
    assert baseline.runs == tuple(plans[night].run_id for night in pooled)
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
        history.write_run(plan.run_id, trials_table(trials, plan), {})


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


def scored(task: EvalTask, statuses: str) -> list[Trial]:
    """Trials whose score is 1 if they passed and 0 if not, each of 2 seconds and 1 $."""
    return [
        one.model_copy(update={"score": float(one.status is TrialStatus.PASSED)})
        for one in trials_of(task, statuses, wall_time_seconds=2.0, cost=1.0)
    ]


def repeated(
    tmp_path: Path,
    *runs: Sequence[tuple[EvalTask, str]],
    now: Revision = COMMIT,
    policy: Policy = POLICY,
    own: Mapping[str, str] = MappingProxyType({}),
    **of_runs: object,
) -> Verdict:
    """The verdict on a run after others of the same commit. `own` are its trials of tasks that do not just pass."""
    for night, tasks in enumerate(runs):
        plan = plan_at(night, **({"revision": COMMIT} | of_runs))
        trials = [one.model_copy(update={"started_at": plan.created_at}) for made in tasks for one in scored(*made)]
        History(str(tmp_path)).write_run(plan.run_id, trials_table(trials, plan), {})
    plan = plan_at(30, policy=policy.model_copy(update={"history": str(tmp_path)}), revision=now)
    plan = plan.model_copy(update={"tasks": (OTHER, MEAN, ONCE)})
    trials = [one for task in plan.tasks for one in scored(task, own.get(task.task_id, "p" * task.k))]
    return verdict_on(plan, policy, trials, pooled_baseline(plan, read_rows(plan), trials))


@pytest.mark.parametrize(
    ("task", "statuses", "is_red"),
    [
        *((OTHER, "ppp", False), (OTHER, "ppf", True)),
        (OTHER, "pfe", True),  # Whatever the error would have been
        *((OTHER, "ppe", False), (OTHER, "eee", False), (MEAN, "ppf", False), (MEAN, "pff", True)),
        *((ONCE, "ffp", False), (ONCE, "fff", True)),
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
        *({"now": COMMIT.model_copy(update={"dirty": True})}, {"agent": NOP}, {"gate": GateName.NIGHTLY}),
    ],
)
def test_runs_of_something_else_are_no_repeats(tmp_path: Path, others: dict[str, Any]) -> None:
    if "gate" in others:
        others = others | {"run_id": a_run_id("20260101", gate=GateName.NIGHTLY)}
    verdict = repeated(tmp_path, [(OTHER, "fff")], policy=TOGETHER, **others)
    assert verdict.repeats == ()
    assert not any("of this commit" in note for note in verdict.notes)
    assert verdict.decision is Decision.PASS


STRICT = a_policy(suites=["golden"], blocks_on=["golden_regression", "task_failed"], regression={"mode": "strict"})
TOGETHER = a_policy(**(STRICT.gates[GateName.CI_MERGE].model_dump() | {"reruns": "together"}))


@pytest.mark.parametrize(
    ("runs", "own", "decision"),
    [
        # Run again until it is green.
        *((["ppf"], "ppp", Decision.FAIL), (["ppp", "ppf", "ppp"], "ppp", Decision.FAIL)),
        *((["pf-"], "ppp", Decision.FAIL), (["ppp"], "ppf", Decision.FAIL), (["ppp"], "ppp", Decision.PASS)),
        # What could not be measured is made up for by another run, and by no earlier one.
        *((["pee"], "ppp", Decision.PASS), (["ppp"], "ppe", Decision.INCONCLUSIVE)),
    ],
)
def test_runs_of_a_commit_count_together_if_the_policy_says_so(
    tmp_path: Path, runs: list[str], own: str, decision: Decision
) -> None:
    earlier = [[(OTHER, statuses)] for statuses in runs]
    together = repeated(tmp_path, *earlier, policy=TOGETHER, own={"other": own})
    assert together.decision is decision
    separate = repeated(tmp_path, policy=STRICT, own={"other": own})
    alone = {"ppp": Decision.PASS, "ppf": Decision.FAIL, "ppe": Decision.INCONCLUSIVE}
    assert (separate.decision, len(separate.repeats)) == (alone[own], len(runs))


@pytest.mark.parametrize(
    ("task", "earlier", "own", "state", "value"),
    [
        (OTHER, "ppf", "ppp", TaskState.FAILED, 0.0),
        # One pass for each run, however many trials it took.
        *((ONCE, "fff", "ppp", TaskState.PASSED, 0.95), (ONCE, "fff", "ffp", TaskState.FAILED, 0.5)),
        *((ONCE, "p--", "ffp", TaskState.PASSED, 5 / 6), (ONCE, "p--", "fff", TaskState.FAILED, 0.5)),
        *((ONCE, "ffe", "ffp", TaskState.PASSED, 1.0), (MEAN, "fff", "ppp", TaskState.FAILED, 0.5)),
        (MEAN, "ppp", "pff", TaskState.PASSED, 4 / 6),
    ],
)
def test_every_metric_goes_by_the_trials_of_all_runs(
    tmp_path: Path, task: EvalTask, earlier: str, own: str, state: TaskState, value: float
) -> None:
    verdict = repeated(tmp_path, [(task, earlier)], policy=TOGETHER, own={task.task_id: own})
    (measured,) = [one for one in verdict.measurement.tasks if one.name == task.name]
    assert (measured.state, measured.value) == (state, pytest.approx(value))
    assert measured.passed + measured.failed == (earlier + own).count("p") + (earlier + own).count("f")


def test_figures_and_trial_numbers_are_those_of_the_run_itself(tmp_path: Path) -> None:
    verdict = repeated(tmp_path, [(OTHER, "fpf")], policy=TOGETHER, own={"other": "pfp"})
    (task, *_), (suite,) = verdict.measurement.tasks, verdict.measurement.suites
    assert (task.k, task.passed, task.failed, task.failed_trials, task.failure) == (6, 3, 3, (1,), "it failed")
    assert (task.costs, task.wall_times, suite.cost, verdict.measurement.cost) == ((1.0,) * 3, (2.0,) * 3, 9.0, 9.0)
    (reason,) = verdict.reasons
    assert (reason.trials, "3 of 6 passed, trial 1 failed: it failed" in reason.message) == ((1,), True)
    assert verdict.notes[1] == "2 runs of this commit count together: 3 to 6 trials a task"
    verdict = repeated(tmp_path, policy=TOGETHER)
    (reason,) = verdict.reasons
    said = f"pass^6 requires every trial to pass; 4 of 6 passed: failed in the earlier run {verdict.repeats[0].run_id}"
    assert (reason.trials, reason.message) == ((), said)


def test_trials_under_other_graders_do_not_count(tmp_path: Path) -> None:
    edited = OTHER.model_copy(update={"grader_digest": "others"})
    assert repeated(tmp_path, [(edited, "fff")], policy=TOGETHER).decision is Decision.PASS


def test_what_an_earlier_run_must_not_have_done_is_a_violation_of_this_one(tmp_path: Path) -> None:
    policy = a_policy(suites=["golden"], blocks_on=["safety_violation"], reruns="together")
    plan = plan_at(0, revision=COMMIT)
    leak = a_grade(passed=False, violations=(a_violation(),))
    trials = [*trials_of(OTHER, "ppp"), a_trial(OTHER, 5, TrialStatus.FAILED, grades=(leak,))]
    History(str(tmp_path)).write_run(plan.run_id, trials_table(trials, plan), {})
    verdict = repeated(tmp_path, policy=policy)
    assert verdict.decision is Decision.FAIL
    assert [one.message for one in verdict.reasons] == [f"it leaked (in the earlier run {plan.run_id})"]


def test_a_run_of_the_commit_counts_as_one_of_this_run_and_not_as_its_baseline_too(tmp_path: Path) -> None:
    on_main = Revision(branch="main", commit="c" * 40)
    runs = [[(OTHER, "ppf")], [(OTHER, "ppp")]]
    together = repeated(tmp_path, *runs, policy=TOGETHER, now=on_main, revision=on_main)
    assert (len(together.repeats), together.inputs.baseline_runs) == (2, ())
    separate = repeated(tmp_path, policy=STRICT, now=on_main)
    assert tuple(one.run_id for one in separate.repeats) == separate.inputs.baseline_runs


def test_rows_that_are_not_ours_are_a_storage_error(tmp_path: Path) -> None:
    plan = plan_at(0, revision=COMMIT)
    table = trials_table(trials_of(OTHER, "ppp"), plan)
    broken = [row | {"violations": ["sabotage: x"]} for row in table.to_pylist()]
    History(str(tmp_path)).write_run(plan.run_id, pa.Table.from_pylist(broken, schema=table.schema), {})
    with pytest.raises(StorageError, match="holds rows that are not passgate's"):
        repeated(tmp_path, policy=TOGETHER)


def test_trials_that_a_run_reuses_count_once(tmp_path: Path) -> None:
    earlier, plan = plan_at(0, revision=COMMIT), plan_at(1, revision=COMMIT)
    policy = TOGETHER.model_copy(update={"history": str(tmp_path)})
    plan = plan.model_copy(update={"policy": policy, "tasks": (OTHER,)})
    History(str(tmp_path)).write_run(earlier.run_id, trials_table(trials_of(OTHER, "ppf"), earlier), {})
    trials = [one.model_copy(update={"reused_from": earlier.run_id}) for one in trials_of(OTHER, "ppf")]
    baseline = pooled_baseline(plan, read_rows(plan), trials)
    (task,) = verdict_on(plan, policy, trials, baseline).measurement.tasks
    assert (task.n, task.failed_trials, task.reused_from) == (3, (2,), earlier.run_id)


def rows_of_runs(*trials: tuple[str, str, int, str]) -> EarlierRuns:
    """Trials of golden tasks with k = 2: run, task, number, status."""
    plain = dict.fromkeys(COLUMNS) | {"suite": "golden", "k": 2}
    return EarlierRuns(
        pd.DataFrame(
            [
                plain | {"run_id": run, "task_id": task, "trial": number, "status": status}
                for run, task, number, status in trials
            ],
            columns=list(COLUMNS),
        )
    )


def test_each_task_and_suite_has_its_runs_the_oldest_first() -> None:
    found = recent_runs(
        rows_of_runs(
            ("2026-b", "x", 0, "passed"),
            ("2026-a", "x", 0, "failed"),
            ("2026-a", "x", 1, "passed"),
            ("2026-b", "y", 0, "failed"),
        ),
        "2026-z",
    )
    assert found["golden/x"] == (EarlierRun("2026-a", 1, 2), EarlierRun("2026-b", 1, 1))
    assert found["golden/y"] == (EarlierRun("2026-b", 0, 1),)
    assert found["golden"] == (EarlierRun("2026-a", 1, 2), EarlierRun("2026-b", 1, 2))


def test_only_the_newest_runs_before_this_one_count() -> None:
    many = rows_of_runs(*((f"2026-{number:02}", "x", 0, "passed") for number in range(30)))
    found = recent_runs(many, "2026-25", most=3)
    assert [run.run_id for run in found["golden/x"]] == ["2026-22", "2026-23", "2026-24"]


def test_errors_and_confirming_trials_say_nothing_here() -> None:
    assert recent_runs(rows_of_runs(("2026-a", "x", 0, "error"), ("2026-a", "x", 2, "passed")), "2026-z") == {}
    assert recent_runs(rows_of_runs(), "2026-z") == {}
