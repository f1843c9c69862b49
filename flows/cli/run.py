"""`passgate run`: run a gate and give its verdict."""

import os
from collections.abc import Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from passgate.flows.cli import options
from passgate.flows.cli.completion import complete_runs
from passgate.flows.process.exit_code import BegunRun, WorkerReport
from passgate.tasks.model.names import GateName

if TYPE_CHECKING:
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
            autocompletion=complete_runs,
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
    as_json: options.JsonOption = False,
    quiet: options.QuietOption = False,
) -> int:
    """Run a gate and give its verdict: run every task k times, grade and record the trials, judge the results."""
    from passgate.flows.cli.output import say_verdict
    from passgate.flows.process.interrupts import ignore_interrupts
    from passgate.tasks.model.run import RunRequest

    request = RunRequest(
        agent=agent,
        suites=suites,
        gates=gates,
        history=history,
        k=k,
        task=task,
        base=base,
        jobs=jobs,
        max_cost=max_cost,
        run_store=run_store,
        runner=runner,
        workers=workers,
        runner_address=runner_address,
    )
    if runner is not None or workers is not None or runner_address is not None:
        from passgate.flows.executors import refuse_runner

        refuse_runner(request)
    if runner is not None and engine is options.EngineName.NONE:
        raise typer.BadParameter(f"--runner {runner} needs Prefect: leave out --engine none (PASSGATE_ENGINE)")
    if resume is not None:
        # Only what is on the command line can contradict the run that is resumed: a default says nothing.
        sources = {name: context.get_parameter_source(name) for name in context.params}
        given = {name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"}
        request = _resumed(resume, request, given)
    report = context.obj if isinstance(context.obj, WorkerReport) else WorkerReport()
    judged = _judged(gate, request, engine, report, progress=not quiet)
    ignore_interrupts()
    say_verdict(judged.verdict, judged.text, as_json=as_json, quiet=quiet)
    return judged.verdict.exit_code


def _resumed(name: str, request: "RunRequest", given: set[str]) -> "RunRequest":
    """Return the request that continues a run. Refuse options that were given and that the run does not have."""
    from passgate.tasks.model.run import ALSO_OF_RESUMED, RunRequest
    from passgate.tasks.planning.find_run import find_run
    from passgate.tasks.planning.requirements import refuse_other_options

    runs = request.run_store
    earlier = find_run(name if runs is None or "://" in name else f"{runs.rstrip('/')}/{name}")
    refuse_other_options(earlier, request.model_dump(include=given - ALSO_OF_RESUMED - {"run_store"}))
    return RunRequest(run=earlier, **request.model_dump(include=set(ALSO_OF_RESUMED), exclude_none=True))


class _Judged(NamedTuple):
    """A run that has its verdict."""

    verdict: "Verdict"
    store: "RunStore"
    request: "RunRequest"

    def text(self) -> str:
        from passgate.flows.cli.terminal import color, is_screen, width
        from passgate.tasks.reports.annotations import github_annotations
        from passgate.tasks.reports.page import PAGE
        from passgate.tasks.reports.terminal import terminal
        from passgate.tasks.reports.trial import try_options

        shown = terminal(
            self.verdict, width=width(), color=color(), options=try_options(self.request), is_whole=not is_screen()
        )
        annotations = github_annotations(self.verdict) if os.environ.get("GITHUB_ACTIONS") == "true" else ""
        store = self.store
        place = f"artifacts  {store.shown}" if store.url is not None else f"page  {store.shown}/{PAGE}"
        return f"{shown}{place}\n{annotations}"


def _judged(
    gate: GateName, request: "RunRequest", engine: options.EngineName, report: WorkerReport, *, progress: bool
) -> _Judged:
    """Run a gate. Tell the supervisor when the run begins."""
    from passgate.flows.process.interrupts import InterruptionError, until_ended

    begun: list[RunStore] = []
    requested: list[RunRequest] = []

    def begin(store: "RunStore", plan: "Plan") -> None:
        begun.append(store)
        requested.append(plan.request)
        report.run_begun(BegunRun(run_id=store.name, gate=str(gate), verdict_file=str(store.verdict)))

    try:
        verdict = until_ended(_run(gate, request, engine, begin, progress=progress))
    except KeyboardInterrupt as error:
        if not begun:
            raise
        stands = begun[0].read_verdict()
        if stands is None:
            message = f"interrupted; resume the run with `passgate run {gate} --resume {begun[0].name}`"
            raise InterruptionError(message) from error
        verdict = stands
    return _Judged(verdict, begun[0], requested[0])


async def _run(
    gate: GateName,
    request: "RunRequest",
    engine: options.EngineName,
    begin: "Callable[[RunStore, Plan], None]",
    *,
    progress: bool,
) -> "Verdict":
    """Run a gate. Call `begin` with the run's folder as soon as the folder exists."""
    from passgate.flows.cli.engine import run_gate
    from passgate.flows.cli.progress import Progress
    from passgate.tasks.errors import EngineError, StorageError, first_known
    from passgate.tasks.history.run_store import RunStore
    from passgate.tasks.load import load
    from passgate.tasks.reports.messages import warn

    plan = load(gate, request, by_hand=True)
    engine = _engine_of(plan, engine)
    store = RunStore.of(plan.run_id)
    store.begin()
    begin(store, plan)
    failure: Exception | None = None
    with Progress(plan, store) if progress else nullcontext():
        try:
            await run_gate(
                store, plan, request.model_copy(update={"run": plan.run_id, "agent": plan.request.agent}), engine
            )
        except Exception as error:  # noqa: BLE001 - no later failure changes the verdict
            failure = error
    verdict = store.read_verdict()
    if verdict is None and isinstance(known := first_known(failure) if failure else None, StorageError):
        raise StorageError(f"{known}; resume the run with `passgate run {gate} --resume {store.name}`") from failure
    if verdict is None:
        raise failure or EngineError("the run has ended without a verdict")
    if failure is not None:
        warn(f"the verdict stands, but {first_known(failure) or failure}")
    return verdict


def _engine_of(plan: "Plan", engine: options.EngineName) -> options.EngineName:
    """Return the engine of a plan's run: none, with a warning, if the change edits settings of Prefect."""
    from passgate.tasks.execution.worker import refuse_uncounted
    from passgate.tasks.reports.messages import warn

    # On import, Prefect loads the modules that its settings name, and the change has edited these settings.
    if plan.base.prefect_edits:
        if plan.request.runner is not None:
            warn(
                f"the change edits settings of Prefect: the trials run in this process, not on {plan.request.runner!s}"
            )
        if plan.agent.concurrency_limit is not None:
            limit = plan.agent.concurrency_limit
            warn(f"the change edits settings of Prefect: the trials run without slots of the concurrency limit {limit}")
        return options.EngineName.NONE
    if engine is options.EngineName.NONE:
        refuse_uncounted(plan)
    return engine
