"""`passgate judge`: apply a policy to a stored run."""

from pathlib import Path

from passgate.flows.cli import options


def judge(
    run: options.RunArgument,
    gates: options.GatesOption = "gates.yaml",
    history: options.HistoryOption = None,
    as_json: options.JsonOption = False,
    quiet: options.QuietOption = False,
) -> int:
    """Judge a stored run by the policy of a gates file. Run nothing and write nothing."""
    from passgate.flows.cli.output import say_verdict
    from passgate.flows.cli.terminal import color, is_screen, width
    from passgate.tasks.errors import UsageError
    from passgate.tasks.formats.loading import load_policy
    from passgate.tasks.history.run_store import RunStore
    from passgate.tasks.integrity.checkout import Checkout
    from passgate.tasks.integrity.tracked_folders import open_history
    from passgate.tasks.integrity.who_judges import refuse_doubt
    from passgate.tasks.judge import judge as judge_trials
    from passgate.tasks.measure import measure
    from passgate.tasks.planning.baseline import pooled_baseline, read_rows
    from passgate.tasks.planning.find_run import find_run
    from passgate.tasks.reports.messages import warn
    from passgate.tasks.reports.terminal import terminal
    from passgate.tasks.reports.trial import try_options

    store = RunStore.of(find_run(run))
    plan, policy = store.read_plan(), load_policy(Path(gates))
    if plan.gate not in policy.gates:
        raise UsageError(f"{gates} has no gate {plan.gate!s}, which the run is of")
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
    measurement = measure(plan, trials, baseline)
    verdict = judge_trials(plan, policy, trials, measurement, baseline, earlier.judge if earlier else "")
    options_of_try = try_options(request)
    say_verdict(
        verdict,
        lambda: terminal(verdict, width=width(), color=color(), options=options_of_try, is_whole=not is_screen()),
        as_json=as_json,
        quiet=quiet,
    )
    return verdict.exit_code
