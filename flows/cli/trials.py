"""Commands about single trials and stored verdicts: `passgate try`, `doctor`, `judge` and `sign-off`."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from passgate.flows.cli import options
from passgate.flows.cli.output import VerdictCode, answer, color, is_screen, say_verdict, width
from passgate.flows.process.interrupts import run_until_interrupted
from passgate.tasks.errors import ExitCode, UsageError
from passgate.tasks.reports.escape import printable
from passgate.tasks.reports.messages import LONGEST_MESSAGE, warn


def try_task(
    named: Annotated[
        Path,
        typer.Argument(
            metavar="TASK",
            help="The task's file, or its name as reports print it: golden/action-items_1.",
            parser=options.named_path,
            autocompletion=options.complete_tasks,
        ),
    ],
    task: Annotated[
        str | None, typer.Option(metavar="ID", help="One task of the file. Required if the file has several.")
    ] = None,
    agent: options.AgentOption = "oracle",
    suites: options.SuitesOption = "suites",
    gates: options.GatesOption = "gates.yaml",
) -> int:
    """Run one trial of one task and print the transcript and the grades. Record nothing."""
    from passgate.tasks.commands.try_task import try_task as run_one_trial
    from passgate.tasks.model.trial import TrialStatus
    from passgate.tasks.reports.terminal_trial import trial_report

    finished = run_until_interrupted(run_one_trial(named, task, agent, Path(gates), Path(suites)))
    report = trial_report(finished, width=width(), color=color())
    answer(lambda: report, finished)
    if finished.has_not_started:
        return ExitCode.BAD_INPUT
    codes = {TrialStatus.PASSED: ExitCode.PASS, TrialStatus.FAILED: ExitCode.FAIL}
    return codes.get(finished.trial.status, ExitCode.INCONCLUSIVE)


def doctor(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="AGENT", help="Agents, as for --agent. Default: every agent with a name."),
    ] = None,
    suites: options.SuitesOption = "suites",
    gates: options.GatesOption = "gates.yaml",
    tries: Annotated[
        bool, typer.Option("--try", help="Also run and show one trial of each AGENT. Record nothing.")
    ] = False,
) -> int:
    """Check the machine, the files, the LLM judge and the agents: commands, endpoints, keys and prices."""
    from passgate.tasks.commands.doctor import examine_and_try
    from passgate.tasks.model.checks import State
    from passgate.tasks.reports.checks import doctor_report
    from passgate.tasks.reports.terminal_trial import trial_report

    if tries and not names:
        raise UsageError("--try needs the agents to be tried: passgate doctor AGENT --try")
    symptoms, trials = run_until_interrupted(examine_and_try(names or [], Path(gates), Path(suites), tries=tries))
    reports = [doctor_report(symptoms, width=width(), color=color())]
    reports += [trial_report(trial, width=width(), color=color()) for trial in trials]
    answer(lambda: "\n".join(reports), {"checks": symptoms, "trials": trials})
    failed = any(symptom.state is State.FAILED for symptom in symptoms)
    return ExitCode.BAD_INPUT if failed else ExitCode.PASS


def judge(
    run: options.RunArgument,
    gates: options.GatesOption = "gates.yaml",
    history: options.HistoryOption = None,
) -> VerdictCode:
    """Judge a stored run by the policy of a gates file. Run nothing and write nothing."""
    from passgate.tasks.formats.loading import load_policy
    from passgate.tasks.history.run_store import RunStore
    from passgate.tasks.integrity.checkout import Checkout
    from passgate.tasks.integrity.tracked_folders import open_history
    from passgate.tasks.integrity.who_judges import refuse_doubt
    from passgate.tasks.judge import judge as judge_trials
    from passgate.tasks.measure import measure
    from passgate.tasks.planning.baseline import pooled_baseline, read_rows
    from passgate.tasks.planning.find_run import find_run
    from passgate.tasks.reports.terminal import terminal
    from passgate.tasks.reports.trial import try_options

    store = RunStore.of(find_run(run))
    plan, policy = store.read_plan(), load_policy(Path(gates))
    if plan.gate not in policy.gates:
        raise UsageError(f"{gates} has no gate {plan.gate!s}, but the run used it")
    request = plan.request.model_copy(update={"history": history or plan.request.history})
    plan = plan.model_copy(update={"policy": policy, "request": request})
    checkout = Checkout(Path.cwd())
    refuse_doubt(plan.base, checkout)
    open_history(plan.history_location, checkout)
    earlier = store.read_verdict()
    if earlier is None:
        warn(f"the run {store.name} has not ended: this judges the trials that it has so far")
    trials = store.read_trials()
    baseline = pooled_baseline(plan, read_rows(plan), trials)
    judge_name = earlier.judge if earlier else ""
    verdict = judge_trials(plan, trials, measure(plan, trials, baseline), baseline, judge_name)
    text = terminal(verdict, width=width(), color=color(), options=try_options(request), is_whole=not is_screen())
    return say_verdict(verdict, lambda: text)


def sign_off(
    run: options.RunArgument,
    by: Annotated[str, typer.Option(metavar="NAME", help="Your name.")],
    decision: Annotated[Literal["approve", "reject"], typer.Option(help="`approve` gives PASS, `reject` gives FAIL.")],
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why you decide so.")],
) -> VerdictCode:
    """Approve or reject a run that waits for a sign-off. Refuse if anything has changed since the run."""
    from passgate.tasks.commands.sign_off import sign_off as decide
    from passgate.tasks.history.run_store import RunStore
    from passgate.tasks.planning.find_run import find_run

    run_id = find_run(run)
    verdict = decide(run_id, by=by, decision=decision, reason=reason)
    text = f"{printable(verdict.headline, LONGEST_MESSAGE)}\nartifacts  {RunStore.of(run_id).shown}"
    return say_verdict(verdict, lambda: text)
