"""From a plan, its trials and the history to the verdict."""

from pathlib import Path
from typing import Any

import pytest

from passgate.tasks.model.baseline import Baseline, BaselineState
from passgate.tasks.model.policy import Policy
from passgate.tasks.model.run import Plan, Revision, RunRequest
from passgate.tasks.model.task import GateName, Suite
from passgate.tasks.model.trial import Trial, TrialStatus
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
GOLDEN_ONLY = a_policy(suites=["golden"])


def verdict_of(statuses: str, policy: Policy = GOLDEN_ONLY, baseline: Baseline = NO_BASELINE, **plan: Any) -> Verdict:
    return verdict_on(a_plan(TASK, **plan), policy, trials_of(TASK, statuses), baseline, "gpt-judge")


@pytest.mark.parametrize(
    ("statuses", "decision", "code"),
    [("ppp", Decision.PASS, 0), ("ppf", Decision.FAIL, 1), ("ppe", Decision.INCONCLUSIVE, 3)],
)
def test_the_verdict_and_its_exit_code(statuses: str, decision: Decision, code: int) -> None:
    verdict = verdict_of(statuses)
    assert (verdict.decision, verdict.exit_code) == (decision, code)


def test_a_verdict_says_what_it_is_about() -> None:
    plan = a_plan(TASK, revision=Revision(commit="c0ffee", branch="feature"))
    verdict = verdict_on(plan, GOLDEN_ONLY, trials_of(TASK, "ppp"), NO_BASELINE, "gpt-judge")
    assert (verdict.run_id, verdict.gate, verdict.agent) == (plan.run_id, plan.gate, "cli:my-agent")
    assert (verdict.revision, verdict.started_at) == (plan.revision, plan.created_at)
    assert verdict.judged_at > verdict.started_at
    assert Verdict.model_validate_json(verdict.model_dump_json()) == verdict


def test_the_judge_is_named_only_when_somebody_had_to_judge() -> None:
    assert verdict_of("ppp").judge == ""
    task = a_task(graders=[{"type": "llm_rubric", "rubric": "Is it kind?"}])
    verdict = verdict_on(a_plan(task), GOLDEN_ONLY, trials_of(task, "ppp"), NO_BASELINE, "gpt-judge")
    assert verdict.judge == "gpt-judge"


def test_another_policy_may_judge_what_was_measured() -> None:
    """Trials are what they are; the policy may have been wrong."""
    lenient = a_policy(suites=["golden"], blocks_on=[])
    assert verdict_of("ppf", lenient).decision is Decision.PASS
    assert verdict_of("ppf", lenient).inputs.policy != verdict_of("ppf").inputs.policy


def test_every_input_has_its_digest() -> None:
    inputs = verdict_of("ppp").inputs
    assert inputs == verdict_of("ppp").inputs
    assert inputs.passgate_version == "0.0.1"

    def with_task(**changes: Any) -> Verdict:
        task = a_task(**changes)
        return verdict_on(a_plan(task), GOLDEN_ONLY, trials_of(task, "ppp"), NO_BASELINE, "")

    assert with_task(task_digest="another").inputs.tasks != inputs.tasks
    assert with_task(grader_digest="another").inputs.graders != inputs.graders
    assert with_task(grader_digest="another").inputs.tasks == inputs.tasks


def test_the_digest_of_the_trials_is_of_all_that_they_say_in_any_order() -> None:
    def digest(trials: list[Trial]) -> str:
        return verdict_on(a_plan(TASK), GOLDEN_ONLY, trials, NO_BASELINE, "").inputs.trials

    trials = trials_of(TASK, "ppp")
    assert digest(trials) == digest(trials[::-1])
    assert digest(trials) != digest(trials[:2])
    other = trials[0].model_copy(update={"transcript_digest": "another"})
    assert digest(trials) != digest([other, *trials[1:]])
    other = trials[0].model_copy(update={"status": TrialStatus.FAILED})
    assert digest(trials) != digest([other, *trials[1:]])


def test_the_runs_of_the_baseline_are_named_and_its_rows_have_a_digest() -> None:
    baseline = a_baseline(TASK, a_task(task_id="other"))
    inputs = verdict_of("ppp", baseline=baseline).inputs
    assert inputs.baseline_runs == ("20260101-ab",)
    assert inputs.baseline != verdict_of("ppp", baseline=a_baseline(TASK, passed=2)).inputs.baseline


def test_the_shipped_merge_gate_wants_its_three_suites() -> None:
    tasks = [a_task(task_id=str(suite), suite=suite) for suite in SHIPPED.gates[a_plan().gate].suites]
    trials = [trial for task in tasks for trial in trials_of(task, "ppp")]
    assert verdict_on(a_plan(*tasks), SHIPPED, trials, NO_BASELINE, "").decision is Decision.PASS
    assert verdict_on(a_plan(*tasks[:2]), SHIPPED, trials[:6], NO_BASELINE, "").decision is Decision.INCONCLUSIVE


FIRST, SECOND = a_run_id("20260130"), a_run_id("20260131")


def stored(history: Path, run_id: str, *, model: str = "", **plan: Any) -> None:
    finished = [a_finished(TASK, trial, model=model) for trial in range(3)]
    record(a_plan(TASK, run_id=run_id, created_at=begun(run_id), request=in_history(history), **plan), finished)


def in_history(folder: Path) -> RunRequest:
    return a_plan().request.model_copy(update={"history": str(folder)})


def test_the_baseline_is_read_from_what_was_recorded(tmp_path: Path) -> None:
    main = Revision(branch="main")
    stored(tmp_path, FIRST, revision=main)
    stored(tmp_path, SECOND, revision=main)
    stored(tmp_path, a_run_id("20260131", "ffff"), revision=Revision(branch="feature"))
    plan: Plan = a_plan(TASK, run_id=a_run_id("20260201"), request=in_history(tmp_path))
    entry = pooled_baseline(plan, read_rows(plan)).of("golden/say-yes")
    assert (entry.state, entry.runs, entry.passed, entry.n) == (
        BaselineState.GREEN,
        (SECOND, FIRST),
        6,
        6,
    )


def test_it_is_narrowed_to_the_models_that_have_answered(tmp_path: Path) -> None:
    for run_id, model in ((FIRST, "old"), (SECOND, "new")):
        stored(tmp_path, run_id, model=model, revision=Revision(branch="main"))
    plan: Plan = a_plan(TASK, run_id=a_run_id("20260201"), request=in_history(tmp_path))
    answered = [trial.model_copy(update={"model": "new"}) for trial in trials_of(TASK, "ppp")]
    rows = read_rows(plan)
    assert pooled_baseline(plan, rows, answered).of("golden/say-yes").runs == (SECOND,)
    assert len(pooled_baseline(plan, rows, trials_of(TASK, "ppp")).of("golden/say-yes").runs) == 2


def test_without_a_history_every_task_is_new(tmp_path: Path) -> None:
    plan = a_plan(TASK, request=in_history(tmp_path / "none"))
    assert pooled_baseline(plan, read_rows(plan)).of("golden/say-yes").state is BaselineState.NEW


def test_a_suite_that_is_not_the_gates_changes_nothing() -> None:
    extra = a_task(task_id="extra", suite=Suite.OPEN_ENDED)
    assert verdict_on(a_plan(TASK, extra), GOLDEN_ONLY, trials_of(TASK, "ppp"), NO_BASELINE, "").decision is not (
        Decision.FAIL
    )


def test_runs_that_cannot_be_what_they_say_are_counted_in_a_note(tmp_path: Path) -> None:
    main = Revision(branch="main")
    stored(tmp_path, FIRST, revision=main)
    stored(tmp_path, SECOND, revision=main, gate=GateName.NIGHTLY)
    plan = a_plan(TASK, run_id=a_run_id("20260201"), request=in_history(tmp_path))
    baseline = pooled_baseline(plan, read_rows(plan))
    assert baseline.runs == (FIRST,)
    notes = verdict_on(plan, SHIPPED, trials_of(TASK, "ppp"), baseline, "").notes
    (note,) = [note for note in notes if SECOND in note]
    assert note.startswith("passgate leaves out 1 run of the history (1 task) that cannot be genuine. Check the clocks")
    assert note.endswith(f"named after {SECOND} (its id is not that of a run of its gate)")
