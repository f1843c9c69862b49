"""`passgate forecast`: predict how a gate behaves before you switch it on."""

from pathlib import Path
from typing import Annotated

import typer

from passgate.flows.cli import options


def forecast(
    gate: options.GateArgument,
    agent: options.AgentOption = "oracle",
    suites: options.SuitesOption = "suites",
    gates: options.GatesOption = "gates.yaml",
    history: options.HistoryOption = None,
    base: options.BaseOption = None,
    assume: Annotated[
        float | None, typer.Option(metavar="RATE", min=0, max=1, help="Assume this pass rate for every task: 0.99.")
    ] = None,
    rates: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.json", help='Pass rates by task: {"golden/a": 0.98}, or a list in the order of the tasks.'
        ),
    ] = None,
    runs: Annotated[int, typer.Option(metavar="N", min=100, max=1_000_000, help="Number of simulated runs.")] = 10_000,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Seed of the simulation.")] = 0,
    plot: options.PlotOption = None,
    as_json: options.JsonOption = False,
    quiet: options.QuietOption = False,
) -> int:
    """Predict the false-failure rate, the detection rate and the cost of a gate. Suggest a better policy."""
    from passgate.flows.cli.output import answer
    from passgate.flows.cli.terminal import color, width, write_plot
    from passgate.tasks.commands.forecast import basis_of_options, plan_of_forecast
    from passgate.tasks.commands.forecast import forecast as make_forecast
    from passgate.tasks.errors import UsageError
    from passgate.tasks.model.run import RunRequest
    from passgate.tasks.reports.forecast import forecast_text
    from passgate.tasks.reports.messages import warn

    if assume is not None and rates is not None:
        raise UsageError("give --assume or --rates, not both")
    if plot is not None and plot.suffix.lower() != ".svg":
        raise UsageError(f"--plot {plot}: the picture is an SVG: give FILE.svg")
    request = RunRequest(agent=agent, suites=suites, gates=gates, history=history, base=base)
    plan = plan_of_forecast(gate, request)
    found = make_forecast(plan, basis_of_options(plan, assume, rates), gates=runs, seed=seed)
    answer(lambda: forecast_text(found, width=width(), color=color()), lambda: found, as_json=as_json, quiet=quiet)
    if plot is not None:
        from passgate.tasks.reports.forecast_plot import forecast_plot

        write_plot(plot, forecast_plot(found))
        # On standard error: standard output may be JSON.
        if not quiet:
            warn(f"plot  {plot}")
    return 0
