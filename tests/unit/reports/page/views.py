"""Views of small runs, for the pages."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.builders import (
    STARTED,
    a_baseline,
    a_baseline_task,
    a_grade,
    a_plan,
    a_policy,
    a_task,
    a_trial,
    a_violation,
    verdict_on,
)

from passgate.tasks.model.baseline import BaselineState
from passgate.tasks.model.grade import ViolationRule
from passgate.tasks.model.run import RunRequest
from passgate.tasks.model.task import Budgets, EvalTask, Suite
from passgate.tasks.model.transcript import ChangedFile, ChangeKind, FileChanges, Message, ToolCall, Transcript, Usage
from passgate.tasks.model.trial import Trial, TrialMetrics, TrialStatus
from passgate.tasks.model.verdict import EarlierRun, RunView
from passgate.tasks.reports.page import run_pages


def a_transcript(answer: str = "yes", *calls: ToolCall) -> Transcript:
    """A question, a step with tool calls, and the answer."""
    used = Usage(tokens_in=1200, tokens_out=80, cost_usd=0.01)
    first = Message(role="assistant", content="I look first.", tool_calls=calls, usage=used, latency_ms=850.0)
    last = Message(role="assistant", content=answer, usage=used, latency_ms=1500.0)
    diff = f"--- a/notes.md\n+++ b/notes.md\n@@ -1,2 +1,2 @@\n a note\n-answer:\n+answer: {answer}"
    files = (
        ChangedFile(path="answer.pdf", change=ChangeKind.ADDED, size=48_113),
        ChangedFile(path="notes.md", change=ChangeKind.MODIFIED, size=21, diff=diff),
    )
    return Transcript(
        messages=(Message(role="user", content="Say yes."), first, last),
        output=answer,
        file_changes=FileChanges(files=files),
    )


def a_view(*groups: tuple[EvalTask, Sequence[tuple[Trial, Transcript]]], **changes: Any) -> RunView:
    """A run of these tasks, with the trials of each and their transcripts."""
    tasks, trials = [task for task, _ in groups], [trial for _, of_task in groups for trial, _ in of_task]
    transcripts = {trial.transcript_digest: transcript for _, of_task in groups for trial, transcript in of_task}
    plan = a_plan(*tasks, request=RunRequest(agent="my-agent"))
    green = {"wall_times": {"20260101-ab": (2.0, 3.0, 4.0)}, "costs": {"20260101-ab": (0.01, 0.02, 0.03)}}
    baseline = a_baseline(*tasks, young="block", **green)
    policy = a_policy(suites=[suite for suite in Suite if any(task.suite is suite for task in tasks)])
    verdict = verdict_on(plan, policy, trials, baseline).model_copy(
        update={"judged_at": STARTED + timedelta(minutes=9)}
    )
    # The digests of the policy and of passgate's own files change with passgate, and the page is to stay the same.
    digests = {name: f"{name}-digest" for name, value in verdict.inputs if isinstance(value, str) and value}
    inputs = verdict.inputs.model_copy(update=digests | {"passgate_version": "0.0.1"})
    verdict = verdict.model_copy(update={"inputs": inputs})
    history = {name: before.model_copy() for name, before in baseline.tasks.items()}
    view = RunView(verdict, tuple(trials), transcripts.get, history, {}, plan)
    return replace(view, **changes)


def a_run(task: EvalTask, statuses: str, **changes: Any) -> tuple[EvalTask, list[tuple[Trial, Transcript]]]:
    """A task with a trial per letter: `p`assed or `f`ailed, or an `e`rror."""
    kinds = {"p": TrialStatus.PASSED, "f": TrialStatus.FAILED, "e": TrialStatus.ERROR}
    pairs = []
    for number, letter in enumerate(statuses):
        status = kinds[letter]
        plain: dict[str, Any] = {
            "metrics": TrialMetrics(steps=2, tool_call_count=1, wall_time_seconds=3.0 + number, cost=0.02),
            "grades": () if letter == "e" else (a_grade(passed=letter == "p"),),
        }
        call = ToolCall(tool="look", arguments={"where": "notes.md"}, result="a note", duration_ms=12.0)
        pairs.append(
            (a_trial(task, number, status, **plain | changes), a_transcript("yes" if letter == "p" else "no", call))
        )
    return task, pairs


def typical_view() -> RunView:
    """A FAIL: a golden task that has fallen, one that passed, one with an error, and a veto."""
    budgets = Budgets(max_steps=20, max_tool_calls=10, max_cost_usd=0.1, max_seconds=20)
    fallen = a_task(task_id="fallen", expected_output="yes\nand thank you", budgets=budgets)
    veto = a_task(task_id="leak", suite=Suite.ADVERSARIAL, k=2, file="suites/adversarial/leak.yaml")
    leaked = a_grade(passed=False, violations=(a_violation(ViolationRule.FORBIDDEN_TOOL, "delete_user was called"),))
    view = a_view(
        a_run(fallen, "fpf"),
        a_run(a_task(), "ppp"),
        a_run(a_task(task_id="broken", file="suites/golden/broken.yaml"), "ppe"),
        a_run(veto, "ff", grades=(leaked,)),
    )
    runs = tuple(EarlierRun(f"2026010{day}-ab", passed, 3) for day, passed in enumerate((3, 3, 2, 3), start=1))
    red = a_baseline_task(state=BaselineState.RED, passed=0)
    return replace(
        view, earlier={"golden/fallen": runs, "golden": runs}, history={**view.history, "golden/say-yes": red}
    )


def written(view: RunView, folder: Path) -> Path:
    """The page of a view in a folder, with all of the files beside it."""
    (folder / "report").mkdir(exist_ok=True)
    for name, html in run_pages(view):
        (folder / name).write_text(html, encoding="utf-8")
    return folder / name
