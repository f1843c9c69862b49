"""`passgate run`: run a gate and give its verdict."""

import os
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated

import typer

from passgate.flows.cli import options
from passgate.flows.cli.output import VerdictCode, color, is_screen, output_form, say_verdict, width
from passgate.flows.process.interrupts import InterruptionError, ignore_interrupts, run_until_interrupted
from passgate.flows.process.supervision import BegunRun, WorkerReport
from passgate.tasks.errors import EngineError, StorageError, first_known
from passgate.tasks.model.names import GateName
from passgate.tasks.reports.messages import warn

if TYPE_CHECKING:
    from passgate.flows.cli.progress import Progress
    from passgate.tasks.history.run_store import RunStore
    from passgate.tasks.model.run import Plan, RunRequest
    from passgate.tasks.model.verdict import Verdict


def run(
    context: typer.Context,
    gate: options.GateArgument,
    agent: options.AgentOption = "oracle",
    suites: options.SuitesOption = "suites",
    gates: options.GatesOption = "gates.yaml",
    history: options.HistoryOption = None,
    k: Annotated[int | None, typer.Option("--k", min=1, help="Trials of every task, whatever the tasks say.")] = None,
    task: Annotated[
        str | None, typer.Option(metavar="GLOB", help="Run only these tasks: 'golden/*'. Such a run cannot give PASS.")
    ] = None,
    base: options.BaseOption = None,
    jobs: options.JobsOption = None,
    max_cost: options.MaxCostOption = None,
    resume: Annotated[
        str | None,
        typer.Option(
            metavar="RUN",
            help="Continue a stopped run: its id, its folder, its URL, or `last`.",
            autocompletion=options.complete_runs,
        ),
    ] = None,
    run_store: options.RunStoreOption = None,
    engine: Annotated[
        options.EngineName,
        typer.Option(envvar="PASSGATE_ENGINE", help="`prefect` shows the run in Prefect; `none` starts faster."),
    ] = options.EngineName.PREFECT,
    runner: options.RunnerOption = None,
    workers: options.WorkersOption = None,
    runner_address: options.RunnerAddressOption = None,
) -> VerdictCode:
    """Run a gate and give its verdict: run every task k times, grade and record the trials, judge the results."""
    from passgate.tasks.model.run import RunRequest
    from passgate.tasks.planning.requirements import refuse_runner

    # Options have the names of the fields of a request.
    values = {name: value for name, value in locals().items() if name in RunRequest.model_fields}
    request = RunRequest.model_validate(values)
    refuse_runner(request)
    if runner is not None and engine is options.EngineName.NONE:
        raise typer.BadParameter(f"--runner {runner} needs Prefect: leave out --engine none (PASSGATE_ENGINE)")
    if resume is not None:
        request = _resume_request(resume, request, context)
    report = context.obj if isinstance(context.obj, WorkerReport) else WorkerReport()
    begun: list[tuple[RunStore, Plan]] = []
    try:
        verdict = run_until_interrupted(_run(gate, request, engine, report, begun))
    except KeyboardInterrupt as error:
        if not begun:
            raise
        finished = begun[0][0].read_verdict()
        if finished is None:
            remedy = f"resume the run with `passgate run {gate} --resume {begun[0][0].name}`"
            raise InterruptionError(f"interrupted; {remedy}") from error
        verdict = finished
    ignore_interrupts()
    return say_verdict(verdict, lambda: _verdict_text(verdict, *begun[0]))


def _resume_request(name: str, request: "RunRequest", context: typer.Context) -> "RunRequest":
    """Return the request that resumes a run. Refuse options of the command line that the run does not have."""
    from passgate.tasks.model.run import ALSO_OF_RESUMED, RunRequest
    from passgate.tasks.planning.find_run import find_run
    from passgate.tasks.planning.requirements import refuse_other_options

    # Only what is on the command line can contradict the run that is resumed: a default says nothing.
    sources = {name: context.get_parameter_source(name) for name in context.params}
    given = {name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"}
    runs = request.run_store
    earlier = find_run(name if runs is None or "://" in name else f"{runs.rstrip('/')}/{name}")
    refuse_other_options(earlier, request.model_dump(include=given - ALSO_OF_RESUMED - {"run_store"}))
    return RunRequest(run=earlier, **request.model_dump(include=set(ALSO_OF_RESUMED), exclude_none=True))


async def _run(
    gate: GateName,
    request: "RunRequest",
    engine: options.EngineName,
    report: WorkerReport,
    begun: "list[tuple[RunStore, Plan]]",
) -> "Verdict":
    """Run a gate. Add the run to `begun`, and report it to the supervisor, as soon as its folder exists."""
    from passgate.flows.cli.engine import run_gate
    from passgate.tasks.history.run_store import RunStore
    from passgate.tasks.load import load

    plan = load(gate, request, by_hand=True)
    engine = _choose_engine(plan, engine)
    store = RunStore.of(plan.run_id)
    store.begin()
    begun.append((store, plan))
    report.report_run(BegunRun(run_id=store.name, gate=str(gate), verdict_file=str(store.verdict)))
    failure: Exception | None = None
    request = request.model_copy(update={"run": plan.run_id, "agent": plan.request.agent})
    with nullcontext() if output_form.get().quiet else _progress(plan, store):
        try:
            await run_gate(store, plan, request, engine)
        except Exception as error:  # noqa: BLE001 - no later failure changes the verdict
            failure = error
    verdict = store.read_verdict()
    known = None if failure is None else first_known(failure)
    if verdict is None and isinstance(known, StorageError):
        raise StorageError(f"{known}; resume the run with `passgate run {gate} --resume {store.name}`") from failure
    if verdict is None:
        raise failure or EngineError("the run has ended without a verdict")
    if failure is not None:
        warn(f"the verdict stands, but {known or failure}")
    return verdict


def _progress(plan: "Plan", store: "RunStore") -> "Progress":
    from passgate.flows.cli.progress import Progress

    return Progress(plan, store)


def _choose_engine(plan: "Plan", engine: options.EngineName) -> options.EngineName:
    """Return the engine of a plan's run: none, with a warning, if the change edits settings of Prefect."""
    from passgate.tasks.execution.worker import refuse_uncounted

    limit = plan.agent.concurrency_limit
    # On import, Prefect loads the modules that its settings name, and the change has edited these settings.
    if plan.base.prefect_edits:
        edits = "the change edits settings of Prefect: the trials run"
        if plan.request.runner is not None:
            warn(f"{edits} in this process, not on {plan.request.runner!s}")
        if limit is not None:
            warn(f"{edits} without slots of the concurrency limit {limit}")
        return options.EngineName.NONE
    if engine is options.EngineName.NONE:
        refuse_uncounted(plan)
    return engine


def _verdict_text(verdict: "Verdict", store: "RunStore", plan: "Plan") -> str:
    from passgate.tasks.reports.annotations import github_annotations
    from passgate.tasks.reports.page import PAGE
    from passgate.tasks.reports.terminal import terminal
    from passgate.tasks.reports.trial import try_options

    options = try_options(plan.request)
    text = terminal(verdict, width=width(), color=color(), options=options, is_whole=not is_screen())
    annotations = github_annotations(verdict) if os.environ.get("GITHUB_ACTIONS") == "true" else ""
    place = f"artifacts  {store.shown}" if store.url is not None else f"page  {store.shown}/{PAGE}"
    return f"{text}{place}\n{annotations}"
