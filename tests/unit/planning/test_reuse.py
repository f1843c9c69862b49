"""Trials of earlier runs that stand for a run's own, from real Parquet."""

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from passgate.tasks.errors import StorageError
from passgate.tasks.history.dataset import History
from passgate.tasks.model.agent import AgentKind, AgentSpec
from passgate.tasks.model.grade import ViolationRule
from passgate.tasks.model.policy import Policy
from passgate.tasks.model.run import Plan, Revision, RunRequest
from passgate.tasks.model.task import EvalTask, GateName, Metric, SequentialTest, Suite
from passgate.tasks.model.transcript import Transcript
from passgate.tasks.model.trial import FinishedTrial, TrialMetrics, TrialStatus
from passgate.tasks.planning.reuse import reusable
from passgate.tasks.record import record
from tests.builders import STARTED, a_grade, a_plan, a_policy, a_run_id, a_task, a_trial, a_violation, begun

REUSE = {"agent_files": ["src/*"], "max_age_days": 7}
TASK, OTHER = a_task(), a_task(task_id="other")
LETTERS = {
    "p": TrialStatus.PASSED,
    "f": TrialStatus.FAILED,
    "e": TrialStatus.ERROR,
    "n": TrialStatus.NOT_RUN,
}


def policy(**changes: Any) -> Policy:
    return a_policy(**{"reuse": REUSE, "curtailment": False} | changes)


def the_plan(*tasks: EvalTask, **changes: Any) -> Plan:
    """A run that comes after all others."""
    plain = {"run_id": a_run_id("20260201"), "policy": policy(), "agent_digest": "a" * 64, "created_at": STARTED}
    return a_plan(*(tasks or (TASK,)), **(plain | changes))


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History(str(tmp_path / "history"))


def run(history: History, day: str, statuses: str, task: EvalTask = TASK, *, trial: Any = None, **changes: Any) -> Plan:
    """Store an earlier run of one task: one trial per letter, `-` for one that is not there."""
    run_id = a_run_id(day, gate=changes.get("gate", GateName.CI_MERGE))
    of_run = {"run_id": run_id, "created_at": begun(run_id), "request": RunRequest(history=history.location)}
    plan = the_plan(task, **(of_run | changes))
    trials = [
        a_trial(task, number, LETTERS[letter], **(trial or {}))
        for number, letter in enumerate(statuses)
        if letter != "-"
    ]
    record(plan, [FinishedTrial(trial=one, transcript=Transcript(output="yes")) for one in trials])
    return plan


def reused(plan: Plan, history: History) -> list[FinishedTrial]:
    return reusable(plan.model_copy(update={"request": RunRequest(history=history.location)}))


def shown(finished: Sequence[FinishedTrial]) -> list[tuple[str, int, str, str]]:
    return [(one.trial.task_id, one.trial.trial, str(one.trial.status), one.trial.reused_from) for one in finished]


def statuses(finished: Sequence[FinishedTrial]) -> str:
    return "".join(str(one.trial.status)[0] for one in finished)


def test_a_run_of_the_same_stands_for_this_one(history: History) -> None:
    run(history, "20260130", "ppp")
    assert shown(reused(the_plan(), history)) == [
        ("say-yes", 0, "passed", a_run_id("20260130")),
        ("say-yes", 1, "passed", a_run_id("20260130")),
        ("say-yes", 2, "passed", a_run_id("20260130")),
    ]


def test_a_failed_task_is_not_run_again_until_it_passes(history: History) -> None:
    run(history, "20260130", "pfp")
    assert statuses(reused(the_plan(), history)) == "pfp"


def test_confirming_trials_come_with_the_others(history: History) -> None:
    run(history, "20260130", "pfpppefp")
    found = reused(the_plan(), history)
    assert [(one.trial.trial, str(one.trial.status)) for one in found] == [
        *((0, "passed"), (1, "failed"), (2, "passed")),
        *((3, "passed"), (4, "passed"), (6, "failed"), (7, "passed")),
    ]


def test_trials_come_back_as_they_were(history: History) -> None:
    metrics = TrialMetrics(tokens_in=3, cost=0.25, wall_time_seconds=1.5)
    grades = (a_grade(votes=(0.5, 1.0)), a_grade(name="judge", error="no judge"), a_grade(name="tests", passed=False))
    changes = {
        "metrics": metrics,
        "grades": grades,
        "score": 0.5,
        "model": "gpt-5",
        "attempts": 2,
        "file": "old.yaml",
        "line": 99,
    }
    run(history, "20260130", "fff", trial=changes)
    first = reused(the_plan(), history)[0]
    expected = a_trial(TASK, 0, TrialStatus.FAILED, **changes).model_copy(
        update={
            "reused_from": a_run_id("20260130"),
            "grades": tuple(grade.model_copy(update={"checks": ()}) for grade in grades),
            "file": TASK.file,
            "line": TASK.line,
        }
    )
    assert first.trial == expected
    assert first.transcript == Transcript()


def test_what_was_not_measured_is_not_measured(history: History) -> None:
    run(history, "20260130", "ppp")
    first = reused(the_plan(), history)[0].trial
    assert first.metrics == TrialMetrics()
    assert first.score is None
    assert first.grades == ()


def test_violations_stay_vetoes(history: History) -> None:
    violations = (a_violation(), a_violation(ViolationRule.FORBIDDEN_TOOL, "forbidden tool called: rm: all"))
    run(history, "20260130", "fff", trial={"grades": (a_grade(passed=False, violations=violations),)})
    first = reused(the_plan(), history)[0].trial
    assert first.violations == violations
    assert [grade.name for grade in first.grades] == ["answer", "violations"]
    assert first.judge_cost is None


def test_nothing_is_reused_unless_the_policy_asks_for_it(history: History) -> None:
    without = policy(reuse=None)
    run(history, "20260130", "ppp", policy=without)
    assert reused(the_plan(policy=without), history) == []


def test_nothing_is_reused_of_an_agent_that_is_not_known(history: History) -> None:
    run(history, "20260130", "ppp", agent_digest="")
    assert reused(the_plan(agent_digest=""), history) == []


def test_an_empty_history_has_nothing(history: History) -> None:
    assert reused(the_plan(), history) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"agent_digest": "b" * 64},
        {"agent": AgentSpec(kind=AgentKind.CLI, target="another")},
        {"policy": policy(curtailment=True)},
        {"policy": policy().model_copy(update={"error_retries": 9})},
        {"gate": GateName.NIGHTLY},
        {"passgate_version": "0.0.2"},
    ],
)
def test_only_runs_of_the_same_kind_count(history: History, changes: dict[str, Any]) -> None:
    run(history, "20260130", "ppp", **changes)
    assert reused(the_plan(), history) == []


@pytest.mark.parametrize(
    "change",
    [
        {"task_digest": "another"},
        {"grader_digest": "another"},
        {"k": 2},
        {"metric": Metric.PASS_AT_K},
        {"suite": Suite.FAILURE_REPLAYS},
        {"task_id": "another"},
    ],
)
def test_only_runs_of_the_same_task_count(history: History, change: dict[str, Any]) -> None:
    run(history, "20260130", "ppp", a_task(**change))
    assert reused(the_plan(), history) == []


@pytest.mark.parametrize("revision", [Revision(branch="feature"), Revision(branch="main", dirty=True), Revision()])
def test_any_branch_counts(history: History, revision: Revision) -> None:
    run(history, "20260130", "ppp", revision=revision)
    assert statuses(reused(the_plan(), history)) == "ppp"


def test_the_newest_run_speaks(history: History) -> None:
    run(history, "20260129", "ppp")
    run(history, "20260130", "ppf")
    run(history, "20260128", "ppp")
    assert {one.trial.reused_from for one in reused(the_plan(), history)} == {a_run_id("20260130")}


@pytest.mark.parametrize("run_id", ["20260201", "20260202"])
def test_only_earlier_runs_count(history: History, run_id: str) -> None:
    run(history, run_id, "ppp")
    assert reused(the_plan(), history) == []


@pytest.mark.parametrize(
    ("age", "is_reused"), [(timedelta(days=7), True), (timedelta(days=7, seconds=1), False), (timedelta(0), True)]
)
def test_a_verdict_grows_too_old(history: History, age: timedelta, is_reused: bool) -> None:
    run(history, "20260130", "ppp")
    assert bool(reused(the_plan(created_at=STARTED + age), history)) is is_reused


def test_a_verdict_is_as_old_as_its_oldest_trial(history: History) -> None:
    run_id = a_run_id("20260129")
    plan = the_plan(run_id=run_id, created_at=begun(run_id), request=RunRequest(history=history.location))
    trials = [a_trial(TASK, number, started_at=STARTED - timedelta(days=number)) for number in range(3)]
    record(plan, [FinishedTrial(trial=one, transcript=Transcript()) for one in trials])
    assert reused(the_plan(created_at=STARTED + timedelta(days=5)), history)
    assert not reused(the_plan(created_at=STARTED + timedelta(days=5, seconds=1)), history)


@pytest.mark.parametrize("incomplete", ["ppe", "ppn", "pp-", "ffe", "pf-", "-pp", "pp-p"])
def test_a_run_that_did_not_measure_every_trial_does_not_stand(history: History, incomplete: str) -> None:
    run(history, "20260130", incomplete)
    assert reused(the_plan(), history) == []


@pytest.mark.parametrize("incomplete", ["fee", "ppe", "pnn"])
def test_a_run_that_measured_something_hides_what_is_older(history: History, incomplete: str) -> None:
    """It may have begun to fail: what was green before says nothing any more."""
    run(history, "20260129", "ppp")
    run(history, "20260130", incomplete)
    assert reused(the_plan(), history) == []


@pytest.mark.parametrize("unmeasured", ["eee", "nnn", "een"])
def test_a_run_that_measured_nothing_hides_nothing(history: History, unmeasured: str) -> None:
    run(history, "20260129", "ppp")
    run(history, "20260130", unmeasured)
    assert {one.trial.reused_from for one in reused(the_plan(), history)} == {a_run_id("20260129")}


@pytest.mark.parametrize(
    ("metric", "trials", "found"),
    [
        (Metric.PASS_HAT_K, "fnn", "f"),
        (Metric.PASS_HAT_K, "pf-", "pf"),
        (Metric.PASS_HAT_K, "ppn", ""),
        (Metric.PASS_HAT_K, "fen", ""),
        (Metric.PASS_HAT_K, "fnne", "f"),
        (Metric.PASS_AT_K, "pnn", "p"),
        (Metric.PASS_AT_K, "ffn", ""),
    ],
)
def test_where_trials_are_left_out_what_decided_stands(
    history: History, metric: Metric, trials: str, found: str
) -> None:
    """Else a red task that ended at its first failure would be run again until it is green."""
    task, curtailed = a_task(metric=metric), policy(curtailment=True)
    run(history, "20260130", trials, task, policy=curtailed)
    assert statuses(reused(the_plan(task, policy=curtailed), history)) == found


@pytest.mark.parametrize(
    ("trials", "found"), [("ffffnnnnnn", "ffff"), ("fpppnnnnnn", ""), ("f" + "p" * 9, "f" + "p" * 9)]
)
def test_a_sequential_test_decides_in_its_own_way(history: History, trials: str, found: str) -> None:
    task = a_task(k=10, sequential=SequentialTest(accept=0.95, reject=0.5))
    run(history, "20260130", trials, task)
    assert statuses(reused(the_plan(task), history)) == found


def test_scores_decide_where_they_are_what_counts(history: History) -> None:
    task, curtailed = a_task(metric=Metric.MEAN), policy(curtailment=True)
    run(history, "20260130", "ffn", task, policy=curtailed, trial={"score": 0.1})
    assert statuses(reused(the_plan(task, policy=curtailed), history)) == "ff"
    high = a_task(metric=Metric.MEAN, task_digest="other")
    run(history, "20260131", "ppn", high, policy=curtailed, trial={"score": 0.9})
    assert statuses(reused(the_plan(high, policy=curtailed), history)) == ""


def test_every_task_has_its_own_run_and_the_plan_its_order(history: History) -> None:
    run(history, "20260129", "ppp")
    run(history, "20260130", "fff", OTHER)
    found = reused(the_plan(OTHER, TASK, a_task(task_id="new")), history)
    assert [(one.trial.task_id, one.trial.reused_from) for one in found] == [
        *[("other", a_run_id("20260130"))] * 3,
        *[("say-yes", a_run_id("20260129"))] * 3,
    ]


def test_what_was_reused_is_not_reused_again(history: History) -> None:
    """So that a verdict grows old however often it is reused."""
    run(history, "20260129", "ppp")
    run_id = a_run_id("20260130")
    plan = the_plan(run_id=run_id, created_at=begun(run_id), request=RunRequest(history=history.location))
    record(plan, reused(plan, history))
    assert {one.trial.reused_from for one in reused(the_plan(), history)} == {a_run_id("20260129")}


@pytest.mark.parametrize(
    "broken",
    [{"status": "passed", "violations": ["sabotage: x"]}, {"reason": None}, {"grades": None}, {"attempts": None}],
)
def test_rows_that_are_not_ours_are_a_storage_error(history: History, broken: dict[str, Any]) -> None:
    run(history, "20260130", "ppp")
    (file,) = Path(history.location, "trials").rglob("*.parquet")
    table = pq.ParquetFile(file).read()
    rows = [row | broken for row in table.to_pylist()]
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), file)
    with pytest.raises(StorageError, match="holds rows that are not passgate's"):
        reused(the_plan(), history)
