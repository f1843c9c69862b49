"""The trend as a table."""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from passgate.tasks.model.baseline import TrendPoint
from passgate.tasks.model.task import Suite
from passgate.tasks.reports.trend import RULE, trend_table, worse_runs

MakePoint = Callable[..., TrendPoint]


def test_reads_as_the_golden_file(
    trend_points: tuple[TrendPoint, ...], matches_golden: Callable[[str, str], None]
) -> None:
    matches_golden(trend_table(trend_points, width=100, color=False), "trend_table.txt")


def test_order_of_the_points_does_not_matter(trend_points: tuple[TrendPoint, ...]) -> None:
    assert trend_table(trend_points[::-1], width=100, color=False) == trend_table(trend_points, width=100, color=False)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_line_is_wider_than_asked_and_no_run_id_is_cut(width: int, trend_points: tuple[TrendPoint, ...]) -> None:
    text = trend_table(trend_points, width=width, color=False)

    assert max(map(cell_len, text.split("\n"))) <= width
    assert "…" not in text
    assert "▼ worse\n" in text


def test_run_ids_and_marks_are_whole_on_a_narrow_terminal(make_point: MakePoint) -> None:
    points = [
        make_point(day, 0.6 if day == 3 else 0.95, run_id=f"2026040{day}T020000Z-ci_merge-5f3a") for day in (1, 2, 3)
    ]

    text = trend_table(points, width=75, color=False)

    assert text.count("Z-ci_merge-5f3a\n") == 3
    assert " ▼ worse\n" in text


def test_a_day_shows_the_mean_and_the_worst_of_its_runs(make_point: MakePoint) -> None:
    points = [
        make_point(1, 0.9, run_id="morning", trials_passed=9, trials_measured=10),
        make_point(1, 0.8, run_id="noon", high=0.95, trials_passed=8, trials_measured=10, trials_error=2),
        make_point(1, None, run_id="night", trials_passed=0, trials_measured=0, trials_error=10, tasks=11),
    ]

    row, errors = trend_table(points, width=120, color=False).split("\n")[2:4]

    assert row.split() == ["2026-04-01", "3", "11-12", "17/20", "85", "%", "80", "%", "noon"]
    assert errors.split() == ["+12", "errors"]


def test_days_are_those_of_utc(make_point: MakePoint) -> None:
    late = datetime.fromisoformat("2026-04-02T01:00:00+02:00")

    assert "2026-04-01" in trend_table([make_point(2, 1.0, started_at=late)], width=80, color=False)


def test_worse_days_are_marked_and_the_rule_is_said(make_point: MakePoint) -> None:
    points = [make_point(day, 0.6 if day == 3 else 0.95) for day in range(1, 6)]

    text = trend_table(points, width=120, color=False)

    (marked,) = [line for line in text.split("\n") if line.startswith("2026") and "▼ worse" in line]
    assert marked.startswith("2026-04-03")
    assert RULE in text.replace("\n", " ")


def test_no_points_is_said() -> None:
    assert trend_table([], width=80, color=False) == "No runs.\n"


def test_hostile_run_id_is_escaped(make_point: MakePoint, hostile: str) -> None:
    text = trend_table([make_point(1, 0.9, run_id=hostile)], width=80, color=False)

    assert "\x1b" not in text
    assert "\x00" not in text


def test_an_interval_below_the_mean_of_the_others_is_worse(make_point: MakePoint) -> None:
    others = [make_point(day, 0.95) for day in range(1, 4)]

    assert worse_runs([*others, make_point(9, 0.92, high=0.94)]) == {make_point(9, 0.92).run_id}
    assert worse_runs([*others, make_point(9, 0.92, high=0.96)]) == frozenset()


def test_the_mean_of_the_others_is_weighted_by_tasks(make_point: MakePoint) -> None:
    others = [make_point(1, 1.0, tasks=1), make_point(2, 0.8, tasks=99), make_point(3, 0.8, tasks=99)]

    assert worse_runs([*others, make_point(9, 0.79, high=0.85)]) == frozenset()
    assert worse_runs([*others, make_point(9, 0.79, high=0.80)]) == {make_point(9, 0.79).run_id}


def test_more_than_ten_points_under_the_median_is_worse_whatever_the_interval(make_point: MakePoint) -> None:
    others = [make_point(day, 0.8) for day in range(1, 4)]

    assert worse_runs([*others, make_point(9, 0.7, high=1.0)]) == frozenset()
    assert worse_runs([*others, make_point(9, 0.69, high=1.0)]) == {make_point(9, 0.69).run_id}


def test_a_run_alone_or_without_a_value_is_not_worse(make_point: MakePoint) -> None:
    assert worse_runs([make_point(1, 0.0)]) == frozenset()
    assert worse_runs([make_point(1, 1.0), make_point(2, None)]) == frozenset()


@given(st.lists(st.floats(min_value=0, max_value=1), min_size=1, max_size=12))
def test_the_best_run_is_never_worse(make_point: MakePoint, values: list[float]) -> None:
    points = [make_point(day, value, suite=Suite.GOLDEN) for day, value in enumerate(values, start=1)]

    best = max(points, key=lambda point: point.value or 0)

    assert best.run_id not in worse_runs(points)
    assert best.started_at.tzinfo is UTC
