"""Values of the model, made from as little as a test wants to say."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from passgate.tasks.formats.loading import load_policy
from passgate.tasks.judge import judge
from passgate.tasks.measure import measure
from passgate.tasks.model.agent import AgentKind, AgentSpec
from passgate.tasks.model.baseline import Baseline, BaselineState, BaselineTask, FiguresOfRuns
from passgate.tasks.model.grade import Check, Grade, Violation, ViolationRule
from passgate.tasks.model.measurement import Measurement
from passgate.tasks.model.policy import GatePolicy, Policy
from passgate.tasks.model.run import Plan, RunRequest
from passgate.tasks.model.task import Budgets, EvalTask, GateName, Metric, Suite
from passgate.tasks.model.transcript import Message, ToolCall, Transcript
from passgate.tasks.model.trial import FinishedTrial, Trial, TrialMetrics, TrialStatus
from passgate.tasks.model.verdict import Verdict
from passgate.tasks.stats.measurement import measure_trials

REPOSITORY = Path(__file__).parents[1]
STARTED = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
SHIPPED = load_policy(REPOSITORY / "gates.yaml")
SAYS_YES = {"type": "output_check", "contains": ["yes"]}


def a_task(**changes: Any) -> EvalTask:
    """A golden task of three trials whose grader wants the answer to contain `yes`."""
    plain: dict[str, Any] = {
        "task_id": "say-yes",
        "suite": Suite.GOLDEN,
        "description": "The agent says yes.",
        "inputs": {"prompt": "Say yes."},
        "budgets": Budgets(max_steps=20, max_seconds=20),
        "k": 3,
        "metric": Metric.PASS_HAT_K,
        "graders": [SAYS_YES],
        "tracked_metrics": ("cost",),
        "gates": frozenset(GateName),
        "file": "suites/golden/say-yes.yaml",
        "line": 1,
        "task_digest": "t" * 64,
        "grader_digest": "g" * 64,
    }
    return EvalTask.model_validate(plain | changes)


def a_trial(task: EvalTask, trial: int = 0, status: TrialStatus = TrialStatus.PASSED, **changes: Any) -> Trial:
    plain: dict[str, Any] = {
        "suite": task.suite,
        "task_id": task.task_id,
        "trial": trial,
        "k": task.k,
        "metric": task.metric,
        "status": status,
        "reason": "" if status is TrialStatus.PASSED else f"it {status}",
        "isolation": "bubblewrap",
        "started_at": STARTED,
        "task_digest": task.task_digest,
        "grader_digest": task.grader_digest,
        "transcript_digest": f"{task.task_id}-{trial}",
        "file": task.file,
        "line": task.line,
    }
    return Trial(**(plain | changes))


def trials_of(task: EvalTask, statuses: str, **metrics: Any) -> list[Trial]:
    """One trial per letter: `p`assed, `f`ailed, `e`rror, `n`ot run, `l`eft out; `-` is a trial that is not there."""
    by_letter = {**{status[0]: status for status in TrialStatus}, "l": TrialStatus.NOT_RUN}
    return [
        a_trial(task, number, by_letter[letter], left_out=letter == "l", metrics=TrialMetrics(**metrics))
        for number, letter in enumerate(statuses)
        if letter != "-"
    ]


def a_finished(task: EvalTask, trial: int = 0, said: str = "yes", **changes: Any) -> FinishedTrial:
    transcript = Transcript(messages=(Message(role="assistant", content=said),), output=said)
    return FinishedTrial(trial=a_trial(task, trial, **changes), transcript=transcript)


def a_plan(*tasks: EvalTask, **changes: Any) -> Plan:
    """A plan of the merge gate under the shipped policy."""
    plain: dict[str, Any] = {
        "run_id": "20260131T120000Z-ci_merge-0a0b",
        "gate": GateName.CI_MERGE,
        "request": RunRequest(),
        "agent": AgentSpec(kind=AgentKind.CLI, target="my-agent"),
        "created_at": STARTED,
        "suites_folder": "/project/suites",
        "policy": SHIPPED,
        "tasks": tasks,
        "passgate_version": "0.0.1",
    }
    return Plan(**(plain | changes))


def a_run_id(day: str, token: str = "0a0b", gate: GateName = GateName.CI_MERGE) -> str:
    """The id of a run that began at midnight of a day, as in `20260131`."""
    return f"{day}T000000Z-{gate}-{token}"


def begun(run_id: str) -> datetime:
    """When the run of an id began."""
    return datetime.strptime(run_id.partition("-")[0], "%Y%m%dT%H%M%S%z")


def a_policy(gate: GateName = GateName.CI_MERGE, **changes: Any) -> Policy:
    """The shipped policy with one gate changed; with `young`, what a young baseline does."""
    baseline = SHIPPED.baseline.model_copy(update={"young": changes.pop("young", "report")})
    changed = GatePolicy.model_validate(SHIPPED.gates[gate].model_dump() | changes)
    return SHIPPED.model_copy(update={"gates": {**SHIPPED.gates, gate: changed}, "baseline": baseline})


STOPS_EARLY = a_policy(admission=False, regression={"mode": "strict"}, blocks_on=["golden_regression", "task_failed"])
"""A policy by which one failed trial of a golden task decides the gate."""


def a_baseline_task(**changes: Any) -> BaselineTask:
    """A task that was green in the one run of the baseline, with three trials."""
    plain: dict[str, Any] = {
        "state": BaselineState.GREEN,
        "runs": ("20260101-ab",),
        "runs_green": 1,
        "green_in_a_row": 1,
        "passed": 3,
        "n": 3,
        "newest": (True, True, True),
    }
    return BaselineTask(**(plain | changes))


def in_two_runs(*figures: float) -> FiguresOfRuns:
    """Figures of a baseline task's trials, the same in both of two runs."""
    return {"20260102-cd": figures, "20260101-ab": figures}


def a_baseline(*tasks: EvalTask, **changes: Any) -> Baseline:
    """A baseline on main that says the same of each of these tasks: green, but for the changes."""
    young = changes.pop("young", "report")
    entry = a_baseline_task(**changes)
    return Baseline(branch="main", young=young, tasks={task.name: entry for task in tasks})


def measured(*groups: tuple[EvalTask, Sequence[Trial]]) -> Measurement:
    """What is measured in these trials of these tasks."""
    return measure_trials([task for task, _ in groups], [trial for _, trials in groups for trial in trials])


def a_grade(*, passed: bool = True, error: str | None = None, **changes: Any) -> Grade:
    plain: dict[str, Any] = {
        "name": "answer",
        "type": "output_check",
        "score": None if error else float(passed),
        "passed": passed and error is None,
        "checks": () if error else (Check(passed=passed, message="the answer contains 'yes'"),),
        "error": error,
    }
    return Grade(**(plain | changes))


def a_violation(rule: ViolationRule = ViolationRule.SAFETY_VIOLATION, message: str = "it leaked") -> Violation:
    return Violation(rule=rule, message=message)


def calls(*tools: str, failing: Sequence[int] = ()) -> Transcript:
    """A complete transcript with one step per call; `failing` are the positions of the calls that failed."""
    return Transcript(
        messages=tuple(
            Message(role="assistant", tool_calls=(ToolCall(tool=tool, is_error=position in failing),))
            for position, tool in enumerate(tools)
        )
    )


def task_document(**changes: Any) -> dict[str, Any]:
    """A task as its file says it."""
    plain: dict[str, Any] = {
        "task_id": "say-yes",
        "suite": "golden",
        "description": "The agent says yes.",
        "inputs": {"prompt": "Say yes."},
        "graders": [SAYS_YES],
        "tracked_metrics": ["cost"],
    }
    return plain | changes


def write_task(file: Path, **changes: Any) -> Path:
    """A task file of this content in YAML."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(yaml.safe_dump(task_document(**changes), allow_unicode=True), encoding="utf-8")
    return file


def verdict_on(
    plan: Plan, policy: Policy, trials: Sequence[Trial], baseline: Baseline, judge_name: str = ""
) -> Verdict:
    """What the gate says of these trials."""
    measurement = measure(plan, trials, baseline)
    return judge(plan.model_copy(update={"policy": policy}), trials, measurement, baseline, judge_name)
