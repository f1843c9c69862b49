"""Laws of forecasts: chances are chances, and a better agent is never red more often."""

from functools import cache

import numpy as np
from bench.gate_trust.operation import operation, regression_test
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.forecasts.settings import STRICT, setting, tasks

from passgate.tasks.forecasts.drawn_trials import Draws, drawn_baseline
from passgate.tasks.forecasts.simulated_gate import SimulatedGate, TaskTests
from passgate.tasks.stats.estimators import shrunk_rates
from passgate.tasks.stats.ratios import estimate_noise
from passgate.tasks.stats.regression import RegressionTest

rates = st.floats(0, 1)


@cache
def a_test() -> RegressionTest:
    return regression_test(58, 60, k=3, red_from=1, most=30, alpha=0.01)


@given(rates, rates)
def test_who_has_fallen_deeper_is_caught_more_often(one: float, other: float) -> None:
    low, high = sorted((one, other))
    deep, shallow = operation(a_test(), low), operation(a_test(), high)
    assert deep.fallen + deep.undecided >= shallow.fallen + shallow.undecided - 1e-9
    assert 0 <= deep.fallen <= 1 + 1e-9


@given(st.lists(rates, min_size=6, max_size=6), st.floats(0, 1), st.integers(0, 100))
def test_a_worse_agent_is_never_red_less_often_under_the_strict_rule(
    of_tasks: list[float], keeps: float, seed: int
) -> None:
    one = setting(tasks(6), of_tasks, **STRICT)
    gate = SimulatedGate(one, drawn_baseline(one, np.random.default_rng(seed)), TaskTests())
    draws = Draws((seed,), 50, 6)
    unchanged, worse = (gate.run(np.array(of_tasks) * share, draws) for share in (1.0, keeps))
    assert (worse.red | ~unchanged.red).all()
    assert not (unchanged.red & unchanged.inconclusive).any()
    assert (worse.trials >= 3).all()


counts = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)).map(sorted).map(tuple), min_size=1, max_size=20)


@given(counts.filter(lambda pairs: any(n for _, n in pairs)))
def test_shrunk_rates_lie_between_a_tasks_own_and_that_of_all(pairs: list[tuple[int, int]]) -> None:
    passed, n = sum(one for one, _ in pairs), sum(one for _, one in pairs)
    of_all = (passed + 0.5) / (n + 1)
    for (own, trials), rate in zip(pairs, shrunk_rates(pairs), strict=True):
        ends = sorted((own / trials if trials else of_all, of_all))
        assert ends[0] - 1e-12 <= rate <= ends[1] + 1e-12
        assert 0 < rate < 1


of_runs = st.dictionaries(st.sampled_from("rst"), st.lists(st.floats(-1, 1e9), max_size=4))


@given(st.dictionaries(st.sampled_from("abcdefghijk"), of_runs))
def test_noise_is_never_negative(figures: dict[str, dict[str, list[float]]]) -> None:
    noise = estimate_noise(figures)
    assert noise is None or (noise.deviation >= 0 and noise.usual >= 0 and noise.runs >= 2)
