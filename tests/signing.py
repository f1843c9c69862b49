"""Verdicts that await a sign-off."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from passgate.tasks.history.masking import run_masker
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.load import load
from passgate.tasks.model.baseline import Baseline
from passgate.tasks.model.json_values import json_digest
from passgate.tasks.model.policy import Rule
from passgate.tasks.model.run import Revision, RunRequest
from passgate.tasks.model.task import EvalTask, GateName
from passgate.tasks.model.trial import FinishedTrial
from passgate.tasks.model.verdict import Decision, Inputs, Reason, RunView, SignOff, Verdict, verdict_digest
from passgate.tasks.report import report
from tests.builders import STARTED, a_finished, a_task, measured, trials_of, verdict_on, write_task

AT = datetime(2026, 2, 1, 9, 30, tzinfo=UTC)
COMMIT = "c0ffee" * 6 + "0123"
GATES = """
version: 1
baseline: {young: block}
suites:
  golden: {k: 3, metric: pass^k, max_steps: 20}
gates:
  release_candidate:
    suites: [golden]
    blocks_on: [safety_violation, forbidden_tool, golden_regression, task_failed, threshold]
    sign_off: true
secrets: [SECRET_WORD]
"""
AWAITING = Reason(rule=Rule.SIGN_OFF, blocking=True, message="awaiting sign-off")


def awaiting(**changes: Any) -> Verdict:
    """A verdict on one task that is to be signed off."""
    task = a_task()
    plain: dict[str, Any] = {
        "run_id": "20260131T120000Z-release_candidate-0a0b",
        "gate": GateName.RELEASE_CANDIDATE,
        "decision": Decision.INCONCLUSIVE,
        "exit_code": 3,
        "reasons": (AWAITING,),
        "awaiting_sign_off": True,
        "measurement": measured((task, trials_of(task, "ppp"))),
        "agent": "cli:my-agent",
        "revision": Revision(commit=COMMIT, branch="main"),
        "inputs": Inputs(
            **{name: json_digest(name) for name in ("policy", "tasks", "graders", "trials", "agent", "prices")},
            passgate_version="0.0.1",
        ),
        "started_at": STARTED,
        "judged_at": STARTED,
    }
    return Verdict(**(plain | changes))


def a_sign_off(decision: Literal["approve", "reject"] = "approve", **changes: Any) -> SignOff:
    """What Ada says of the verdict that awaits it."""
    plain: dict[str, Any] = {
        "by": "Ada",
        "decision": decision,
        "reason": "read it",
        "at": AT,
        "verdict_digest": verdict_digest(awaiting()),
    }
    return SignOff(**(plain | changes))


def write_gate(folder: Path) -> None:
    """A gate that wants a sign-off, with one task."""
    (folder / "gates.yaml").write_text(GATES, encoding="utf-8")
    write_task(folder / "suites/golden/say-yes.yaml")


def a_run_that_awaits(agent: str = "cli:sh agent.sh") -> RunStore:
    """A run of the working folder, which `write_gate` has filled, ended with a verdict that awaits a sign-off."""
    plan = load(GateName.RELEASE_CANDIDATE, RunRequest(agent=agent))
    run = RunStore.of(plan.run_id)
    finished = [_finished(plan.tasks[0], trial) for trial in range(3)]
    run.journal.write_text("".join(f"{one.model_dump_json()}\n" for one in finished), encoding="utf-8")
    trials = [one.trial for one in finished]
    verdict = verdict_on(plan, plan.policy, trials, Baseline(branch="main"), "")
    report(RunView(verdict, tuple(trials), run.read_transcript), run, run_masker(plan))
    return run


def _finished(task: EvalTask, trial: int) -> FinishedTrial:
    finished = a_finished(task, trial)
    digest = json_digest(finished.transcript.model_dump(mode="json"))
    return finished.model_copy(update={"trial": finished.trial.model_copy(update={"transcript_digest": digest})})
