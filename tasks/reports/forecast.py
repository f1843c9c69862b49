"""What a gate will do before it is switched on, and what it has done in many runs beside it, for a terminal."""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from statistics import fmean

from rich.console import RenderableType
from rich.table import Column, Table
from rich.text import Text

from passgate.tasks.model.forecast import Advice, BurnIn, Catch, Cause, Effort, Forecast, TaskForecast
from passgate.tasks.reports import figures
from passgate.tasks.reports.console import MESSAGE, NAME, columns, heading, plain_table, rendered
from passgate.tasks.reports.escape import printable

_MOST_CAUSES = 5
_MOST_NAMES = 3
_TARGET_STYLES = {True: "bold green", False: "bold red"}


def forecast_text(forecast: Forecast, *, width: int, color: bool) -> str:
    """False reds, what is caught, what a verdict costs, why the gate is red, and what would help."""
    parts: list[RenderableType] = [
        Text(printable(f"{forecast.gate} with {forecast.agent}: {figures.count(len(forecast.tasks), 'task')}", NAME)),
        Text(_basis(forecast), "dim"),
        heading("how often an unchanged agent is red"),
        _failures_table(forecast, width),
        heading("how surely one task that falls is caught"),
        _catches_table(forecast.catches, width),
        Text("worst: of the tasks the one that is caught least; strict: if any failed task blocked", "dim"),
        heading("what a verdict costs"),
        Text(effort_text(forecast.effort)),
    ]
    if forecast.causes:
        parts += [heading("why it is red"), _causes_table(forecast.rules, forecast.causes, width)]
    parts += [heading(f"the smallest change that brings it to {figures.percent(forecast.target)}")]
    parts += _advice(forecast, width)
    notes = [Text(f"note  {printable(note, MESSAGE)}", "dim") for note in _notes(forecast)]
    return rendered(*parts, *([Text()] if notes else []), *notes, width=width, color=color)


def _basis(forecast: Forecast) -> str:
    rates = [task.pass_rate for task in forecast.tasks]
    low, high = (figures.percent(end(rates)) if rates else figures.UNKNOWN for end in (min, max))
    span = low if low == high else f"{low} to {high}"
    trials = sum(task.n or 0 for task in forecast.tasks)
    sources = {
        "history": f"from {figures.count(trials, 'trial')} of the history, drawn towards that of all tasks",
        "burn-in": "as measured",
        "assumed": "assumed",
        "file": "as the file says",
    }
    runs = forecast.baseline_runs
    made = figures.count(runs, "run") if runs else "what as many runs of such an agent as the policy pools would give"
    return f"pass rates  {span}, {sources[forecast.rates]}\nbaseline    {made}"


def _failures_table(forecast: Forecast, width: int) -> Table:
    red = Text(figures.percent(forecast.red), _TARGET_STYLES[forecast.red <= forecast.target])
    return _pairs(
        width,
        ("FAIL", red, f"strict rule {figures.percent(forecast.strict_red)}"),
        ("INCONCLUSIVE", figures.percent(forecast.inconclusive), ""),
    )


def _pairs(width: int, *rows: tuple[RenderableType, ...]) -> Table:
    return plain_table(width, (Column(), Column(justify="right"), Column(style="dim")), rows, show_header=False)


def _catches_table(catches: Sequence[Catch], width: int) -> Table:
    """By what the task falls to: how often its failure makes the gate red, beside the strict rule."""
    header = (
        *columns("falls to", no_wrap=True),
        *columns("caught", "worst", "strict", justify="right", no_wrap=True),
        *columns("worst task"),
    )
    rows = (
        (
            figures.percent(catch.pass_rate),
            Text(figures.percent(catch.mean), "bold"),
            figures.percent(catch.worst),
            figures.percent(catch.strict_mean),
            printable(catch.worst_task, NAME) if catch.tasks else "no task that can block passes more often",
        )
        for catch in catches
    )
    return plain_table(width, header, rows)


def effort_text(effort: Effort) -> str:
    """Trials, money and time of one verdict."""
    parts = [f"{effort.planned} planned"]
    parts += [f"+ {figures.decimal(effort.confirming)} confirming"] if effort.confirming else []
    parts += [f"- at most {figures.decimal(effort.saved)} left out early"] if effort.saved else []
    return "\n".join(
        (
            f"trials  {figures.decimal(effort.trials)} expected: {' '.join(parts)}",
            f"money   {figures.dollars(effort.cost)}",
            f"time    {figures.duration(effort.seconds)}",
        )
    )


def _causes_table(rules: Sequence[Cause], causes: Sequence[Cause], width: int) -> Table:
    """The rules that make the gate red, and the tasks that do so most often."""
    header = (
        *columns("by rule", no_wrap=True),
        *columns("share", justify="right", no_wrap=True),
        *columns("by task"),
        *columns("share", "in all runs", justify="right", no_wrap=True),
    )
    by_rule = [(str(cause.rule), figures.percent(cause.share)) for cause in rules]
    by_task = map(_task_cells, causes[:_MOST_CAUSES])
    rows: list[tuple[RenderableType, ...]] = [
        (*(rule or ("", "")), *(task or ("", "", ""))) for rule, task in zip_longest(by_rule, by_task)
    ]
    hidden = causes[_MOST_CAUSES:]
    if hidden:
        share = figures.percent(sum(one.share for one in hidden))
        rows.append(("", "", Text(f"{len(hidden)} more", "dim"), share, ""))
    return plain_table(width, header, rows)


def _task_cells(cause: Cause) -> tuple[str, str, str]:
    name = cause.task or (f"{cause.rule} of {cause.suite}" if cause.suite else str(cause.rule))
    return printable(name, NAME), figures.percent(cause.share), figures.percent(cause.chance)


def _advice(forecast: Forecast, width: int) -> list[RenderableType]:
    advice = forecast.advice
    if advice is None:
        return [Text("none is needed", "green")]
    if not advice.changes:
        return [Text("no change of the policy does: repair the tasks above", "yellow")]
    parts: list[RenderableType] = []
    if not advice.reaches_target:
        parts.append(Text("no one or two changes do; these leave the fewest:", "yellow"))
    for change in advice.changes:
        parts.append(Text(f"{change.file}  {printable(change.what, MESSAGE)}"))
        parts += [Text(f"    {_yaml_line(line)}") for line in change.lines]
    return [*parts, _price(forecast, advice, width)]


def _yaml_line(line: str) -> str:
    """A line of YAML as it is, for it is to be copied; what is not seen becomes its escape."""
    indent = len(line) - len(line.lstrip(" "))
    return " " * indent + printable(line, MESSAGE)


def _price(forecast: Forecast, advice: Advice, width: int) -> Table:
    """What the changes bring and what they cost, in catching and in trials."""
    red = Text(figures.percent(advice.red), _TARGET_STYLES[advice.reaches_target])
    caught = (
        (f"caught at {figures.percent(now.pass_rate)}", figures.percent(then.mean), figures.percent(now.mean))
        for now, then in zip(forecast.catches, advice.catches, strict=True)
    )
    trials = figures.decimal(advice.effort.trials), figures.decimal(forecast.effort.trials)
    rows: tuple[tuple[str, RenderableType, str], ...] = (
        ("then FAIL", red, figures.percent(forecast.red)),
        *caught,
        ("trials", *trials),
    )
    return _pairs(width, *((name, then, f"in place of {now}") for name, then, now in rows))


def _notes(forecast: Forecast) -> Iterator[str]:
    withheld = [task for task in forecast.tasks if task.withheld > 0.5]
    if withheld:
        yield f"{_named(withheld)} may not block: not admitted yet, or in quarantine"
    elif any(task.withheld > 0 for task in forecast.tasks):
        mean = fmean(task.withheld for task in forecast.tasks)
        yield f"at any time about {figures.percent(mean)} of the tasks are not admitted and may not block"
    unable = [task for task in forecast.tasks if not task.can_block and task not in withheld]
    if unable:
        yield f"{_named(unable)} cannot make the gate red, however deep they fall"
    yield from forecast.notes


def _named(tasks: Sequence[TaskForecast]) -> str:
    """`7 tasks (golden/a, golden/b and 5 more)`."""
    shown = ", ".join(task.task for task in tasks[:_MOST_NAMES])
    more = f" and {len(tasks) - _MOST_NAMES} more" if len(tasks) > _MOST_NAMES else ""
    return f"{figures.count(len(tasks), 'task')} ({shown}{more})"


def burn_in_text(burn_in: BurnIn, *, width: int, color: bool) -> str:
    """Measured and forecast side by side, why runs were red, and where the trials are."""
    parts: list[RenderableType] = [
        Text(printable(f"{burn_in.gate} with {burn_in.agent}: {_runs(burn_in)}", NAME + MESSAGE)),
        heading("in the runs that were judged"),
        _side_by_side(burn_in, width),
        Text(_agreement(burn_in), "dim" if _agrees(burn_in) else "yellow"),
    ]
    if burn_in.causes:
        parts += [heading("why they were red"), _causes_table(burn_in.rules, burn_in.causes, width)]
    notes = (*([burn_in.why_ended] if burn_in.why_ended else []), *burn_in.forecast.notes)
    parts += [Text()] + [Text(f"note  {printable(note, MESSAGE)}", "dim") for note in notes]
    parts += [Text(f"spent   {figures.dollars(burn_in.spent)}"), Text(f"trials  {printable(burn_in.folder, MESSAGE)}")]
    return rendered(*parts, width=width, color=color)


def _runs(burn_in: BurnIn) -> str:
    """`50 runs: the first 20 made the baseline, 30 were judged`."""
    done = burn_in.first + burn_in.judged
    asked = figures.count(done, "run") if done == burn_in.asked else f"{done} of {burn_in.asked} runs"
    first = f"the first {burn_in.first} made the baseline, " if burn_in.first else ""
    return f"{asked}: {first}{burn_in.judged} were judged"


def _side_by_side(burn_in: BurnIn, width: int) -> Table:
    forecast, effort = burn_in.forecast, burn_in.forecast.effort
    red = f"{figures.percent(burn_in.red / burn_in.judged)} {figures.interval(burn_in.red_interval)}"
    inconclusive = figures.percent(burn_in.inconclusive / burn_in.judged)
    rows: tuple[tuple[RenderableType, ...], ...] = (
        ("FAIL", Text(red, "bold"), figures.percent(forecast.red)),
        ("INCONCLUSIVE", inconclusive, figures.percent(forecast.inconclusive)),
        ("trials", figures.decimal(burn_in.trials), figures.decimal(effort.trials)),
        ("  confirming", figures.decimal(burn_in.confirming), figures.decimal(effort.confirming)),
        ("  left out early", figures.decimal(burn_in.saved), figures.decimal(effort.saved)),
        ("money", figures.dollars(burn_in.cost), figures.dollars(effort.cost)),
    )
    header = (*columns("", no_wrap=True), *columns("measured", "forecast", justify="right", no_wrap=True))
    return plain_table(width, header, rows)


def _agrees(burn_in: BurnIn) -> bool:
    return burn_in.red_interval.low <= burn_in.forecast.red <= burn_in.red_interval.high


def _agreement(burn_in: BurnIn) -> str:
    if _agrees(burn_in):
        return "the forecast, at the measured pass rates, lies within the 95 % interval of what was measured"
    return (
        "the forecast, at the measured pass rates, lies outside of the 95 % interval of what was measured: trials of "
        "one run may have failed together, as when a provider has a bad hour"
    )
