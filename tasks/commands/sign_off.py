"""Sign off a run: record a person's decision, and return the verdict that results."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from passgate.tasks.commands.report import known_before
from passgate.tasks.errors import InputError, StorageError, UsageError
from passgate.tasks.history.masking import run_masker
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.integrity.checkout import Checkout
from passgate.tasks.judge import verdict_inputs
from passgate.tasks.model.base import is_blank
from passgate.tasks.model.baseline import Baseline
from passgate.tasks.model.json_values import json_digest, trials_digest
from passgate.tasks.model.run import Plan
from passgate.tasks.model.verdict import Inputs, RunView, SignOff, Verdict, signed_off, verdict_digest
from passgate.tasks.planning.plan import new_plan
from passgate.tasks.report import report
from passgate.tasks.reports.figures import listed

_LONGEST_NAME = 200
_LONGEST_REASON = 10_000
_NAMED_TASKS = 3


def sign_off(run_id: str, *, by: str, decision: Literal["approve", "reject"], reason: str) -> Verdict:
    """Decide a verdict that awaits a sign-off, and write it and its reports again.

    Raise `UsageError`, and write nothing, if the verdict awaits no sign-off or its inputs have changed since.
    """
    store = RunStore.of(run_id)
    with store.hold():
        verdict, plan = _read_awaiting_verdict(store), store.read_plan()
        _refuse_changed_inputs(plan, verdict, store)
        masker = run_masker(plan)
        decided = SignOff(
            by=masker.text(_text("--by", by, _LONGEST_NAME)),
            decision=decision,
            reason=masker.text(_text("--reason", reason, _LONGEST_REASON)),
            at=datetime.now(UTC),
            verdict_digest=verdict_digest(verdict),
        )
        signed = signed_off(verdict, decided)
        trials = store.read_trials()
        known = known_before(plan, trials)
        view = RunView(signed, tuple(trials), store.read_transcript, known.baseline.tasks, known.recent, plan)
        report(view, store, masker)
    return signed


def _text(option: str, text: str, longest: int) -> str:
    text = text.strip()
    if is_blank(text):
        raise UsageError(f"{option} is empty: a sign-off records who decided, and why")
    if len(text) > longest:
        raise UsageError(f"{option} is longer than {longest} characters")
    try:
        text.encode("utf-8")  # Python reads other bytes of the command line as surrogates
    except UnicodeEncodeError as error:
        raise UsageError(f"{option} is not UTF-8 text") from error
    return text


def _read_awaiting_verdict(store: RunStore) -> Verdict:
    verdict, run_id = store.required_verdict(), store.name
    if (signed := verdict.sign_off) is not None:
        when = f"{signed.at:%Y-%m-%d %H:%M:%S %Z}"
        raise UsageError(f"the run {run_id} is signed off already: {signed.decided} at {when}")
    if not verdict.awaiting_sign_off:
        raise UsageError(f"the run {run_id} awaits no sign-off, its verdict stands: {verdict.headline}")
    return verdict


def _refuse_changed_inputs(plan: Plan, verdict: Verdict, store: RunStore) -> None:
    changed = [*_changed_files(plan, verdict.inputs, store)]
    try:
        trials = recorded_trials(b"".join(content for _, content in store.journal_parts()))
        changed += [] if trials_digest(trials) == verdict.inputs.trials else ["the trials in the journal"]
    except StorageError as error:
        changed.append(f"the journal ({error})")
    before, now = verdict.revision, Checkout(Path.cwd()).revision
    if now.commit != before.commit:
        changed.append(f"the commit (it was {before.commit[:12] or 'none'}, now it is {now.commit[:12] or 'none'})")
    elif now.dirty != before.dirty:
        changed.append(f"the tracked files ({'their changes are gone' if before.dirty else 'some have changes now'})")
    if changed:
        raise UsageError(
            f"the inputs of {verdict.run_id} have changed since it was judged: {', '.join(dict.fromkeys(changed))}. "
            "Restore them, or run the gate again"
        )


def _changed_files(plan: Plan, inputs: Inputs, store: RunStore) -> Iterator[str]:
    """Yield the files that have changed, and passgate if its version has."""
    if plan.base.judged_by == "base":
        # The plan has the files of the merge base, which judged. The plan of the change has those of the checkout.
        yield from _differences(inputs, plan, plan)
        plan = store.change.read_plan()
        inputs = _inputs(plan)
    try:
        now = new_plan(plan.gate, plan.request, Checkout(Path.cwd()))
    except (InputError, UsageError) as error:
        yield f"the files, which cannot be read any more ({error})"
        return
    # Mask this plan and convert it through JSON, as the stored plan was.
    present = Plan.model_validate_json(run_masker(plan).json(now.model_dump_json(exclude_unset=True)))
    yield from _differences(inputs, plan, present)
    if present.agent_digest != plan.agent_digest and present.agent == plan.agent:
        yield "the files of the agent"
    if present.pins != plan.pins:
        yield "the pins of the baseline"


def _inputs(plan: Plan) -> Inputs:
    """Return the digests of a plan's files, without those of its trials and its baseline."""
    return verdict_inputs(plan, (), Baseline(branch=""))


def _differences(inputs: Inputs, plan: Plan, present: Plan) -> Iterator[str]:
    now = _inputs(present).model_dump()
    # The trials are compared with the journal, and the baseline of a run does not change with the files.
    for name, before in inputs.model_dump(exclude={"trials", "baseline", "baseline_runs"}).items():
        if now[name] != before:
            yield _describe_change(name, plan, present)


def _describe_change(name: str, plan: Plan, present: Plan) -> str:
    if name == "passgate_version":
        return f"passgate (it was {plan.passgate_version}, now it is {present.passgate_version})"
    if name == "agent":
        return "the spec of the agent"
    if name not in {"tasks", "graders"}:
        return f"the {name}"
    attribute = "task_digest" if name == "tasks" else "grader_digest"
    before, now = ({task.task_id: getattr(task, attribute) for task in one.tasks} for one in (plan, present))
    different = sorted(task for task in {*before, *now} if before.get(task) != now.get(task))
    return f"the {name} ({listed(different, _NAMED_TASKS)})" if different else f"the {name}"


def recorded_trials(journal: bytes) -> list[dict[str, Any]]:
    """Return the trials of a journal, each once, compared with the digest of its transcript. Raises `StorageError`."""
    trials: dict[tuple[str, int], dict[str, Any]] = {}
    for number, line in enumerate(journal.split(b"\n")[:-1], start=1):
        try:
            finished = json.loads(line)
            trial, transcript = finished["trial"], finished["transcript"]
            task, which, digest = str(trial["task_id"]), int(trial["trial"]), str(trial["transcript_digest"])
            # The transcript of a trial of an earlier run is kept with that run.
            is_own = not trial.get("reused_from")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise StorageError(f"line {number} does not belong to a journal") from error
        if is_own and json_digest(transcript) != digest:
            whose = f"the transcript of {task}, trial {which},"
            raise StorageError(f"line {number}: {whose} is not the one that was judged")
        trials[task, which] = trial
    return list(trials.values())
