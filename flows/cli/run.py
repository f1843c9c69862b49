"""`passgate run`: a gate, from suites to exit code."""

import os
from typing import TYPE_CHECKING, Annotated

import typer

from passgate.flows.cli.options import AgentOption, BaseOption, GatesOption, HistoryOption, SuitesOption
from passgate.tasks.model.task import GateName

if TYPE_CHECKING:
    from passgate.tasks.model.run import RunRequest


def run(
    gate: Annotated[GateName, typer.Argument(help="The gate.", show_default=False)],
    agent: AgentOption = "oracle",
    suites: SuitesOption = "suites",
    gates: GatesOption = "gates.yaml",
    history: HistoryOption = None,
    k: Annotated[int | None, typer.Option("--k", min=1, help="Trials of every task, whatever the tasks say.")] = None,
    task: Annotated[
        str | None, typer.Option("--task", metavar="GLOB", help="Only these tasks, as in 'golden/*'. Never a PASS.")
    ] = None,
    base: BaseOption = None,
    jobs: Annotated[int | None, typer.Option("--jobs", min=1, help="Trials at once.")] = None,
    max_cost: Annotated[
        float | None, typer.Option("--max-cost", metavar="USD", min=0, help="The most that the whole run may cost.")
    ] = None,
    resume: Annotated[
        str | None, typer.Option("--resume", metavar="RUN", help="Carry on a run: its id, or `last`.")
    ] = None,
) -> int:
    """Run a gate: every task k times, graded, recorded and judged."""
    from passgate.flows.interrupts import until_ended
    from passgate.tasks.errors import UsageError
    from passgate.tasks.history.run_folder import find_run
    from passgate.tasks.model.run import RunRequest

    request = RunRequest(
        agent=agent,
        suites=suites,
        gates=gates,
        history=history,
        k=k,
        task=task,
        base=base,
    )
    if resume is not None and request != RunRequest():
        raise UsageError("--resume carries a run on as it was begun: beside it only --jobs and --max-cost can be given")
    begun = None if resume is None else find_run(resume)
    request = request.model_copy(update={"jobs": jobs, "max_cost": max_cost, "run": begun})
    return until_ended(_run(gate, request))


async def _run(gate: GateName, request: "RunRequest") -> int:
    from passgate.flows.cli.engine import run_gate
    from passgate.flows.cli.progress import Progress
    from passgate.flows.cli.terminal import color, say, warn, width
    from passgate.tasks.errors import EngineError
    from passgate.tasks.history.run_folder import RunFolder
    from passgate.tasks.prepare import prepare
    from passgate.tasks.reports.annotations import github_annotations
    from passgate.tasks.reports.terminal import terminal

    plan = prepare(gate, request)
    folder = RunFolder(plan.run_id)
    folder.begin()
    with Progress(plan, folder.journal):
        failure = await run_gate(plan.gate, request.model_copy(update={"run": plan.run_id}))
    verdict = folder.read_verdict()
    if verdict is None:
        raise failure or EngineError("Prefect ended the flow without a verdict")
    if isinstance(failure, EngineError):
        warn(f"the verdict stands, but {failure}")
    say(terminal(verdict, width=width(), color=color()))
    say(f"artifacts  {folder.shown}")
    if os.environ.get("GITHUB_ACTIONS") == "true":
        say(github_annotations(verdict))
    return verdict.exit_code
