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
from passgate.tasks.model.task import EvalTask, GateName, Metric, Suite
from passgate.tasks.model.transcript import Transcript
from passgate.tasks.model.trial import FinishedTrial, TrialMetrics, TrialStatus
from passgate.tasks.planning.baseline import reusable_trials
from passgate.tasks.record import record
from tests.builders import STARTED, a_grade, a_plan, a_policy, a_run_id, a_task, a_trial, a_violation, begun

REUSE = {"agent_files": ["src/*"], "max_age_days": 7}
TASK, OTHER = a_task(), a_task(task_id="other")
LETTERS = {"p": TrialStatus.PASSED, "f": TrialStatus.FAILED, "e": TrialStatus.ERROR, "n": TrialStatus.NOT_RUN}


def policy(**changes: Any) -> Policy:
    return a_policy(**{"reuse": REUSE, "curtailment": False} | changes)


def the_plan(*tasks: EvalTask, **changes: Any) -> Plan:
    """A run that comes after all others."""
    plain = {"run_id": a_run_id("20260201"), "policy": policy(), "agent_digest": "a" * 64, "created_at": STARTED}
    return a_plan(*(tasks or (TASK,)), **(plain | changes))


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History(str(tmp_path / "history"))


def earlier(history: History, day: str, task: EvalTask = TASK, **changes: Any) -> Plan:
    """The plan of an earlier run of one task."""
    run_id = a_run_id(day, gate=changes.get("gate", GateName.CI_MERGE))
    request = RunRequest(history=history.location)
    return the_plan(task, **({"run_id": run_id, "created_at": begun(run_id), "request": request} | changes))


def run(history: History, day: str, statuses: str, task: EvalTask = TASK, *, trial: Any = None, **changes: Any) -> None:
    """Store an earlier run of one task: one trial per letter, `-` for one that is not there."""
    trials = [
        a_trial(task, number, LETTERS[letter], **(trial or {}))
        for number, letter in enumerate(statuses)
        if letter != "-"
    ]
    finished = [FinishedTrial(trial=one, transcript=Transcript(output="yes")) for one in trials]
    record(earlier(history, day, task, **changes), finished)


def reused(plan: Plan, history: History) -> list[FinishedTrial]:
    return reusable_trials(plan.model_copy(update={"request": RunRequest(history=history.location)}))


def statuses(finished: Sequence[FinishedTrial]) -> str:
    return "".join(str(one.trial.status)[0] for one in finished)


OLDER, NEWER = a_run_id("20260129"), a_run_id("20260130")


@pytest.mark.parametrize(
    ("newer", "found", "run_id"),
    [
        *(("ppp", "ppp", NEWER), ("pfp", "pfp", NEWER), ("pfpppefp", "pfppp-fp", NEWER)),
        *[
            (incomplete, "", "")
            for incomplete in ("ppe", "ppn", "pp-", "ffe", "pf-", "-pp", "pp-p", "---p", "fee", "pnn")
        ],
        *[(unmeasured, "ppp", OLDER) for unmeasured in ("eee", "nnn", "een")],
    ],
)
def test_the_newest_run_that_measured_something_speaks_where_it_measured_every_trial(
    history: History, newer: str, found: str, run_id: str
) -> None:
    """What fails is not run again until it passes, and of what has begun to fail no green of before counts."""
    run(history, "20260129", "ppp", revision=Revision(branch="main", dirty=True))
    run(history, "20260130", newer, revision=Revision(branch="feature"))
    run(history, "20260128", "ppp")
    assert [(one.trial.trial, one.trial.status, one.trial.reused_from) for one in reused(the_plan(), history)] == [
        (number, LETTERS[letter], run_id) for number, letter in enumerate(found) if letter != "-"
    ]


def test_trials_come_back_as_they_were(history: History) -> None:
    grades = (a_grade(votes=(0.5, 1.0)), a_grade(name="judge", error="no judge"), a_grade(name="tests", passed=False))
    changes = {
        "metrics": TrialMetrics(tokens_in=3, cost=0.25, wall_time_seconds=1.5),
        "score": 0.5,
        "model": "gpt-5",
        "attempts": 2,
    }
    run(history, "20260130", "fff", trial={**changes, "grades": grades, "file": "old.yaml", "line": 99})
    first = reused(the_plan(), history)[0]
    without_checks = tuple(grade.model_copy(update={"checks": ()}) for grade in grades)
    place = {"file": TASK.file, "line": TASK.line}
    assert first.trial == a_trial(
        TASK, 0, TrialStatus.FAILED, **changes, **place, grades=without_checks, reused_from=NEWER
    )
    assert first.transcript == Transcript()


def test_violations_stay_vetoes_and_what_was_not_measured_is_not_measured(history: History) -> None:
    violations = (a_violation(), a_violation(ViolationRule.FORBIDDEN_TOOL, "forbidden tool called: rm: all"))
    run(history, "20260129", "fff", trial={"grades": (a_grade(passed=False, violations=violations),)})
    run(history, "20260130", "ppp", OTHER)
    veto, *_, plain = (one.trial for one in reused(the_plan(TASK, OTHER), history))
    assert veto.violations == violations
    assert [grade.name for grade in veto.grades] == ["answer", "violations"]
    assert veto.judge_cost is None
    assert (plain.metrics, plain.score, plain.grades) == (TrialMetrics(), None, ())


@pytest.mark.parametrize(
    ("day", "changes", "task"),
    [
        pytest.param("20260130", {"agent_digest": "b" * 64}, {}, id="digest"),
        pytest.param("20260130", {"agent": AgentSpec(kind=AgentKind.CLI, target="another")}, {}, id="agent"),
        pytest.param("20260130", {"policy": policy(curtailment=True)}, {}, id="curtailment"),
        pytest.param("20260130", {"policy": policy().model_copy(update={"error_retries": 9})}, {}, id="retries"),
        pytest.param("20260130", {"gate": GateName.NIGHTLY}, {}, id="gate"),
        pytest.param("20260130", {"passgate_version": "0.0.2"}, {}, id="version"),
        pytest.param("20260130", {}, {"task_digest": "another"}, id="task"),
        pytest.param("20260130", {}, {"grader_digest": "another"}, id="grader"),
        pytest.param("20260130", {}, {"k": 2}, id="k"),
        pytest.param("20260130", {}, {"metric": Metric.PASS_AT_K}, id="metric"),
        pytest.param("20260130", {}, {"suite": Suite.FAILURE_REPLAYS}, id="suite"),
        pytest.param("20260130", {}, {"task_id": "another"}, id="name"),
        pytest.param("20260201", {}, {}, id="the run itself"),
        pytest.param("20260202", {}, {}, id="later"),
    ],
)
def test_only_earlier_runs_of_the_same_task_and_kind_count(
    history: History, day: str, changes: dict[str, Any], task: dict[str, Any]
) -> None:
    assert reused(the_plan(), history) == []
    run(history, day, "ppp", a_task(**task), **changes)
    assert reused(the_plan(), history) == []


@pytest.mark.parametrize("changes", [{"policy": policy(reuse=None)}, {"agent_digest": ""}], ids=["policy", "agent"])
def test_nothing_is_reused_unless_the_policy_asks_for_it_and_the_agent_is_known(
    history: History, changes: dict[str, Any]
) -> None:
    run(history, "20260130", "ppp", **changes)
    assert reused(the_plan(**changes), history) == []


@pytest.mark.parametrize(
    ("age", "is_reused"), [(timedelta(days=7), True), (timedelta(days=7, seconds=1), False), (timedelta(0), True)]
)
def test_a_verdict_grows_too_old(history: History, age: timedelta, is_reused: bool) -> None:
    run(history, "20260130", "ppp")
    assert bool(reused(the_plan(created_at=STARTED + age), history)) is is_reused


def test_a_verdict_is_as_old_as_its_oldest_trial(history: History) -> None:
    trials = [a_trial(TASK, number, started_at=STARTED - timedelta(days=number)) for number in range(3)]
    record(earlier(history, "20260129"), [FinishedTrial(trial=one, transcript=Transcript()) for one in trials])
    assert reused(the_plan(created_at=STARTED + timedelta(days=5)), history)
    assert not reused(the_plan(created_at=STARTED + timedelta(days=5, seconds=1)), history)


HAT, AT = a_task(), a_task(metric=Metric.PASS_AT_K)


@pytest.mark.parametrize(
    ("task", "trials", "found"),
    [
        *((HAT, "fnn", "f"), (HAT, "pf-", "pf"), (HAT, "ppn", ""), (HAT, "fen", ""), (HAT, "fnne", "f")),
        (AT, "pnn", "p"),
        (AT, "ffn", ""),
    ],
)
def test_where_trials_are_left_out_what_decided_stands(
    history: History, task: EvalTask, trials: str, found: str
) -> None:
    """Else a red task that ended at its first failure would be run again until it is green."""
    kept = {"policy": policy(curtailment=True)}
    run(history, "20260130", trials, task, **kept)
    assert statuses(reused(the_plan(task, **kept), history)) == found


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
    plan = earlier(history, "20260130")
    record(plan, reused(plan, history))
    assert {one.trial.reused_from for one in reused(the_plan(), history)} == {OLDER}


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
