"""All tasks together."""

import random
from statistics import fmean

import pytest

from passgate.tasks.forecasts.chances import GateChances, GateTask
from passgate.tasks.forecasts.task_forecast import ChancesByAdmission, TaskChances
from passgate.tasks.model.policy import GatePolicy, Rule
from passgate.tasks.model.task import GateName, Suite
from tests.builders import a_policy


def gate(**changes: object) -> GatePolicy:
    return a_policy(**changes).gates[GateName.CI_MERGE]


def of(red: float = 0.0, quiet: float = 0.0, missing: float = 0.0, withheld: float = 0.0) -> TaskChances:
    return TaskChances({Rule.TASK_FAILED: red}, red + quiet, quiet, missing, withheld, 0.0)


def members(*task_chances: TaskChances, suite: Suite = Suite.GOLDEN) -> list[GateTask]:
    return [GateTask(suite, ChancesByAdmission(chances)) for chances in task_chances]


def test_twenty_tasks_at_99_percent_are_red_45_percent_of_the_time_and_limits_and_what_is_missing_add_to_it() -> None:
    chances = GateChances(gate(), members(*[of(1 - 0.99**3)] * 20), {})
    assert chances.red == pytest.approx(0.453, abs=0.001)
    assert chances.passed == pytest.approx(1 - chances.red)
    assert GateChances(gate(), [], {}).red == 0
    chances = GateChances(gate(), members(of(0.1)), {Rule.LATENCY: 0.2, Rule.COST: 0.5})
    assert chances.red == pytest.approx(1 - 0.9 * 0.8 * 0.5)
    chances = GateChances(gate(), members(of(0.1, missing=0.2), of(0.0, missing=0.5)), {})
    assert chances.red == pytest.approx(0.1)
    assert chances.passed == pytest.approx(0.7 * 0.5)


@pytest.mark.parametrize("least", [1.0, 0.75, 0.5])
def test_a_threshold_counts_the_tasks_that_fail(least: float) -> None:
    task_chances = [of(0.05, 0.2), of(0.0, 0.3), of(0.1, 0.0), of(0.0, 0.5)]
    chances = GateChances(
        gate(thresholds={"golden": least}, blocks_on=["task_failed", "threshold"]), members(*task_chances), {}
    )
    seed, reds, missed, n = random.Random(4), 0, 0, 20_000
    for _ in range(n):
        drawn = [seed.random() for _ in task_chances]
        blocking = [value < one.blocks for value, one in zip(drawn, task_chances, strict=True)]
        failed = [value < one.failed for value, one in zip(drawn, task_chances, strict=True)]
        below = fmean(not one for one in failed) < least
        reds += any(blocking) or below
        missed += below
    assert chances.red == pytest.approx(reds / n, abs=0.015)
    assert chances.threshold_missed(Suite.GOLDEN) == pytest.approx(missed / n, abs=0.015)


def test_a_threshold_counts_where_it_blocks_and_tasks_that_are_not_withheld() -> None:
    chances = GateChances(gate(thresholds={"golden": 1.0}), members(of(0.0, 0.5)), {})
    assert (chances.red, chances.threshold_missed(Suite.GOLDEN)) == (0, 0)
    rules = gate(thresholds={"golden": 0.5}, blocks_on=["threshold"])
    assert GateChances(rules, members(of(0.0, 1.0), of()), {}).red == pytest.approx(0)
    assert GateChances(rules, members(of(0.0, 1.0), of(withheld=1.0)), {}).red == pytest.approx(1)


def with_admission(chance: float, red: float, quiet: float) -> ChancesByAdmission:
    """Of a task that is admitted so often, and where it may block is red and quiet so often."""
    rest = 1 - chance
    admitted = TaskChances({Rule.TASK_FAILED: red * chance}, (red + quiet) * chance, quiet * chance, 0.0, rest, 0.0)
    held = TaskChances({}, 0.0, 0.0, 0.0, rest, 0.0, rest)
    free = TaskChances({Rule.TASK_FAILED: red * rest}, (red + quiet) * rest, quiet * rest, 0.0, 0.0, 0.0, rest)
    return ChancesByAdmission(admitted, held, free)


ADMITTED = [(0.5, 0.2, 0.1), (0.3, 0.4, 0.0), (0.6, 0.1, 0.3)]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_admission_is_in_force_from_the_first_admitted_task_on(count: int) -> None:
    chances = GateChances(gate(), [GateTask(Suite.GOLDEN, with_admission(*one)) for one in ADMITTED[:count]], {})
    seed, reds, n = random.Random(6), 0, 20_000
    for _ in range(n):
        admitted = [seed.random() < chance for chance, _, _ in ADMITTED[:count]]
        blocking = [seed.random() < red for _, red, _ in ADMITTED[:count]]
        reds += any(red and (own or not any(admitted)) for own, red in zip(admitted, blocking, strict=True))
    assert chances.red == pytest.approx(reds / n, abs=0.015)
    assert chances.passed == pytest.approx(1 - chances.red)


FREE = [*members(of(0.1, 0.1), of(0.2), of(0.0, 0.4)), *members(of(0.3), of(0.05), suite=Suite.ADVERSARIAL)]
BY_ADMISSION = [GateTask(Suite.GOLDEN, with_admission(*one)) for one in ADMITTED]


@pytest.mark.parametrize("thresholds", [{}, {"golden": 0.5}])
@pytest.mark.parametrize(
    ("made", "other"),
    [(FREE, ChancesByAdmission(of(0.6, 0.1))), (BY_ADMISSION, with_admission(0.5, 0.7, 0.2))],
    ids=["free", "by admission"],
)
def test_one_task_with_another_outlook_is_as_if_computed_anew(
    made: list[GateTask], other: ChancesByAdmission, thresholds: dict[str, float]
) -> None:
    rules = gate(thresholds=thresholds, blocks_on=["task_failed", "threshold"])
    chances = GateChances(rules, made, {Rule.COST: 0.1})
    for index, member in enumerate(made):
        anew = [*made[:index], GateTask(member.suite, other), *made[index + 1 :]]
        assert chances.red_with(index, other) == pytest.approx(GateChances(rules, anew, {Rule.COST: 0.1}).red)
        assert chances.red_with(index, member.by_admission) == pytest.approx(chances.red)


@pytest.mark.parametrize(("least", "allowed"), [(1.0, 0), (0.5, 1)])
def test_a_threshold_counts_all_tasks_where_none_is_admitted(least: float, allowed: int) -> None:
    """Neither of two tasks is ever admitted, so both count."""
    rules = gate(thresholds={"golden": least}, blocks_on=["threshold"])
    chances = GateChances(rules, [GateTask(Suite.GOLDEN, with_admission(0.0, 0.0, 0.3))] * 2, {})
    missed = 1 - 0.7**2 if allowed == 0 else 0.3**2
    assert chances.red == pytest.approx(missed)
    assert chances.threshold_missed(Suite.GOLDEN) == pytest.approx(missed)
