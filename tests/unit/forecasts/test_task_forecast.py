"""One task in one run: how often it blocks."""

from datetime import timedelta
from typing import Any

import pytest

from passgate.tasks.forecasts.assumptions import Setting
from passgate.tasks.forecasts.task_forecast import ChancesOfTasks, RegressionTests, TaskChances
from passgate.tasks.gates.evidence import alpha_of_one
from passgate.tasks.model.baseline import BaselineState, BaselineTask
from passgate.tasks.model.policy import QuarantineEntry, QuarantineFile, Rule
from passgate.tasks.model.task import EvalTask, Metric, Suite
from passgate.tasks.stats.regression import regression_test
from tests.builders import STARTED, a_baseline_task, a_task
from tests.unit.forecasts.settings import EVIDENCE, PLAIN, STRICT, setting, tasks

GREEN = a_baseline_task(passed=59, n=60, newest=(True,) * 20)
RED_CHANCE = 1 - 0.9**3
ADMITTING = {**STRICT, "admission": {"passes": 19, "of": 20}}


def chances(one: Setting, index: int = 0, fallen_to: float | None = None) -> TaskChances:
    return ChancesOfTasks(one, RegressionTests()).of(one.tasks[index], fallen_to)


def quarantine(task: str, days: int = 1) -> dict[str, Any]:
    entry = QuarantineEntry(
        task=task, owner="Ann", reason="flaky", issue="1", expires=(STARTED + timedelta(days=days)).date()
    )
    return {"quarantine": QuarantineFile(tasks=(entry,))}


RED_OF = {rule: {rule: pytest.approx(RED_CHANCE)} for rule in (Rule.GOLDEN_REGRESSION, Rule.TASK_FAILED)}
NEW, OPEN = BaselineTask(state=BaselineState.NEW), a_task(suite=Suite.OPEN_ENDED)
ANY = a_task(suite=Suite.OPEN_ENDED, metric=Metric.PASS_AT_K)
NO_BETTER = [a_baseline_task(state=state, passed=12, n=18) for state in (BaselineState.RED, BaselineState.UNRELIABLE)]
ONLY_SAFETY = {**EVIDENCE, "blocks_on": ["safety_violation"]}
T0, BLOCKING = tasks(1)[0], {**EVIDENCE, "young": "block"}


@pytest.mark.parametrize(
    ("of", "rate", "known", "gate", "expected"),
    [
        pytest.param(T0, 0.9, GREEN, STRICT, {"red": RED_OF[Rule.GOLDEN_REGRESSION], "quiet": 0}, id="strict"),
        pytest.param(T0, 0.9, NEW, STRICT, {"red": RED_OF[Rule.TASK_FAILED]}, id="new, strict"),
        pytest.param(T0, 0.9, NEW, EVIDENCE, {"red": {}, "quiet": RED_CHANCE}, id="new, reported"),
        pytest.param(T0, 0.9, NEW, BLOCKING, {"red": RED_OF[Rule.TASK_FAILED]}, id="new"),
        pytest.param(T0, 0.9, NO_BETTER[0], BLOCKING, {"blocks": 0, "quiet": RED_CHANCE}, id="red before"),
        pytest.param(T0, 0.9, NO_BETTER[1], BLOCKING, {"blocks": 0, "quiet": RED_CHANCE}, id="unreliable before"),
        pytest.param(T0, 0.9, NO_BETTER[0], STRICT, {"blocks": RED_CHANCE}, id="red before, strict"),
        pytest.param(
            T0, 0.9, GREEN, ONLY_SAFETY, {"blocks": 0, "confirming": 0, "quiet": RED_CHANCE}, id="not blocking"
        ),
        pytest.param(OPEN, 0.9, GREEN, EVIDENCE, {"blocks": RED_CHANCE}, id="a rule that does not weigh"),
        pytest.param(ANY, 0.4, GREEN, STRICT, {"red": {Rule.TASK_FAILED: pytest.approx(0.6**3)}}, id="one of k"),
    ],
)
def test_how_often_a_task_blocks(
    of: EvalTask, rate: float, known: BaselineTask, gate: dict[str, Any], expected: dict[str, Any]
) -> None:
    found = chances(setting([of], rate, known=known, **gate))
    assert {name: getattr(found, name) for name in expected} == {
        name: value if isinstance(value, dict) else pytest.approx(value) for name, value in expected.items()
    }
    assert found.failed == pytest.approx(found.blocks + found.quiet)


def test_evidence_does_what_its_test_does() -> None:
    one = setting(tasks(4), 0.9, known=GREEN, **PLAIN, regression={"mode": "evidence", "max_trials": 20, "alpha": 0.1})
    alpha = alpha_of_one(one.plan.gate_policy, 4)
    test = regression_test(59, 60, k=3, red_from=1, most=20, alpha=alpha).operation(0.9)
    found = chances(one)
    assert found.red == {Rule.GOLDEN_REGRESSION: pytest.approx(test.fallen + test.undecided)}
    assert found.confirming == pytest.approx(test.trials - 3)
    assert found.quiet == pytest.approx(RED_CHANCE - found.blocks)


def test_what_is_undecided_warns_where_the_policy_says_so() -> None:
    few, thin = {"mode": "evidence", "max_trials": 5}, a_baseline_task(passed=18, n=18)
    blocking, warning = (
        chances(
            setting(tasks(1), 0.8, known=thin, **PLAIN, young="block", regression={**few, "undecided": what})
        ).blocks
        for what in ("block", "warn")
    )
    assert warning < blocking


def test_a_task_in_quarantine_blocks_only_by_vetoes() -> None:
    vetoes = {"violations": {Rule.SAFETY_VIOLATION: 0.1}}
    rules = {**STRICT, "blocks_on": ["golden_regression", "safety_violation"]}
    one = setting(tasks(1), 0.8, known=GREEN, plan=quarantine("golden/t0"), task=vetoes, **rules)
    found = chances(one)
    assert found.red == {Rule.SAFETY_VIOLATION: pytest.approx(1 - 0.9**3)}
    assert (found.withheld, found.failed, found.missing) == (1, 0, 0)
    expired = setting(tasks(1), 0.8, known=GREEN, plan=quarantine("golden/t0", days=-1), **rules)
    assert chances(expired).blocks > 0


def test_a_task_that_is_not_admitted_does_not_block_beside_one_of_its_suite_that_is() -> None:
    unproven = a_baseline_task(passed=18, n=20, newest=(False, False, *(True,) * 18))
    both = setting(tasks(2), 0.9, known=[unproven, GREEN], **ADMITTING)
    assert (chances(both, 0).withheld, chances(both, 1).withheld) == (1, 0)
    assert chances(both, 0).blocks == 0
    alone = setting(tasks(1), 0.9, known=unproven, **ADMITTING)
    assert chances(alone).blocks == pytest.approx(RED_CHANCE)
    other = a_task(suite=Suite.ADVERSARIAL)
    both = setting([*tasks(1), other], [0.5, 1.0], **ADMITTING)
    assert (chances(both, 0).withheld, chances(both, 1).withheld) == (pytest.approx(0, abs=1e-4), 0)
    assert chances(both, 0).blocks == pytest.approx(1 - 0.5**3)


def test_an_assumed_baseline_is_admitted_as_often_as_it_would_be() -> None:
    unadmitted = 1 - (0.95**20 + 20 * 0.05 * 0.95**19)
    for count in (1, 2, 5, 20):
        found = chances(setting(tasks(count), 0.95, **ADMITTING))
        assert found.withheld == pytest.approx(unadmitted * (1 - unadmitted ** (count - 1)), abs=1e-4)
        assert found.blocks == pytest.approx((1 - found.withheld) * (1 - 0.95**3), rel=1e-3)


def test_vetoes_are_red_by_their_rule_and_only_where_they_block_and_errors_leave_tasks_open() -> None:
    both = {"violations": {Rule.SAFETY_VIOLATION: 0.02, Rule.FORBIDDEN_TOOL: 0.01}}
    rules = {**STRICT, "blocks_on": ["golden_regression", "task_failed", "safety_violation"]}
    found = chances(setting(tasks(1), 0.9, known=GREEN, task=both, **rules))
    assert found.red[Rule.SAFETY_VIOLATION] == pytest.approx(1 - 0.98**3)
    assert Rule.FORBIDDEN_TOOL not in found.red
    assert found.blocks == pytest.approx(RED_CHANCE)
    found = chances(setting(tasks(1), 1.0, known=GREEN, task={"errors": 0.1}, **EVIDENCE))
    assert (found.blocks, found.missing) == (pytest.approx(0, abs=1e-12), pytest.approx(1 - 0.9**3))


def test_a_fallen_task_is_held_against_what_it_was() -> None:
    one = setting(tasks(20), 0.99, known=GREEN, **EVIDENCE)
    assert chances(one).blocks < 0.01 < chances(one, fallen_to=0.7).blocks < chances(one, fallen_to=0.3).blocks
    assert chances(one, fallen_to=0.0).blocks == pytest.approx(1, abs=0.01)
