"""Choose: the plan that a change's own files make in, the plan of those that judge the change out."""

import os
import posixpath
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from passgate.tasks.base import base_of
from passgate.tasks.errors import InputError, UsageError
from passgate.tasks.formats.evals.files.environment import ENV_FILE
from passgate.tasks.formats.evals.grading.assertion_templates import FOLDER as TEMPLATES_FOLDER
from passgate.tasks.formats.outside_folders import given_to_agents, judging_outside
from passgate.tasks.formats.pins_file import PINS_FILE
from passgate.tasks.formats.prices_file import PRICES_FILE
from passgate.tasks.formats.quarantine_file import QUARANTINE_FILE
from passgate.tasks.history.base_files import is_committed, ways_to
from passgate.tasks.history.edits import What, find_edits
from passgate.tasks.history.git import git_text, top_folder
from passgate.tasks.history.judging import JudgingPlaces, judging_places
from passgate.tasks.history.links import linked_places
from passgate.tasks.history.pinned_base import pinned_base
from passgate.tasks.history.run_folder import CHANGE, RunFolder
from passgate.tasks.load import policy_of_run
from passgate.tasks.model.run import Base, Plan, RunRequest
from passgate.tasks.plan import PlanFiles, with_suites
from passgate.tasks.restore import first_problem, plan_of_restored, restore, restore_more

_BESIDE_GATES: Mapping[str, What] = {
    PRICES_FILE: "prices",
    QUARANTINE_FILE: "quarantine",
    PINS_FILE: "baseline pins",
}
_RESTORED = "base"
"""Where in the run's folder the files of the merge base are."""
_OUTSIDE = "the suites or the gates file lie outside of the repository: what a change edits of them is not known"


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
    base = base_of(Path.cwd(), own.request, own.policy)
    root = top_folder(Path.cwd()) if base.commit else None
    if root is None:
        return Chosen(_with_base(own, base))
    places = judging_places(root, Path.cwd(), own.request.suites, own.request.gates, _BESIDE_GATES)
    if places is None or places.leads_out:
        base = _noted(base, _OUTSIDE)
    if places is None:
        return Chosen(_with_base(own, base))
    places = _with_outside(places, own, root, base.commit, root)
    base = base.model_copy(update={"edits": find_edits(root, base.commit, places.what)})
    if not base.edits:
        return Chosen(_with_base(own, base))
    try:
        return _judged_by_base(own, base, root, places)
    except _BaseCannotJudge as why:
        return Chosen(_with_base(own, _noted(base, str(why))))


def _judged_by_base(own: Plan, base: Base, root: Path, places: JudgingPlaces) -> Chosen:
    """Raises `_BaseCannotJudge`."""
    run_folder = RunFolder(own.run_id)
    folder = run_folder.make(_RESTORED)
    try:
        plan, base = _restored_plan(own, base, root, places, folder)
    except BaseException:
        run_folder.remove()
        raise
    change = own.model_copy(update={"run_id": f"{own.run_id}/{CHANGE}"})
    return Chosen(
        _with_base(plan, base.model_copy(update={"judged_by": "base"})),
        _with_base(change, base.model_copy(update={"edits": (), "note": ""})),
    )


def _restored_plan(own: Plan, base: Base, root: Path, places: JudgingPlaces, folder: Path) -> tuple[Plan, Base]:
    """The plan of the merge base's files, and the base with the edits of what they alone go by too."""
    try:
        files = restore(root, base.commit, places, base.edits, folder)
    except UsageError as error:
        raise _BaseCannotJudge(f"{_at(base)} cannot judge this change: {error}") from error
    _refuse_missing(own, base, files, folder)
    try:
        policy, _ = policy_of_run(files.gates, Path(own.request.gates))
        gate = policy.gates.get(own.gate)
        if gate is not None and gate.integrity == "off":
            edits = f"this change edits what it is judged by ({_count(base)}) and judges itself"
            raise _BaseCannotJudge(f"{edits}: {own.request.gates} says `integrity: off` at the merge base")
        plan = plan_of_restored(own, files)
        wider = _with_outside(places, plan, root, base.commit, folder.resolve())
        if wider.what.keys() != places.what.keys():
            base = base.model_copy(update={"edits": find_edits(root, base.commit, wider.what)})
            restore_more(root, base.commit, wider.what.keys() - places.what.keys(), base.edits, folder)
            plan = plan_of_restored(own, files)
    except (InputError, UsageError) as error:
        why = first_problem(error, files)
        raise _BaseCannotJudge(f"{_at(base)} cannot be read, so this change judges itself: {why}") from error
    return _with_missing_suites(own, plan, base, files)


def _refuse_missing(own: Plan, base: Base, files: PlanFiles, folder: Path) -> None:
    """A change that brings a gate judges itself: nothing was there to judge it."""
    has_suites = files.suites.is_dir() and _lies_in(files.suites, folder)
    has_gates = files.gates.is_file() and _lies_in(files.gates, folder)
    # Without a gates file of the usual name, the policy that is shipped was in force.
    is_shipped = not os.path.lexists(files.gates) and Path(own.request.gates) == Path(RunRequest().gates)
    if has_suites and (has_gates or is_shipped):
        return
    gates, suites = own.request.gates, own.request.suites
    missing = f"no {gates}" if has_suites else f"no folder {suites}" if has_gates else f"no {gates}, no folder {suites}"
    raise _BaseCannotJudge(f"{_at(base)} has {missing}: this change judges itself")


def _lies_in(path: Path, folder: Path) -> bool:
    return path.resolve().is_relative_to(folder.resolve())


def _with_outside(places: JudgingPlaces, plan: Plan, root: Path, commit: str, tree: Path) -> JudgingPlaces:
    """Further places: what the plan goes by outside of its suites folder, and where links lead. `tree` is where the
    repository's files are that the plan is made of.
    """
    suites, judge = Path(plan.suites_folder), plan.policy.judge
    named = {*plan.outside, *judging_outside(plan.tasks, suites), *([judge.recorded] if judge.recorded else [])}
    known = [name for name in named if not _is_of_this_machine(f"{places.suites}/{name}", root, commit)]
    wider = places.with_more(known, above=[TEMPLATES_FOLDER])
    given = [f"{places.suites}/{name}" for name in given_to_agents(plan.tasks, suites)]
    links = linked_places(tree, wider.what, given)
    wider = wider.with_more([posixpath.relpath(link, places.suites) for link in links], above=())
    return wider.with_ways(ways_to(root, commit, wider.what))


def _is_of_this_machine(name: str, root: Path, commit: str) -> bool:
    """Whether it is a file of variables that git does not have."""
    path = posixpath.normpath(name)
    if PurePosixPath(path).name != ENV_FILE:
        return False
    return not git_text(root, "ls-files", "--", path) and not is_committed(root, commit, path)


def _with_missing_suites(own: Plan, plan: Plan, base: Base, files: PlanFiles) -> tuple[Plan, Base]:
    """A gate that lacks a whole suite can give no verdict: it must be possible to bring the suite.

    The merge base judges with all that it has, and by its policy the tasks of the suites that come with the change.
    """
    there, brought = ({task.suite for task in each.tasks} for each in (plan, own))
    missing = [suite for suite in plan.gate_policy.suites if suite not in there and suite in brought]
    if own.request.task is not None or not missing:
        return plan, base
    none = f"{_at(base)} has no task of {', '.join(missing)} for {own.gate!s}"
    try:
        return with_suites(plan, missing), _noted(base, f"{none}: those of this change are run as new tasks")
    except (InputError, UsageError) as error:
        return plan, _noted(base, f"{none}, and those of this change cannot be run: {first_problem(error, files)}")


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
