"""Decide who judges a change: its own files, or those of the merge base if the change edits judging files."""

import os
import posixpath
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from passgate.tasks.errors import InputError, UnknownJudgeError, UsageError
from passgate.tasks.formats.digests import given_to_agents, judging_outside
from passgate.tasks.formats.folder import TEMPLATES_FOLDER
from passgate.tasks.formats.loading import policy_of_run
from passgate.tasks.formats.project_files import (
    AGENTS_FILE,
    ENV_FILE,
    PINS_FILE,
    PRICES_FILE,
    QUARANTINE_FILE,
    TARGETS_FILE,
)
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.history.storage import CHANGE
from passgate.tasks.integrity.base_checkout import (
    ChangeComparison,
    check_out,
    first_problem,
    judged_agent,
    plan_of_checkout,
    recordings_folder,
)
from passgate.tasks.integrity.checkout import Checkout
from passgate.tasks.integrity.judging_places import (
    JudgingPlaces,
    What,
    edited_prefect_settings,
    find_edits,
    judging_places,
    linked_places,
)
from passgate.tasks.integrity.merge_base import pinned_base, request_base
from passgate.tasks.model.agent import looks_like_a_form
from passgate.tasks.model.run import Base, Plan, RunRequest
from passgate.tasks.planning.plan import PlanFiles, add_suites

_BESIDE_GATES: Mapping[str, What] = {
    PRICES_FILE: "prices",
    QUARANTINE_FILE: "quarantine",
    PINS_FILE: "baseline pins",
    AGENTS_FILE: "agents",
}
_AGENTS: Final = "agents"
_CHECKOUT = "base"  # The folder of the run with the files of the merge base
_OUTSIDE = "the suites or the gates file are outside the repository: passgate does not see what a change edits there"


@dataclass(frozen=True)
class JudgingPlans:
    """The plan that judges, and the plan beside it."""

    plan: Plan  # The plan of the run
    change: Plan | None = None  # Of the other files: the change's own, or the merge base's in a local run


@dataclass(frozen=True)
class _CannotJudge:
    """Why the change judges itself although it edits judging files."""

    why: str
    is_doubtful: bool = True  # False if nothing judged before, or if the merge base allows it


def who_judges(own: Plan, checkout: Checkout, *, is_local: bool = False) -> JudgingPlans:
    """Return the plan of the judging files: the merge base's if the change edits any of them, else the change's own.

    `own` is the plan of the checkout's files. Files of the merge base are written into the run's folder. In a local run
    the working folder always judges, without a doubt, because only CI decides about a merge. Raise `UsageError` for an
    unknown `--base` and if git cannot compare, `StorageError`.
    """
    chosen = _judging_plans(own, checkout)
    if not is_local:
        return chosen
    base = chosen.plan.base
    agent = base.agent if base.agent is not None and not base.agent.by_base else None
    here = base.model_copy(update={"judged_by": "change", "doubt": "", "is_local": True, "agent": agent})
    if chosen.change is None:
        return JudgingPlans(chosen.plan.model_copy(update={"base": here}))
    beside = base.model_copy(update={"judged_by": "change", "edits": (), "agent": None, "note": ""})
    plan = _add_base(own, here.model_copy(update={"is_beside": True}))
    return JudgingPlans(plan, chosen.plan.model_copy(update={"run_id": f"{own.run_id}/{CHANGE}", "base": beside}))


def _judging_plans(own: Plan, checkout: Checkout) -> JudgingPlans:
    base = request_base(checkout, own.request, own.policy)
    root = checkout.top if base.judging else None
    if root is None:
        return JudgingPlans(_add_base(own, base))
    base = base.model_copy(update={"prefect_edits": edited_prefect_settings(checkout, base.judging)})
    # An agent of the command line is defined in no file.
    unused = {AGENTS_FILE} if looks_like_a_form(own.request.agent) else set()
    beside_gates = {name: what for name, what in _BESIDE_GATES.items() if name not in unused}
    places = judging_places(root, Path.cwd(), own.request.suites, own.request.gates, beside_gates)
    if places is None or places.leads_out:
        base = base.add_note(_OUTSIDE)
    if places is None:
        return JudgingPlans(_add_base(own, base))
    compared = ChangeComparison(own, base, checkout, root, _add_agents(places, own, root))
    compared = compared.find_edits(_add_outside(compared, own, root))
    if not compared.base.edits:
        return JudgingPlans(_add_base(own, base))
    chosen = _base_plans(compared)
    if isinstance(chosen, _CannotJudge):
        doubt = base.doubt or (chosen.why if chosen.is_doubtful else "")
        doubted = compared.base.model_copy(update={"doubt": doubt})
        return JudgingPlans(_add_base(own, doubted.add_note(chosen.why)))
    return chosen


def _base_plans(compared: ChangeComparison) -> JudgingPlans | _CannotJudge:
    run_folder = RunStore.of(compared.own.run_id)
    folder = run_folder.make(_CHECKOUT)
    try:
        found = _check_out_base(compared, folder)
    except BaseException:
        # A run without a plan could be neither shown nor resumed.
        run_folder.remove()
        raise
    if isinstance(found, _CannotJudge):
        run_folder.remove()
        return found
    plan, base = found[0], _drop_newer_edits(compared.checkout, found[1])
    change = compared.own.model_copy(update={"run_id": f"{compared.own.run_id}/{CHANGE}"})
    return JudgingPlans(
        _add_base(plan, base.model_copy(update={"judged_by": "base"})),
        _add_base(change, base.model_copy(update={"edits": (), "agent": None, "note": ""})),
    )


def _drop_newer_edits(checkout: Checkout, base: Base) -> Base:
    """Remove the edits that are newer commits of the target branch and not of the change."""
    if not base.tip or not base.commit:
        return base
    own = {edit.path for edit in find_edits(checkout, base.commit, {edit.path: edit.what for edit in base.edits})}
    edits = tuple(edit for edit in base.edits if edit.path in own)
    newer = len(base.edits) - len(edits)
    if not newer:
        return base
    files = "a file that judges is" if newer == 1 else f"{newer} files that judge are"
    note = f"{files} newer on the target branch than in this change, and in CI {base.name} judges: merge it here"
    return base.model_copy(update={"edits": edits}).add_note(note)


def _check_out_base(compared: ChangeComparison, folder: Path) -> tuple[Plan, Base] | _CannotJudge:
    """Return the plan of the merge base's files, and the base with the edits of files that only these use."""
    try:
        files = check_out(compared, folder)
    except UsageError as error:
        return _CannotJudge(f"{compared.base.name} cannot judge this change: {error}")
    missing = _missing_judge(compared, files, folder)
    if missing is not None:
        return missing
    try:
        return _base_plan(compared, files, folder)
    except (InputError, UsageError) as error:
        why = first_problem(error, files)
        return _CannotJudge(f"{compared.base.name} cannot be read, so this change judges itself: {why}")


def _base_plan(compared: ChangeComparison, files: PlanFiles, folder: Path) -> tuple[Plan, Base] | _CannotJudge:
    """Load the plan. Raise `InputError` or `UsageError` for invalid files."""
    own, base = compared.own, compared.base
    policy, _ = policy_of_run(files.gates, Path(own.request.gates))
    gate = policy.gates.get(own.gate)
    if gate is not None and gate.integrity == "off":
        count = f"{len(base.edits)} file{'s' if len(base.edits) != 1 else ''}"
        edits = f"this change edits what it is judged by ({count}) and judges itself"
        return _CannotJudge(f"{edits}: {own.request.gates} says `integrity: off` at {base.name}", is_doubtful=False)
    agent = judged_agent(compared, files, folder)
    plan = plan_of_checkout(compared, files, agent.spec)
    wider = _add_outside(compared, plan, folder.resolve())
    if wider.what.keys() - compared.places.what.keys():
        compared = compared.find_edits(wider)
        check_out(compared, folder)
        plan = plan_of_checkout(compared, files, agent.spec)
    base = compared.base.model_copy(update={"agent": agent.change}).add_note(agent.note)
    return _add_missing_suites(own, plan, base, files)


def _missing_judge(compared: ChangeComparison, files: PlanFiles, folder: Path) -> _CannotJudge | None:
    """Return why the base has nothing to judge with, as for a change that adds the gate; `None` if it has."""
    request = compared.own.request
    has_suites = files.suites.is_dir() and files.suites.resolve().is_relative_to(folder.resolve())
    has_gates = files.gates.is_file() and files.gates.resolve().is_relative_to(folder.resolve())
    # Without a gates file of the usual name, the shipped policy applied.
    is_shipped = not os.path.lexists(files.gates) and Path(request.gates) == Path(RunRequest().gates)
    if has_suites and (has_gates or is_shipped):
        return None
    no_gates, no_suites = f"no {request.gates}", f"no folder {request.suites}"
    missing = no_gates if has_suites else no_suites if has_gates else f"{no_gates}, {no_suites}"
    return _CannotJudge(f"{compared.base.name} has {missing}, so this change judges itself", is_doubtful=False)


def _add_agents(places: JudgingPlaces, own: Plan, root: Path) -> JudgingPlaces:
    """Add the files that define targets, and the recordings of a replay agent."""
    recordings = recordings_folder(own.agent, root)
    if recordings is not None:
        places = places.add([posixpath.relpath(recordings, places.suites)], above=(), what=_AGENTS)
    if looks_like_a_form(own.request.agent):
        return places
    name = TARGETS_FILE.as_posix()
    here = posixpath.relpath(Path.cwd().resolve().relative_to(root).as_posix(), places.suites)
    return places.add([name, f"{here}/{name}"], above=[name], what=_AGENTS)


def _add_outside(compared: ChangeComparison, plan: Plan, tree: Path) -> JudgingPlaces:
    """Add the files that the plan uses outside of its suites folder, and the targets of links. `tree` is the folder of
    the files that the plan was loaded from.
    """
    places, checkout, commit = compared.places, compared.checkout, compared.base.judging
    suites, judge = Path(plan.suites_folder), plan.policy.judge
    named = {*plan.outside, *judging_outside(plan.tasks, suites), *([judge.recorded] if judge.recorded else [])}
    paths = {name: posixpath.normpath(f"{places.suites}/{name}") for name in named}
    # An untracked file of variables belongs to this machine.
    known = [
        name
        for name, path in paths.items()
        if PurePosixPath(path).name != ENV_FILE or checkout.is_tracked(path) or checkout.objects.contains(commit, path)
    ]
    wider = places.add(known, above=[TEMPLATES_FOLDER])
    given = [f"{places.suites}/{name}" for name in given_to_agents(plan.tasks, suites)]
    links = linked_places(tree, wider.what, given)
    wider = wider.add([posixpath.relpath(link, places.suites) for link in links], above=())
    return wider.add_dependencies(checkout, commit)


def _add_missing_suites(own: Plan, plan: Plan, base: Base, files: PlanFiles) -> tuple[Plan, Base]:
    """Add the change's own tasks of suites that the merge base lacks, because a gate without a suite gives no verdict.

    The merge base judges with everything that it has, and its policy applies to the added tasks.
    """
    present, added = ({task.suite for task in each.tasks} for each in (plan, own))
    missing = [suite for suite in plan.gate_policy.suites if suite not in present and suite in added]
    if own.request.task is not None or not missing:
        return plan, base
    none = f"{base.name} has no task of {', '.join(missing)} for {own.gate!s}"
    try:
        return add_suites(plan, missing), base.add_note(f"{none}: the change's own run as new tasks")
    except (InputError, UsageError) as error:
        return plan, base.add_note(f"{none}, and those of this change cannot be run: {first_problem(error, files)}")


def refuse_doubt(base: Base, checkout: Checkout) -> None:
    """In CI, raise `UnknownJudgeError` if the change may have chosen who judges it: a verdict would mean nothing."""
    began = "the run began outside of CI, where the files of the working folder judge: start a new run"
    doubt = base.doubt or (began if base.is_local else "")
    if doubt and checkout.is_ci:
        raise UnknownJudgeError(
            f"INCONCLUSIVE: this change may have chosen who judges it, and CI is set, so nothing was run: {doubt}"
        )


def _add_base(plan: Plan, base: Base) -> Plan:
    """Return the plan with its base, which has the ancestors of a pinned commit if the plan pins one."""
    pinned = pinned_base(base, plan.pins, Path.cwd())
    return plan.model_copy(update={"base": pinned.model_copy(update={"note": base.add_note(pinned.note).note})})
