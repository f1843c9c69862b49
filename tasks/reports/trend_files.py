"""The trend as JSON and HTML."""

from passgate.tasks.model.history import Trend, TrendChange
from passgate.tasks.model.task import Suite
from passgate.tasks.reports import escape
from passgate.tasks.reports.console import NAME
from passgate.tasks.reports.trend import (
    BETTER,
    FLAKY_HEADER,
    PERIOD_HEADER,
    RATE_HEADER,
    WORSE,
    between_text,
    change_text,
    flaky_cells,
    headline,
    new_and_earlier,
    no_changes_text,
    per_verdict,
    period_cells,
    rate_cells,
)

_NamedTable = tuple[str, tuple[str, ...], list[tuple[str, ...]]]
_HTML = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<title>{{ headline }}</title>
<style>
{{ style|safe }}
.trend td, .trend th { text-align: right; } .trend :is(th, td):first-child { text-align: left; }
figure { margin: 0 0 .8rem; }
svg.line { width: 100%; max-width: 60rem; height: auto; } svg.line line { stroke: var(--line); }
svg.line polyline { fill: none; stroke: var(--now); stroke-width: 2; } svg.line circle { fill: var(--now); }
li.worse { font-weight: 600; }
small { color: var(--dim); overflow-wrap: anywhere; }
</style></head><body>
{% if home %}<nav class="bar" aria-label="Page"><a href="{{ home }}">All runs</a></nav>
{% endif %}<main class="trend">
<h1>{{ headline }}</h1>
{% if branch %}<p class="dim">Runs on {{ branch }}.</p>{% endif %}
{% if lines %}<h2>Runs</h2>
{% for line in lines %}<figure><figcaption>{{ line.label }}</figcaption>
<svg class="line" viewBox="0 0 600 60" role="img" aria-label="{{ line.label }}"><line x1="0" y1="8" x2="600" y2="8"/>
<line x1="0" y1="52" x2="600" y2="52"/><polyline points="{{ line.points }}"/>
{% for x, y, what in line.dots %}<circle cx="{{ '%.1f' % x }}" cy="{{ '%.1f' % y }}" r="3">
<title>{{ what }}</title></circle>
{% endfor %}</svg></figure>
{% endfor %}{% endif %}
{% for title, changes in changed %}<h2>{{ title }}</h2>
{% if changes %}<ul>{% for one in changes %}
<li{% if one.is_worse %} class="worse"{% endif %}>{{ one.mark }} {{ one.text }}<br><small>{{ one.between }}</small></li>
{% endfor %}</ul>{% else %}<p>{{ nothing }}</p>{% endif %}
{% endfor %}
{% for title, header, rows in tables %}<h2>{{ title }}</h2>
<div class="wide" tabindex="0" role="region" aria-label="{{ title }}"><table><thead><tr>
{% for name in header %}<th scope="col">{{ name }}</th>{% endfor %}</tr></thead><tbody>
{% for row in rows %}<tr>{% for cell in row %}<td>{{ cell }}</td>{% endfor %}</tr>{% endfor %}
</tbody></table></div>
{% endfor %}
<p>{{ per_verdict }}</p>
</main></body></html>
"""


def trend_json(trend: Trend) -> str:
    """Return every field."""
    return trend.model_dump_json(indent=2) + "\n"


def trend_html(trend: Trend, *, home: str = "", branch: str = "") -> str:
    """Return the screen as one self-contained page. `home` links to all runs, `branch` is the only one shown."""
    from jinja2 import Environment

    from passgate.tasks.reports.page.charts import value_lines
    from passgate.tasks.reports.page.environment import page_style

    new, earlier = new_and_earlier(trend)
    changed = [(f"Changed since {trend.since}", new), *([("Changed earlier", earlier)] if earlier else [])]
    page = Environment(autoescape=True, trim_blocks=True).from_string(_HTML)
    return (
        page.render(
            style=page_style(),
            headline=_text(headline(trend)),
            changed=[(title, [_entry(change) for change in changes]) for title, changes in changed],
            nothing=no_changes_text(trend) if not trend.changes else "Nothing.",
            tables=[(title, header, [map(_text, row) for row in rows]) for title, header, rows in _tables(trend)],
            lines=value_lines(trend.points),
            per_verdict=per_verdict(trend),
            home=home,
            branch=_text(branch),
        )
        + "\n"
    )


def _tables(trend: Trend) -> list[_NamedTable]:
    week = [*trend.week_before, *trend.last_week]
    suites = sorted(week, key=lambda period: list(Suite).index(period.suite))
    tables: list[_NamedTable] = [
        ("Suites", PERIOD_HEADER, [period_cells(period) for period in suites]),
        ("Rates of the last 7 days", RATE_HEADER, [rate_cells(period) for period in trend.last_week]),
    ]
    if trend.flaky:
        tables += [("Flaky tasks", FLAKY_HEADER, [flaky_cells(task) for task in trend.flaky])]
    return [*tables, ("Periods", PERIOD_HEADER, [period_cells(period) for period in trend.periods])]


def _entry(change: TrendChange) -> dict[str, object]:
    return {
        "is_worse": change.is_worse,
        "mark": _mark(change),
        "text": change_text(change, _text),
        "between": between_text(change, _text),
    }


def _mark(change: TrendChange) -> str:
    return f"{WORSE} worse:" if change.is_worse else f"{BETTER} better:"


def _text(text: str) -> str:
    return escape.printable(text, NAME)
