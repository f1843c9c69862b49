"""Load a run: write the plan of what the user asked for into the run's folder."""

from pathlib import Path

from passgate.tasks.errors import StorageError, UsageError
from passgate.tasks.history.dataset import History
from passgate.tasks.history.masking import run_masker
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.integrity.checkout import Checkout
from passgate.tasks.integrity.tracked_folders import open_history
from passgate.tasks.integrity.who_judges import JudgingPlans, refuse_doubt, who_judges
from passgate.tasks.model.run import ALSO_OF_RESUMED, Plan, RunRequest
from passgate.tasks.model.task import GateName
from passgate.tasks.planning.find_run import refuse_tracked_runs
from passgate.tasks.planning.plan import new_plan, plan_with_files, store_snapshot
from passgate.tasks.planning.requirements import refuse_unreachable, refuse_unrunnable


def load(gate: GateName, request: RunRequest, run_id: str = "", *, by_hand: bool = False) -> Plan:
    """Load the plan of a run, new or resumed. Find every problem that can be known before a trial; run nothing.

    `run_id` is that of a new run; without it, passgate makes one. A run that somebody starts by hand, outside of CI and
    without a base, is judged by the files of the working folder. If a change edits what it is judged by, the plan has
    the merge base's files, and the plan of the change's own files is written beside it.

    Raises `InputError` or `UsageError`, `MeasurementError` for a provider that is down, and in CI `UnknownJudgeError`.
    """
    with Checkout(Path.cwd()) as checkout:
        refuse_tracked_runs(checkout)
        if request.run is not None:
            return _load_begun(request.run, gate, request, checkout)
        own = new_plan(gate, request, checkout, run_id)
        store = RunStore.new(own.run_id, request.run_store)
        store.refuse_unwritable()
        # Checking an agent loads its code and sends it keys, so first find out which agent runs.
        is_local = by_hand and request.base is None and not checkout.is_job
        chosen = who_judges(own, checkout, is_local=is_local)
    try:
        refuse_doubt(chosen.plan.base, checkout)
        _refuse_unrunnable(chosen, checkout)
        History(chosen.plan.history_location).refuse_unwritable()
        if chosen.change is not None:
            _write_plan(chosen.change)
        return _write_plan(chosen.plan)
    except BaseException:
        store.remove()
        raise


def _refuse_unrunnable(chosen: JudgingPlans, checkout: Checkout) -> None:
    agent = chosen.plan.base.agent
    if agent is None or not agent.by_base:
        # Problems of the files beside a local run do not prevent it.
        beside = None if chosen.plan.base.is_local else chosen.change
        for plan in filter(None, (beside, chosen.plan)):
            refuse_unrunnable(plan, checkout)
        return refuse_unreachable(chosen.plan.agent)
    try:
        refuse_unrunnable(chosen.plan, checkout)
        refuse_unreachable(chosen.plan.agent)
    except UsageError as error:
        raise UsageError(f"{agent.note}, and that cannot be run: {error}") from error


def _load_begun(run: str, gate: GateName, request: RunRequest, checkout: Checkout) -> Plan:
    store = RunStore.of(run)
    store.settle_here()
    plan = plan_with_files(store)
    if plan.gate is not gate:
        raise UsageError(f"the run {plan.run_id} is of the gate {plan.gate!s}, not of {gate!s}")
    try:
        verdict = store.read_verdict()
    except StorageError:
        verdict = None  # a killed run has left half of it
    # Judging the run again must not undo what a person has decided.
    if verdict is not None and verdict.sign_off is not None:
        raise UsageError(f"the run {verdict.run_id} is signed off, {verdict.sign_off.decided}: start a new run")
    refuse_doubt(plan.base, checkout)
    open_history(plan.history_location, checkout).refuse_unwritable()
    given = request.model_dump(include=set(ALSO_OF_RESUMED), exclude_none=True)
    if store.url is not None:
        given["run_store"] = store.runs
    return plan.model_copy(update={"request": plan.request.model_copy(update=given)})


def _write_plan(plan: Plan) -> Plan:
    """Write a plan, with the files that it needs if other machines run it. Return the plan as it is stored."""
    store = RunStore.new(plan.run_id, plan.request.run_store)
    if store.url is not None:
        plan = store_snapshot(plan, store)
    try:
        store.settle_here()
        store.write_plan(plan, run_masker(plan))
    except StorageError as error:
        raise UsageError(f"{error}: nothing was run; start passgate in a folder that you can write to") from error
    return plan
