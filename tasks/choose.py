"""Choose: the plan that a change's own files make in, the plan of those that judge the change out."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from passgate.tasks.errors import InputError, UsageError
from passgate.tasks.formats.evals.grading.assertion_templates import FOLDER as TEMPLATES_FOLDER
from passgate.tasks.formats.outside_folders import graders_outside
from passgate.tasks.formats.pins_file import PINS_FILE
from passgate.tasks.formats.prices_file import PRICES_FILE
from passgate.tasks.formats.quarantine_file import QUARANTINE_FILE
from passgate.tasks.history.base_files import is_committed
from passgate.tasks.history.edits import What, find_edits
from passgate.tasks.history.git import top_folder
from passgate.tasks.history.judging import JudgingPlaces, judging_places
from passgate.tasks.history.merge_base import find_base
from passgate.tasks.history.pinned_base import pinned_base
from passgate.tasks.history.run_folder import CHANGE, RunFolder
from passgate.tasks.load import policy_of_run
from passgate.tasks.model.run import Base, Plan
from passgate.tasks.restore import first_problem, plan_of_restored, restore

_BESIDE_GATES: Mapping[str, What] = {
    PRICES_FILE: "prices",
    QUARANTINE_FILE: "quarantine",
    PINS_FILE: "baseline pins",
}
_RESTORED = "base"
"""Where in the run's folder the files of the merge base are."""


@dataclass(frozen=True)
class Chosen:
    """Who judges."""

    plan: Plan
    """What the run goes by."""
    change: Plan | None = None
    """What the change's own files say, where those of the merge base judge."""


class _BaseCannotJudge(Exception):  # noqa: N818 - it says why, and is no error of anyone's
    """Why the change is judged by its own files, though it edits them."""


def choose(own: Plan) -> Chosen:
    """Whose files judge: those of the merge base where the change edits what judges it, else the change's own.

    `own` is the plan that the files in the working folder make. Files of the merge base are put into the run's folder.
    Raises `UsageError` for a `--base` that is none and where git cannot compare, `StorageError`.
    """
    base = find_base(Path.cwd(), own.policy.baseline.branch, own.request.base)
    root = top_folder(Path.cwd()) if base.commit else None
    if root is None:
        return Chosen(_with_base(own, base))
    places = judging_places(root, Path.cwd(), own.request.suites, own.request.gates, _BESIDE_GATES)
    if places is None:
        note = "the suites or the gates file lie outside of the repository: what a change edits of them is not known"
        return Chosen(_with_base(own, _noted(base, note)))
    places = places.with_more(graders_outside(own.tasks, Path(own.suites_folder)), above=[TEMPLATES_FOLDER])
    base = base.model_copy(update={"edits": find_edits(root, base.commit, places.what)})
    if not base.edits:
        return Chosen(_with_base(own, base))
    try:
        return _judged_by_base(own, base, root, places)
    except _BaseCannotJudge as why:
        return Chosen(_with_base(own, _noted(base, str(why))))


def _judged_by_base(own: Plan, base: Base, root: Path, places: JudgingPlaces) -> Chosen:
    """Raises `_BaseCannotJudge`, whose text is empty where there is nothing to say."""
    _refuse_missing(own, base, root, places)
    run_folder = RunFolder(own.run_id)
    folder = run_folder.make(_RESTORED)
    try:
        plan = _restored_plan(own, base, root, places, folder)
    except BaseException:
        run_folder.remove()
        raise
    change = own.model_copy(update={"run_id": f"{own.run_id}/{CHANGE}"})
    return Chosen(
        _with_base(plan, base.model_copy(update={"judged_by": "base"})),
        _with_base(change, base.model_copy(update={"edits": (), "note": ""})),
    )


def _refuse_missing(own: Plan, base: Base, root: Path, places: JudgingPlaces) -> None:
    """A change that brings a gate judges itself: nothing was there to judge it."""
    has_gates, has_suites = (is_committed(root, base.commit, path) for path in (places.gates, places.suites))
    if has_suites and (has_gates or own.shipped_policy):
        return
    missing = f"no {own.request.gates}" if has_suites else f"no folder {own.request.suites}"
    has_one = has_gates or has_suites
    raise _BaseCannotJudge(f"{_at(base)} has {missing}: this change judges itself" if has_one else "")


def _restored_plan(own: Plan, base: Base, root: Path, places: JudgingPlaces, folder: Path) -> Plan:
    try:
        files = restore(root, base.commit, places, base.edits, folder)
    except UsageError as error:
        raise _BaseCannotJudge(f"{_at(base)} cannot judge this change: {error}") from error
    try:
        policy, _ = policy_of_run(files.gates, Path(own.request.gates))
        gate = policy.gates.get(own.gate)
        if gate is not None and gate.integrity == "off":
            edits = f"this change edits what it is judged by ({_count(base)}) and judges itself"
            raise _BaseCannotJudge(f"{edits}: {own.request.gates} says `integrity: off` at the merge base")
        plan = plan_of_restored(own, files)
    except (InputError, UsageError) as error:
        why = first_problem(error, files)
        raise _BaseCannotJudge(f"{_at(base)} cannot be read, so this change judges itself: {why}") from error
    _refuse_without_evidence(own, plan, base)
    return plan


def _refuse_without_evidence(own: Plan, plan: Plan, base: Base) -> None:
    """A gate that lacks a whole suite can give no verdict: it must be possible to bring the suite."""
    if own.request.task is not None:
        return
    there, brought = ({task.suite for task in each.tasks} for each in (plan, own))
    missing = [suite for suite in plan.gate_policy.suites if suite not in there and suite in brought]
    if missing:
        raise _BaseCannotJudge(f"{_at(base)} has no task of {missing[0]!s} for {own.gate!s}: this change judges itself")


def _with_base(plan: Plan, base: Base) -> Plan:
    """The plan with its base, whose ancestors are a pinned commit's where the plan pins one."""
    pinned = pinned_base(base, plan.pins, Path.cwd())
    notes = dict.fromkeys((base.note, pinned.note))
    return plan.model_copy(update={"base": pinned.model_copy(update={"note": _joined(notes)})})


def _noted(base: Base, note: str) -> Base:
    return base.model_copy(update={"note": _joined((base.note, note))})


def _joined(notes: Iterable[str]) -> str:
    return "; ".join(filter(None, notes))


def _at(base: Base) -> str:
    return f"the merge base {base.commit[:12]}"


def _count(base: Base) -> str:
    return f"{len(base.edits)} file{'s' if len(base.edits) != 1 else ''}"
