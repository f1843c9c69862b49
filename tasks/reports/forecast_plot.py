"""The plot of a forecast as SVG; the same text for the same forecast."""

from statistics import fmean
from typing import Final

from passgate.tasks.model.forecast import Forecast
from passgate.tasks.reports import figures
from passgate.tasks.reports.console import NAME
from passgate.tasks.reports.escape import printable

_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 680, 50, 360
_LOWEST_RATE: Final = 0.3


def forecast_plot(forecast: Forecast) -> str:
    """Draw how often the gate is red against a task's pass rate, for its policy and for the strict rule."""
    from passgate.tasks.reports.page.rendering import templates

    usual = fmean(task.pass_rate for task in forecast.tasks) if forecast.tasks else 1.0
    # Where no task has fallen, every red gate is a false failure. Two marks that are closer cover each other's texts.
    marks = [("strict", forecast.strict_red)] if forecast.strict_red - forecast.red > 0.05 else []
    marks.append(("policy", forecast.red))
    points = {
        "strict": [(_x(point.pass_rate), _y(point.strict_red)) for point in forecast.curve],
        "policy": [(_x(point.pass_rate), _y(point.red)) for point in forecast.curve],
    }
    return (
        templates()
        .get_template("forecast.svg.j2")
        .render(
            title=printable(f"{forecast.gate}: how often the gate is red when one task falls", NAME),
            edges=(_LEFT, _RIGHT, _BOTTOM),
            levels=[(_y(percent / 100), percent) for percent in (0, 25, 50, 75, 100)],
            ticks=[(_x(tenth / 10), tenth * 10) for tenth in range(3, 11)],
            curves=points,
            # No curve runs above its beginning if that is low, or below it if that is high.
            marks=[
                (rule, _x(usual), _y(red), _y(red) + (-12 if red < 0.2 else 22), figures.percent(red))
                for rule, red in marks
            ],
        )
        + "\n"
    )


def _x(rate: float) -> float:
    return _LEFT + (_RIGHT - _LEFT) * (1 - rate) / (1 - _LOWEST_RATE)


def _y(red: float) -> float:
    return _BOTTOM - (_BOTTOM - _TOP) * red
