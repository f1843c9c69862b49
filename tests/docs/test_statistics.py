"""The figures of docs/statistics.md that can be computed again in a moment, and the constants that it names."""

import json
import subprocess
import sys

from passgate.tasks.model.baseline import GREEN_SHARE, RED_IN_A_ROW, RED_SHARE
from passgate.tasks.model.task import LEAST_TRIALS, GateName, SequentialTest
from passgate.tasks.stats import ratios, regression
from passgate.tasks.stats.decision import operating_characteristic
from passgate.tasks.stats.estimators import wilson_interval
from tests.builders import SHIPPED
from tests.conftest import REPOSITORY
from tests.docs.pages import PAGES, rows, section

PAGE = "docs/statistics.md"
EXACT = """
import json
from bench.gate_trust.exact import caught, green_counts, unchanged
from bench.gate_trust.regression_tests import RegressionTests
from bench.gate_trust.setting import FALLS, alike, shipped_regression
setting, tests = alike(0.99), RegressionTests(3)
now = unchanged(setting, shipped_regression(), tests)
falls = {fall.to: fall for fall in FALLS}
shares = [
    caught(setting, shipped_regression(), tests, fall).or_undecided / fall.strictly_caught(3)
    for fall in map(falls.__getitem__, (0.5, 0.7, 0.9))
]
green = [[sum(green_counts(rate, k, 20).values()) for rate in (0.99, 0.95, 0.9, 0.85, 0.8)] for k in (3, 5)]
print(json.dumps([now.red, now.extra, setting.strict_red(), shares, green]))
"""


def shown(share: float) -> str:
    """As the page rounds it: to three figures, and to two below ten percent."""
    if share >= 0.9995:
        return "100 %"
    percent = 100 * share
    return f"{percent:.1f} %" if percent >= 1 else f"{percent:.2f} %"


def body(heading: str) -> list[list[str]]:
    """The rows of the tables under a heading, without their heads."""
    found = rows(section(PAGE, heading))
    return [row for place, row in enumerate(found) if not set("".join(row)) <= {"-"} and place != 0]


def test_walds_test() -> None:
    rule = SequentialTest(accept=0.95, reject=0.7, alpha=0.05, beta=0.05)
    assert LEAST_TRIALS == 10, "at least ten trials"
    table = body("Wald's test")
    assert len(table) == 5
    for rate, *cells in table:
        expected = [shown(1 - float(rate) ** 10)]
        for k in (10, 20, 40):
            exact = operating_characteristic(rule, k, float(rate))
            expected += [shown(1 - exact.accepts), f"{exact.expected_trials:.1f}"]
        assert cells == expected


def test_wilsons_intervals() -> None:
    table = body("Estimates and intervals")[4:]
    assert [row[0] for row in table[1:]] == ["3", "5", "10", "20", "60"]
    for n, interval, passes, *_ in table[1:]:
        low, high = wilson_interval(int(n), int(n))
        assert (interval, passes) == (f"{100 * low:.1f} % to {100 * high:.0f} %", shown(low ** int(n)))


def test_the_sequential_test_at_99_percent_and_which_tasks_are_green() -> None:
    command = [sys.executable, "-c", EXACT]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=200, check=True)
    red, extra, strict, shares, green = json.loads(done.stdout)
    strictly, evidence, more = body("Why not strictly")
    assert (strictly[2], evidence[2], more[2]) == (shown(strict), shown(red), shown(extra))
    caught = [row for row in body("What it catches") if row[0] == "0.99"]
    assert [row[3] for row in caught] == [shown(share) for share in shares]
    states = [row[1:] for row in body("The baseline of a task") if row[0].startswith("k = ")]
    assert states == [[shown(one) for one in of_k] for of_k in green]


def test_what_is_named_is_so() -> None:
    text = " ".join(PAGES[PAGE].split())
    policy = SHIPPED.gates[GateName.CI_MERGE].regression
    assert (
        f"Shipped: `alpha: {policy.alpha}`, `max_trials: {policy.max_trials}`, `undecided: {policy.undecided}`" in text
    )
    assert (regression.FALL, regression.MISSED, regression._HOPE) == (0.75, 0.05, 0.02)
    assert "at most 3/4 as often" in text
    assert "with a chance of at most 5 %" in text
    assert "a chance below 2 % each" in text
    assert (GREEN_SHARE * 3, RED_SHARE * 3, RED_IN_A_ROW) == (2, 1, 3)
    assert (ratios.LEAST_PAIRS, ratios.CONFIDENCE) == (8, 0.9)
    assert "fewer than eight tasks" in text
    assert "one-sided 90 % bound" in text
    assert SHIPPED.baseline.runs == 20
