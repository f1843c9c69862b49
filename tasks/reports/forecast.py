"""What a gate will do before it is switched on, readable at a glance."""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from statistics import fmean

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from passgate.tasks.model.forecast import Advice, Catch, Cause, Effort, Forecast, TaskForecast
from passgate.tasks.reports import figures
from passgate.tasks.reports.console import MESSAGE, NAME, heading, plain_table, rendered
from passgate.tasks.reports.escape import printable

MOST_CAUSES = 5
_MOST_NAMES = 3
_TARGET_STYLES = {True: "bold green", False: "bold red"}


def forecast_text(forecast: Forecast, *, width: int, color: bool) -> str:
    """False reds, what is caught, what a verdict costs, why the gate is red, and what would help."""
    parts: list[RenderableType] = [
        Text(printable(f"{forecast.gate} with {forecast.agent}: {figures.count(len(forecast.tasks), 'task')}", NAME)),
        Text(_grounds(forecast), "dim"),
        heading("how often an unchanged agent is red"),
        _reds(forecast, width),
        heading("how surely one task that falls is caught"),
        catches_table(forecast.catches, width),
        Text("worst: of the tasks the one that is caught least; strict: if any failed task blocked", "dim"),
        heading("what a verdict costs"),
        Text(effort_text(forecast.effort)),
    ]
    if forecast.causes:
        parts += [heading("why it is red"), causes_table(forecast.rules, forecast.causes, width)]
    parts += [heading(f"the smallest change that brings it to {figures.percent(forecast.target)}")]
    parts += _advice(forecast, width)
    notes = [Text(f"note  {printable(note, MESSAGE)}", "dim") for note in _notes(forecast)]
    return rendered(*parts, *([Text()] if notes else []), *notes, width=width, color=color)


def _grounds(forecast: Forecast) -> str:
    rates = [task.pass_rate for task in forecast.tasks]
    low, high = (figures.percent(end(rates)) if rates else figures.UNKNOWN for end in (min, max))
    span = low if low == high else f"{low} to {high}"
    trials = sum(task.n or 0 for task in forecast.tasks)
    match forecast.rates:
        case "history":
            said = f"{span}, from {figures.count(trials, 'trial')} of the history, drawn towards that of all tasks"
        case "burn-in":
            said = f"{span}, as measured"
        case "assumed":
            said = f"{span}, assumed"
        case "file":
            said = f"{span}, as the file says"
    runs = forecast.baseline_runs
    made = figures.count(runs, "run") if runs else "what as many runs of such an agent as the policy pools would give"
    return f"pass rates  {said}\nbaseline    {made}"


def _reds(forecast: Forecast, width: int) -> Table:
    table = _pairs(width)
    style = _TARGET_STYLES[forecast.red <= forecast.target]
    table.add_row(
        "FAIL", Text(figures.percent(forecast.red), style), f"strict rule {figures.percent(forecast.strict_red)}"
    )
    table.add_row("INCONCLUSIVE", Text(figures.percent(forecast.inconclusive)), "")
    return table


def _pairs(width: int) -> Table:
    table = plain_table(width)
    table.show_header = False
    table.add_column()
    table.add_column(justify="right")
    table.add_column(style="dim")
    return table


def catches_table(catches: Sequence[Catch], width: int) -> Table:
    """By what the task falls to: how often its failure makes the gate red, beside the strict rule."""
    table = plain_table(width)
    table.add_column("falls to", no_wrap=True)
    table.add_column("caught", justify="right", no_wrap=True)
    table.add_column("worst", justify="right", no_wrap=True)
    table.add_column("strict", justify="right", no_wrap=True)
    table.add_column("worst task", overflow="fold")
    for catch in catches:
        table.add_row(
            figures.percent(catch.pass_rate),
            Text(figures.percent(catch.mean), "bold"),
            figures.percent(catch.worst),
            figures.percent(catch.strict_mean),
            printable(catch.worst_task, NAME) if catch.tasks else "no task that can block passes more often",
        )
    return table


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


def causes_table(rules: Sequence[Cause], causes: Sequence[Cause], width: int) -> Table:
    """The rules that make the gate red, and the tasks that do so most often."""
    table = plain_table(width)
    table.add_column("by rule", no_wrap=True)
    table.add_column("share", justify="right", no_wrap=True)
    table.add_column("by task", overflow="fold")
    table.add_column("share", justify="right", no_wrap=True)
    table.add_column("in all runs", justify="right", no_wrap=True)
    for rule, cause in zip_longest(rules, causes[:MOST_CAUSES]):
        table.add_row(*_of_rule(rule), *_of_task(cause))
    hidden = len(causes) - MOST_CAUSES
    if hidden > 0:
        table.add_row(
            "", "", Text(f"{hidden} more", "dim"), figures.percent(sum(one.share for one in causes[MOST_CAUSES:])), ""
        )
    return table


def _of_rule(cause: Cause | None) -> tuple[str, str]:
    return ("", "") if cause is None else (str(cause.rule), figures.percent(cause.share))


def _of_task(cause: Cause | None) -> tuple[str, str, str]:
    if cause is None:
        return "", "", ""
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
    table = _pairs(width)
    red = Text(figures.percent(advice.red), _TARGET_STYLES[advice.reaches_target])
    table.add_row("then FAIL", red, f"in place of {figures.percent(forecast.red)}")
    for now, then in zip(forecast.catches, advice.catches, strict=True):
        before = f"in place of {figures.percent(now.mean)}"
        table.add_row(f"caught at {figures.percent(now.pass_rate)}", figures.percent(then.mean), before)
    trials = f"in place of {figures.decimal(forecast.effort.trials)}"
    table.add_row("trials", figures.decimal(advice.effort.trials), trials)
    return table


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
