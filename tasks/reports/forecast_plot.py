"""The plot of a forecast as SVG; the same text for the same forecast."""

from collections.abc import Sequence
from html import escape
from statistics import fmean
from typing import Final

from passgate.tasks.model.forecast import Forecast
from passgate.tasks.reports import figures
from passgate.tasks.reports.console import NAME
from passgate.tasks.reports.escape import printable

_WIDTH, _HEIGHT = 700, 420
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 680, 50, 360
_LOWEST_RATE: Final = 0.3
# Okabe and Ito's colours, which people with any kind of colour vision can tell apart.
_POLICY: Final = "#0072b2"
_STRICT: Final = "#d55e00"
_STRICT_LABEL: Final = "strict rule: any failed task blocks"


def forecast_plot(forecast: Forecast) -> str:
    """Draw how often the gate is red against a task's pass rate, for its policy and for the strict rule."""
    title = escape(printable(f"{forecast.gate}: how often the gate is red when one task falls", NAME))
    rates = [point.pass_rate for point in forecast.curve]
    usual = fmean(task.pass_rate for task in forecast.tasks) if forecast.tasks else 1.0
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}"',
        '  font-family="sans-serif" font-size="13" fill="#24292f">',
        f'<title>{title}</title><rect width="{_WIDTH}" height="{_HEIGHT}" fill="#fff"/>',
        f'<text x="{_LEFT}" y="28" font-weight="bold">{title}</text>',
        *_axes(),
        _curve(rates, [point.strict_red for point in forecast.curve], f'stroke="{_STRICT}" stroke-dasharray="7 4"'),
        _curve(rates, [point.red for point in forecast.curve], f'stroke="{_POLICY}"'),
        # Two marks that are closer would cover each other's texts.
        *([_mark(usual, forecast.strict_red, _STRICT)] if forecast.strict_red - forecast.red > 0.05 else []),
        _mark(usual, forecast.red, _POLICY),
        f'<text x="{_RIGHT}" y="{_BOTTOM - 34}" text-anchor="end" fill="{_POLICY}">this policy</text>',
        f'<text x="{_RIGHT}" y="{_BOTTOM - 14}" text-anchor="end" fill="{_STRICT}">{_STRICT_LABEL}</text>',
        "</svg>\n",
    ]
    return "\n".join(parts)


def _axes() -> list[str]:
    middle = (_LEFT + _RIGHT) / 2
    lines = [
        f'<line x1="{_LEFT}" x2="{_RIGHT}" y1="{_y(red):.1f}" y2="{_y(red):.1f}" stroke="#e4e8ec"/>'
        f'<text x="{_LEFT - 8}" y="{_y(red) + 4:.1f}" text-anchor="end">{100 * red:.0f} %</text>'
        for red in (0.0, 0.25, 0.5, 0.75, 1.0)
    ]
    ticks = [
        f'<text x="{_x(tenth / 10):.1f}" y="{_BOTTOM + 20}" text-anchor="middle">{tenth * 10} %</text>'
        for tenth in range(3, 11)
    ]
    label = "how often the task passes (all others as usual)"
    return [*lines, *ticks, f'<text x="{middle:.0f}" y="{_BOTTOM + 44}" text-anchor="middle">{label}</text>']


def _curve(rates: Sequence[float], reds: Sequence[float], look: str) -> str:
    points = " ".join(f"{_x(rate):.1f},{_y(red):.1f}" for rate, red in zip(rates, reds, strict=True))
    return f'<polyline points="{points}" fill="none" stroke-width="2.5" {look}/>'


def _mark(usual: float, red: float, color: str) -> str:
    """Mark where no task has fallen: there every red gate is a false failure."""
    x, y = _x(usual), _y(red)
    # No curve runs above its beginning if that is low, or below it if that is high.
    text_y = y - 12 if red < 0.2 else y + 22
    return (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{color}"/>'
        f'<text x="{x + 8:.1f}" y="{text_y:.1f}" fill="{color}" font-weight="bold" '
        'paint-order="stroke" stroke="#fff" stroke-width="4">'
        f"{figures.percent(red)} unchanged</text>"
    )


def _x(rate: float) -> float:
    return _LEFT + (_RIGHT - _LEFT) * (1 - rate) / (1 - _LOWEST_RATE)


def _y(red: float) -> float:
    return _BOTTOM - (_BOTTOM - _TOP) * red
