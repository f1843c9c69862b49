"""What a gate will do before it is switched on, and what it did in many runs beside the forecast, for a terminal."""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from statistics import fmean

from rich.console import RenderableType
from rich.table import Column, Table
from rich.text import Text

from passgate.tasks.model.forecast import AgentFall, BurnIn, Catch, Cause, Effort, Forecast, TaskForecast
from passgate.tasks.reports import figures
from passgate.tasks.reports.console import MESSAGE, NAME, columns, heading, plain_table, rendered
from passgate.tasks.reports.escape import printable

_MOST_CAUSES = 5
_MOST_NAMES = 3
_TARGET_STYLES = {True: "bold green", False: "bold red"}


def forecast_text(forecast: Forecast, *, width: int, color: bool) -> str:
    """Return false failures, what is caught, what a verdict costs, why the gate is red, and what would help."""
    red = Text(figures.percent(forecast.red), _TARGET_STYLES[forecast.red <= forecast.target])
    failures = (
        ("FAIL", red, f"strict rule {figures.percent(forecast.strict_red)}"),
        ("INCONCLUSIVE", figures.percent(forecast.inconclusive), ""),
    )
    parts: list[RenderableType] = [
        Text(printable(f"{forecast.gate} with {forecast.agent}: {figures.count(len(forecast.tasks), 'task')}", NAME)),
        Text(_basis(forecast), "dim"),
        heading("false failures of an unchanged agent"),
        _triples(width, *failures),
        heading("how often the gate catches one task that falls"),
        _catches_table(forecast.catches, width),
        Text("worst: the task that is caught least often; strict: a gate in which any failed task blocks", "dim"),
        heading("how often the gate is red if the whole agent falls"),
        _agent_falls_table(forecast.agent_falls, width),
        heading("what a verdict costs"),
        Text(effort_text(forecast.effort)),
    ]
    if forecast.causes:
        parts += [heading("why it is red"), _causes_table(forecast.rules, forecast.causes, width)]
    parts.append(heading(f"the smallest change that brings FAIL to {figures.percent(forecast.target)}"))
    parts += _advice(forecast, width)
    notes = [Text(f"note  {printable(note, MESSAGE)}", "dim") for note in _notes(forecast)]
    return rendered(*parts, *([Text()] if notes else []), *notes, width=width, color=color)


def _basis(forecast: Forecast) -> str:
    rates = [task.pass_rate for task in forecast.tasks]
    low, high = (figures.percent(end(rates)) if rates else figures.UNKNOWN for end in (min, max))
    trials = figures.count(sum(task.n or 0 for task in forecast.tasks), "trial")
    sources = {
        "history": f"from {trials} of the history, each drawn towards the rate of all tasks",
        "burn-in": "as measured",
        "assumed": "assumed",
        "file": "as the file says",
    }
    runs = forecast.baseline_runs
    made = figures.count(runs, "run") if runs else "assumed: as many runs of this agent as the policy pools"
    span = low if low == high else f"{low} to {high}"
    return f"pass rates  {span}, {sources[forecast.rates]}\nbaseline    {made}"


def _triples(width: int, *rows: tuple[RenderableType, ...]) -> Table:
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


def _agent_falls_table(falls: Sequence[AgentFall], width: int) -> Table:
    """By what every task keeps of its pass rate: how often the gate is red."""
    header = (*columns("each task keeps", no_wrap=True), *columns("red", "strict", justify="right", no_wrap=True))
    rows = (
        (figures.percent(fall.share), Text(figures.percent(fall.red), "bold"), figures.percent(fall.strict_red))
        for fall in falls
    )
    return plain_table(width, header, rows)


def effort_text(effort: Effort) -> str:
    """Return trials, money and time of one verdict."""
    confirming = f" + {figures.decimal(effort.confirming)} confirming" if effort.confirming else ""
    saved = f" - at most {figures.decimal(effort.saved)} saved early" if effort.saved else ""
    lines = (
        f"trials  {figures.decimal(effort.trials)} expected: {effort.planned} planned{confirming}{saved}",
        f"money   {figures.dollars(effort.cost)}",
        f"time    {figures.duration(effort.seconds)}",
    )
    return "\n".join(lines)


def _causes_table(rules: Sequence[Cause], causes: Sequence[Cause], width: int) -> Table:
    """Return the rules that make the gate red, and the tasks that do so most often."""
    header = (
        *columns("by rule", no_wrap=True),
        *columns("share", justify="right", no_wrap=True),
        *columns("by task"),
        *columns("share", "of all runs", justify="right", no_wrap=True),
    )
    by_rule = [(str(cause.rule), figures.percent(cause.share)) for cause in rules]
    by_task = []
    for cause in causes[:_MOST_CAUSES]:
        name = cause.task or (f"{cause.rule} of {cause.suite}" if cause.suite else str(cause.rule))
        by_task.append((printable(name, NAME), figures.percent(cause.share), figures.percent(cause.chance)))
    rows: list[tuple[RenderableType, ...]] = [
        (*(rule or ("", "")), *(task or ("", "", ""))) for rule, task in zip_longest(by_rule, by_task)
    ]
    hidden = causes[_MOST_CAUSES:]
    if hidden:
        # Without the share of all runs: the chances of tasks that may be red together do not add up.
        share = figures.percent(sum(one.share for one in hidden))
        rows.append(("", "", Text(f"{len(hidden)} more", "dim"), share, ""))
    return plain_table(width, header, rows)


def _advice(forecast: Forecast, width: int) -> list[RenderableType]:
    advice = forecast.advice
    if advice is None:
        return [Text("none is needed", "green")]
    if not advice.changes:
        return [Text("no change of the policy does that: repair the tasks above", "yellow")]
    parts: list[RenderableType] = []
    if not advice.reaches_target:
        parts.append(Text("no one or two changes do that; these come closest:", "yellow"))
    for change in advice.changes:
        parts.append(Text(f"{change.file}  {printable(change.what, MESSAGE)}"))
        for line in change.lines:
            # The YAML keeps its indent, because the user copies it.
            indent = " " * (4 + len(line) - len(line.lstrip(" ")))
            parts.append(Text(indent + printable(line, MESSAGE)))
    # What the changes bring and what they cost, in catching and in trials.
    red = Text(figures.percent(advice.red), _TARGET_STYLES[advice.reaches_target])
    rows: list[tuple[str, RenderableType, str]] = [("FAIL then", red, figures.percent(forecast.red))]
    for now, then in zip(forecast.catches, advice.catches, strict=True):
        name = f"caught at {figures.percent(now.pass_rate)}"
        rows.append((name, figures.percent(then.mean), figures.percent(now.mean)))
    rows.append(("trials", figures.decimal(advice.effort.trials), figures.decimal(forecast.effort.trials)))
    return [*parts, _triples(width, *((name, then, f"instead of {now}") for name, then, now in rows))]


def _notes(forecast: Forecast) -> Iterator[str]:
    withheld = [task for task in forecast.tasks if task.withheld > 0.5]
    if withheld:
        yield f"{_named(withheld)} cannot block: not admitted yet, or in quarantine"
    elif any(task.withheld > 0 for task in forecast.tasks):
        mean = fmean(task.withheld for task in forecast.tasks)
        yield f"at any time about {figures.percent(mean)} of the tasks are not admitted and cannot block"
    unable = [task for task in forecast.tasks if not task.can_block and task not in withheld]
    if unable:
        yield f"{_named(unable)} cannot make the gate red, however far they fall"
    yield from forecast.notes


def _named(tasks: Sequence[TaskForecast]) -> str:
    """`7 tasks (golden/a, golden/b, golden/c and 4 more)`."""
    return f"{figures.count(len(tasks), 'task')} ({figures.listed([task.task for task in tasks], _MOST_NAMES)})"


def burn_in_text(burn_in: BurnIn, *, width: int, color: bool) -> str:
    """Return measured and forecast side by side, why runs were red, and where the trials are."""
    done = burn_in.first + burn_in.judged
    runs = figures.count(done, "run") if done == burn_in.asked else f"{done} of {burn_in.asked} runs"
    first = f"the first {burn_in.first} made the baseline, " if burn_in.first else ""
    title = f"{burn_in.gate} with {burn_in.agent}: {runs}: {first}{burn_in.judged} were judged"
    agrees = burn_in.red_interval.low <= burn_in.forecast.red <= burn_in.red_interval.high
    agreement = f"lies {'within' if agrees else 'outside'} the 95 % interval of the measured share of FAIL"
    # The forecast knows by how much whole runs differ; only that trials depend on each other otherwise can explain it.
    cause = "" if agrees else ": trials of one run may have failed together, as when a provider has a bad hour"
    parts: list[RenderableType] = [
        Text(printable(title, NAME + MESSAGE)),
        heading("in the runs that were judged"),
        _side_by_side(burn_in, width),
        Text(f"the forecast, at the measured pass rates, {agreement}{cause}", "dim" if agrees else "yellow"),
    ]
    if burn_in.causes:
        parts += [heading("why they were red"), _causes_table(burn_in.rules, burn_in.causes, width)]
    notes = (*([burn_in.why_ended] if burn_in.why_ended else []), *burn_in.forecast.notes)
    parts += [Text()] + [Text(f"note  {printable(note, MESSAGE)}", "dim") for note in notes]
    parts += [Text(f"spent   {figures.dollars(burn_in.spent)}"), Text(f"trials  {printable(burn_in.folder, MESSAGE)}")]
    return rendered(*parts, width=width, color=color)


def _side_by_side(burn_in: BurnIn, width: int) -> Table:
    forecast, effort = burn_in.forecast, burn_in.forecast.effort
    red = f"{figures.percent(burn_in.red / burn_in.judged)} {figures.interval(burn_in.red_interval)}"
    inconclusive = figures.percent(burn_in.inconclusive / burn_in.judged)
    rows: tuple[tuple[RenderableType, ...], ...] = (
        ("FAIL", Text(red, "bold"), figures.percent(forecast.red)),
        ("INCONCLUSIVE", inconclusive, figures.percent(forecast.inconclusive)),
        ("trials", figures.decimal(burn_in.trials), figures.decimal(effort.trials)),
        ("  confirming", figures.decimal(burn_in.confirming), figures.decimal(effort.confirming)),
        ("  saved early", figures.decimal(burn_in.saved), figures.decimal(effort.saved)),
        ("money", figures.dollars(burn_in.cost), figures.dollars(effort.cost)),
    )
    header = (*columns("", no_wrap=True), *columns("measured", "forecast", justify="right", no_wrap=True))
    return plain_table(width, header, rows)
