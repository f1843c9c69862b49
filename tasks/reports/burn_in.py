"""What a gate has done in many runs, beside what the forecast says."""

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from passgate.tasks.model.forecast import BurnIn
from passgate.tasks.reports import figures
from passgate.tasks.reports.console import MESSAGE, NAME, heading, plain_table, rendered
from passgate.tasks.reports.escape import printable
from passgate.tasks.reports.forecast import causes_table


def burn_in_text(burn_in: BurnIn, *, width: int, color: bool) -> str:
    """Measured and forecast side by side, why runs were red, and where the trials are."""
    parts: list[RenderableType] = [
        Text(printable(f"{burn_in.gate} with {burn_in.agent}: {_runs(burn_in)}", NAME + MESSAGE)),
        heading("in the runs that were judged"),
        _side_by_side(burn_in, width),
        Text(_agreement(burn_in), "dim" if _agrees(burn_in) else "yellow"),
    ]
    if burn_in.causes:
        parts += [heading("why they were red"), causes_table(burn_in.rules, burn_in.causes, width)]
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
    table = plain_table(width)
    table.add_column("", no_wrap=True)
    for name in ("measured", "forecast"):
        table.add_column(name, justify="right", no_wrap=True)
    red = f"{figures.percent(burn_in.red / burn_in.judged)} {figures.interval(burn_in.red_interval)}"
    table.add_row("FAIL", Text(red, "bold"), figures.percent(forecast.red))
    inconclusive = figures.percent(burn_in.inconclusive / burn_in.judged)
    table.add_row("INCONCLUSIVE", inconclusive, figures.percent(forecast.inconclusive))
    table.add_row("trials", figures.decimal(burn_in.trials), figures.decimal(effort.trials))
    table.add_row("  confirming", figures.decimal(burn_in.confirming), figures.decimal(effort.confirming))
    table.add_row("  left out early", figures.decimal(burn_in.saved), figures.decimal(effort.saved))
    table.add_row("money", figures.dollars(burn_in.cost), figures.dollars(effort.cost))
    return table


def _agrees(burn_in: BurnIn) -> bool:
    return burn_in.red_interval.low <= burn_in.forecast.red <= burn_in.red_interval.high


def _agreement(burn_in: BurnIn) -> str:
    if _agrees(burn_in):
        return "the forecast, at the measured pass rates, lies within the 95 % interval of what was measured"
    return (
        "the forecast, at the measured pass rates, lies outside of the 95 % interval of what was measured: trials of "
        "one run may have failed together, as when a provider has a bad hour"
    )
