"""The figures of docs/statistics.md that can be computed again in a moment, and the constants that it names."""

from passgate.tasks.model.baseline import GREEN_SHARE, RED_IN_A_ROW, RED_SHARE
from passgate.tasks.stats import ratios, regression, stopping_rules
from passgate.tasks.stats.estimators import wilson_interval
from tests.builders import SHIPPED
from tests.docs.pages import PAGES, rows, section

PAGE = "docs/statistics.md"


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


def test_wilsons_intervals() -> None:
    table = body("Estimates and intervals")[4:]
    assert [row[0] for row in table[1:]] == ["3", "5", "10", "20", "60"]
    for n, interval, passes, *_ in table[1:]:
        low, high = wilson_interval(int(n), int(n))
        assert (interval, passes) == (f"{100 * low:.1f} % to {100 * high:.0f} %", shown(low ** int(n)))


def test_what_is_named_is_so() -> None:
    text = " ".join(PAGES[PAGE].split())
    assert (regression.FALL, regression.DEEP_FALL, regression.STEADY) == (0.75, 0.5, 0.9)
    assert "at most 3/4 as often, or at most 1/2 as often if it passed fewer than 9 of 10 trials" in text
    assert (regression.MISSED, stopping_rules.HOPE, regression.ENOUGH) == (0.05, 0.02, 20)
    assert "with a chance of at most 5 %" in text
    assert "a chance below 2 %" in text
    assert "With fewer than 20 trials" in text
    assert (GREEN_SHARE * 3, RED_SHARE * 3, RED_IN_A_ROW) == (2, 1, 3)
    assert (ratios.LEAST_PAIRS, ratios.CONFIDENCE) == (8, 0.9)
    assert "fewer than eight tasks" in text
    assert "one-sided 90 % bound" in text
    assert SHIPPED.baseline.runs == 20
