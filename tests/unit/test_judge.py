"""From a plan, its trials and the history to the verdict."""

from pathlib import Path
from typing import Any

import pytest

from passgate.tasks.model.baseline import Baseline, BaselineState
from passgate.tasks.model.policy import Policy
from passgate.tasks.model.run import Plan, Revision, RunRequest
from passgate.tasks.model.task import EvalTask, Suite
from passgate.tasks.model.trial import TrialStatus
from passgate.tasks.model.verdict import Decision, Verdict
from passgate.tasks.planning.baseline import pooled_baseline, read_rows
from passgate.tasks.record import record
from tests.builders import (
    SHIPPED,
    a_baseline,
    a_finished,
    a_plan,
    a_policy,
    a_run_id,
    a_task,
    begun,
    trials_of,
    verdict_on,
)

TASK = a_task()
NO_BASELINE = Baseline(branch="main")
GOLDEN_ONLY = a_policy(suites=["golden"], regression={"mode": "strict"})


def verdict_of(
    trials: Any, policy: Policy = GOLDEN_ONLY, baseline: Baseline = NO_BASELINE, task: EvalTask = TASK, **plan: Any
) -> Verdict:
    made = trials_of(task, trials) if isinstance(trials, str) else trials
    return verdict_on(a_plan(task, **plan), policy, made, baseline, "gpt-judge")


@pytest.mark.parametrize(
    ("statuses", "decision", "code"),
    [("ppp", Decision.PASS, 0), ("ppf", Decision.FAIL, 1), ("ppe", Decision.INCONCLUSIVE, 3)],
)
def test_the_verdict_and_its_exit_code(statuses: str, decision: Decision, code: int) -> None:
    verdict = verdict_of(statuses)
    assert (verdict.decision, verdict.exit_code) == (decision, code)


def test_a_verdict_says_what_it_is_about() -> None:
    plan = a_plan(TASK, revision=Revision(commit="c0ffee", branch="feature"))
    verdict = verdict_of("ppp", revision=plan.revision)
    assert (verdict.run_id, verdict.gate, verdict.agent) == (plan.run_id, plan.gate, "cli:my-agent")
    assert (verdict.revision, verdict.started_at) == (plan.revision, plan.created_at)
    assert verdict.judged_at > verdict.started_at
    assert Verdict.model_validate_json(verdict.model_dump_json()) == verdict


def test_the_judge_is_named_only_when_somebody_had_to_judge() -> None:
    rubric = a_task(graders=[{"type": "llm_rubric", "rubric": "Is it kind?"}])
    assert [verdict_of("ppp").judge, verdict_of("ppp", task=rubric).judge] == ["", "gpt-judge"]


def test_another_policy_may_judge_what_was_measured() -> None:
    """Trials are what they are; the policy may have been wrong."""
    lenient, strict = verdict_of("ppf", a_policy(suites=["golden"], blocks_on=[])), verdict_of("ppf")
    assert (lenient.decision, strict.decision) == (Decision.PASS, Decision.FAIL)
    assert lenient.inputs.policy != strict.inputs.policy


def test_every_input_has_its_digest() -> None:
    inputs = verdict_of("ppp").inputs
    assert inputs == verdict_of("ppp").inputs
    assert inputs.passgate_version == "0.0.1"
    assert verdict_of("ppp", task=a_task(task_digest="another")).inputs.tasks != inputs.tasks
    regraded = verdict_of("ppp", task=a_task(grader_digest="another")).inputs
    assert (regraded.tasks == inputs.tasks, regraded.graders == inputs.graders) == (True, False)
    of_baseline = verdict_of("ppp", baseline=a_baseline(TASK, a_task(task_id="other"))).inputs
    assert of_baseline.baseline_runs == ("20260101-ab",)
    assert of_baseline.baseline != verdict_of("ppp", baseline=a_baseline(TASK, passed=2)).inputs.baseline


def test_the_digest_of_the_trials_is_of_all_that_they_say_in_any_order() -> None:
    first, *others = trials_of(TASK, "ppp")
    digest = verdict_of([first, *others]).inputs.trials
    assert verdict_of([*others[::-1], first]).inputs.trials == digest
    assert verdict_of(others).inputs.trials != digest
    for change in ({"transcript_digest": "another"}, {"status": TrialStatus.FAILED}):
        assert verdict_of([first.model_copy(update=change), *others]).inputs.trials != digest


def test_the_shipped_merge_gate_wants_its_three_suites_and_no_other() -> None:
    extra = a_plan(TASK, a_task(task_id="extra", suite=Suite.OPEN_ENDED))
    assert verdict_on(extra, GOLDEN_ONLY, trials_of(TASK, "ppp"), NO_BASELINE).decision is not Decision.FAIL
    tasks = [a_task(task_id=str(suite), suite=suite) for suite in SHIPPED.gates[a_plan().gate].suites]
    trials = [trial for task in tasks for trial in trials_of(task, "ppp")]
    assert verdict_on(a_plan(*tasks), SHIPPED, trials, NO_BASELINE, "").decision is Decision.PASS
    assert verdict_on(a_plan(*tasks[:2]), SHIPPED, trials[:6], NO_BASELINE, "").decision is Decision.INCONCLUSIVE


FIRST, SECOND = a_run_id("20260130"), a_run_id("20260131")


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    return a_plan(TASK, run_id=a_run_id("20260201"), request=RunRequest(history=str(tmp_path)))


def stored(plan: Plan, run_id: str, *, model: str = "", branch: str = "main", **changes: Any) -> None:
    earlier = {"run_id": run_id, "created_at": begun(run_id), "revision": Revision(branch=branch)}
    record(plan.model_copy(update=earlier | changes), [a_finished(TASK, trial, model=model) for trial in range(3)])


def test_the_baseline_is_read_from_what_was_recorded(plan: Plan) -> None:
    assert pooled_baseline(plan, read_rows(plan)).of(TASK.name).state is BaselineState.NEW
    stored(plan, FIRST)
    stored(plan, SECOND)
    stored(plan, a_run_id("20260131", "ffff"), branch="feature")
    entry = pooled_baseline(plan, read_rows(plan)).of(TASK.name)
    assert (entry.state, entry.runs, entry.passed, entry.n) == (BaselineState.GREEN, (SECOND, FIRST), 6, 6)


def test_it_is_narrowed_to_the_models_that_have_answered(plan: Plan) -> None:
    for run_id, model in ((FIRST, "old"), (SECOND, "new")):
        stored(plan, run_id, model=model)
    answered = [trial.model_copy(update={"model": "new"}) for trial in trials_of(TASK, "ppp")]
    rows = read_rows(plan)
    assert pooled_baseline(plan, rows, answered).of(TASK.name).runs == (SECOND,)
    assert pooled_baseline(plan, rows, trials_of(TASK, "ppp")).of(TASK.name).runs == (SECOND, FIRST)
