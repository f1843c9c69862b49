"""Section c: what the shipped alpha, cap and way with undecided tasks were chosen from, for baselines of any size."""

from collections.abc import Iterator

from bench.gate_trust import exact
from bench.gate_trust.figures import Block, Figure, mean, percent, share
from bench.gate_trust.regression_tests import RegressionTests
from bench.gate_trust.setting import FALLS, Fall, Scale, Setting, shipped_regression
from bench.gate_trust.simulate import Simulated, simulate
from passgate.tasks.model.policy import Regression

ALPHAS = (0.02, 0.05)
MOST = (30, 40, 60)
_FALLS = tuple(sorted((fall for fall in FALLS if fall.to < 0.9), key=lambda fall: -fall.to))
_HEAD = f"{'alpha':>5} {'most':>4}   {'red: warn':>10} {'block':>8}   " + "   ".join(
    f"{f'to {fall.to}: warn':>13} {'block':>8}" for fall in _FALLS
)


def choice(name: str, setting: Setting, scale: Scale) -> Block:
    """Exact figures of every policy; the same are simulated, each on the same gates."""
    tests = RegressionTests(setting.k)
    variants = [replace_policy(shipped_regression(), alpha=alpha, most=most) for alpha in ALPHAS for most in MOST]
    now = simulate(setting, variants, tests, scale)
    fallen = {fall: simulate(setting, variants, tests, scale, fall) for fall in _FALLS}
    lines = [f"{_HEAD}   {'confirming':>10}"]
    compared: list[Figure] = []
    for place, variant in enumerate(variants):
        unchanged = exact.unchanged(setting, variant, tests)
        caught = {fall: exact.caught(setting, variant, tests, fall) for fall in _FALLS}
        lines.append(_line(setting, variant, unchanged, caught))
        compared += _compared(unchanged, now[place])
        for fall in _FALLS:
            compared += _compared_catches(caught[fall], fallen[fall][place])
    furthest = max(abs(figure.simulated - (figure.exact or 0)) for figure in compared)
    lines.append(f"exact; simulated on {scale.gates:,} gates each: at most {percent(furthest)} away")
    title = (
        f"{name}: {len(setting.rates)} tasks x {setting.k} at {setting.rates[0]}, "
        f"{setting.runs * setting.k} baseline trials each; to ...: caught, of what strict catches"
    )
    missed = [f"{title}: {figure.label}" for figure in compared if figure.differs]
    return Block(title, lines=lines, missed=missed)


def replace_policy(regression: Regression, *, alpha: float, most: int) -> Regression:
    """The shipped rule with another alpha and cap."""
    return regression.model_copy(update={"alpha": alpha, "max_trials": most})


def _line(setting: Setting, variant: Regression, unchanged: exact.Unchanged, caught: dict[Fall, exact.Caught]) -> str:
    catches = "   ".join(
        f"{percent(found.fallen / fall.strictly_caught(setting.k)):>13} "
        f"{percent(found.or_undecided / fall.strictly_caught(setting.k)):>8}"
        for fall, found in caught.items()
    )
    return (
        f"{variant.alpha:>5} {variant.max_trials:>4}   {percent(unchanged.blocked):>10} {percent(unchanged.red):>8}   "
        f"{catches}   {percent(unchanged.extra):>10}"
    )


def _compared(precisely: exact.Unchanged, found: Simulated) -> Iterator[Figure]:
    yield share("red, warn", found.red("warn"), exact=precisely.blocked)
    yield share("red, block", found.red("block"), exact=precisely.red)
    yield mean("confirming trials", found.extra, exact=precisely.extra)


def _compared_catches(precisely: exact.Caught, found: Simulated) -> Iterator[Figure]:
    yield share("caught, warn", found.catches("warn"), exact=precisely.fallen)
    yield share("caught, block", found.catches("block"), exact=precisely.or_undecided)
