"""Trials, really run: with agents in Python and in sandboxes of their own."""

import asyncio
from dataclasses import replace
from functools import reduce
from typing import Any

import pytest

from passgate.tasks.agents.interface import Attempt
from passgate.tasks.errors import CostCapError, MeasurementError
from passgate.tasks.execution import trial as run_module
from passgate.tasks.execution.trial import run_trial
from passgate.tasks.metering.cost_cap import CostCap
from passgate.tasks.model.grade import JudgeReply, JudgeRequest
from passgate.tasks.model.graders import OutputCheck, ToolCalls
from passgate.tasks.model.json_values import json_digest
from passgate.tasks.model.task import Budgets, Suite
from passgate.tasks.model.transcript import ChangedFile, ChangeKind, EndReason, FileChanges, Transcript, Usage
from passgate.tasks.model.trial import FinishedTrial, TrialStatus
from tests.builders import SAYS_YES, a_task
from tests.function_agent import FunctionAgent
from tests.unit.benches import Function, bench, says

__all__ = ["bench"]


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_module, "_RETRY_PAUSE_SECONDS", 0.0)


def fails_at_first(times: int, *, transient: bool = True, why: str = "the provider is down") -> Function:
    """An agent whose provider is down for the first attempts."""
    left = times

    def function(attempt: Attempt) -> str:
        nonlocal left
        left -= 1
        if left >= 0:
            raise MeasurementError(why, transient=transient)
        return "yes"

    return function


def status(finished: FinishedTrial) -> tuple[TrialStatus, int]:
    return finished.trial.status, finished.trial.attempts


async def test_a_trial_that_passes_has_its_digest_of_what_is_kept_without_secrets(bench) -> None:
    task = a_task()
    finished = await run_trial(task, 2, bench(says("yes, hunter22"), secrets=("hunter22",)))
    trial = finished.trial
    assert (trial.status, trial.reason, trial.attempts) == (TrialStatus.PASSED, "", 1)
    assert (trial.suite, trial.trial, trial.k) == (Suite.GOLDEN, 2, 3)
    of_task = {
        name: getattr(trial, name) for name in ("task_id", "metric", "task_digest", "grader_digest", "file", "line")
    }
    assert of_task == {name: getattr(task, name) for name in of_task}
    assert [grade.passed for grade in trial.grades] == [True]
    assert trial.isolation in {"bubblewrap", "process_group"}
    assert trial.metrics.wall_time_seconds > 0
    assert finished.transcript.output == "yes, ***"
    assert trial.transcript_digest == json_digest(finished.transcript.model_dump(mode="json"))


@pytest.mark.parametrize(("times", "late"), [(0, 0), (1, 1), (9, 3)])
async def test_attempts_that_become_errors_under_the_agents_hands_are_counted(bench, times: int, late: int) -> None:
    finished = await run_trial(
        a_task(), 0, bench(fails_at_first(times, why="hunter22 is down"), retries=2, secrets=("hunter22",))
    )
    assert finished.trial.late_errors == late
    assert finished.trial.late_error == ("*** is down" if late else "")


async def test_nothing_that_leaves_a_trial_has_a_secret(bench) -> None:
    secret = 'sk-"quoted"\\and\nsecond line ü'
    call = {"tool": "a", "arguments": {secret: [secret]}, "result": secret, "is_error": False}
    spoken = [{"role": "assistant", "content": f"it is {secret}!"}, {"role": "assistant", "tool_calls": [call]}]
    graders = [
        OutputCheck(type="output_check", equals=secret + "yes"),
        ToolCalls(type="tool_calls", forbidden=["a"]),
    ]
    task = a_task(graders=graders)
    for agent in (
        says({"messages": spoken, "output": "y" * 480 + secret + "z" * 3000}),
        says({"messages": spoken, "end": "crashed", "detail": "z" * 3000 + secret + "y" * 1890}),
        fails_at_first(9, why=f"the provider said {secret}"),
    ):
        finished = await run_trial(task, 0, bench(agent, secrets=(secret,)))
        kept = finished.model_dump_json()
        assert not any(part in kept for part in ("quoted", "second line", "sk-", "ine ü"))
        assert "***" in kept
        assert len(finished.transcript.detail) < 2100


async def test_an_agent_that_is_wrong_or_crashes_has_failed_and_is_not_tried_again(bench) -> None:
    finished = await run_trial(a_task(), 0, bench(says("no"), retries=3))
    assert status(finished) == (TrialStatus.FAILED, 1)
    assert "'yes'" in finished.trial.reason
    finished = await run_trial(a_task(), 0, bench(lambda attempt: 1 / 0, retries=3))
    assert status(finished) == (TrialStatus.FAILED, 1)
    assert finished.transcript.end is EndReason.CRASHED


@pytest.mark.parametrize("limit", [0.2, None])
async def test_no_trial_runs_for_ever(bench, monkeypatch: pytest.MonkeyPatch, limit: float | None) -> None:
    monkeypatch.setattr(run_module, "DEFAULT_SECONDS", 0.2)
    hangs = bench(lambda attempt: asyncio.Event().wait())
    finished = await run_trial(a_task(budgets=Budgets(max_seconds=limit)), 0, hangs)
    assert finished.trial.status is TrialStatus.FAILED
    assert limit is None or "max_seconds is 0.2" in finished.trial.reason


@pytest.mark.parametrize(
    ("failures", "transient", "retries", "expected", "attempts"),
    [
        (0, True, 0, TrialStatus.PASSED, 1),
        (1, True, 0, TrialStatus.ERROR, 1),
        (1, True, 1, TrialStatus.PASSED, 2),
        (2, True, 1, TrialStatus.ERROR, 2),
        (2, True, 2, TrialStatus.PASSED, 3),
        (9, True, 3, TrialStatus.ERROR, 4),
        (1, False, 5, TrialStatus.ERROR, 1),
    ],
)
async def test_what_may_be_gone_is_tried_again(
    bench, failures: int, transient: bool, retries: int, expected: TrialStatus, attempts: int
) -> None:
    finished = await run_trial(a_task(), 0, bench(fails_at_first(failures, transient=transient), retries=retries))
    assert status(finished) == (expected, attempts)
    assert finished.trial.reason == ("" if expected is TrialStatus.PASSED else "the provider is down")


class LlmJudge:
    """A judge that is down at first and then gives this answer for half a dollar."""

    name = "judge"
    votes = 1

    def __init__(self, failures: int, answer: str = '{"score": 1.0, "reason": "good"}', transient: bool = True) -> None:
        self._failures, self._answer, self._transient = failures, answer, transient

    async def reply(self, request: JudgeRequest) -> JudgeReply:
        self._failures -= 1
        if self._failures >= 0:
            raise MeasurementError("the judge is down", transient=self._transient)
        return JudgeReply(text=self._answer, usage=Usage(tokens_in=1, tokens_out=1, cost_usd=0.5))

    async def close(self) -> None:
        pass


RUBRIC = {"type": "llm_rubric", "rubric": "Is it kind?"}


@pytest.mark.parametrize(
    ("graders", "answer", "transient", "expected", "attempts"),
    [
        ([RUBRIC], "yes", True, TrialStatus.ERROR, 3),
        ([RUBRIC], "yes", False, TrialStatus.ERROR, 1),
        ([RUBRIC, SAYS_YES], "no", True, TrialStatus.FAILED, 1),  # It fails whatever the judge may say
    ],
)
async def test_a_grader_that_could_not_measure_is_tried_again_if_that_may_help(
    bench, graders: list[Any], answer: str, transient: bool, expected: TrialStatus, attempts: int
) -> None:
    judge = LlmJudge(9, transient=transient)
    finished = await run_trial(a_task(graders=graders), 0, bench(says(answer), retries=2, judge=judge))
    assert status(finished) == (expected, attempts)
    assert expected is TrialStatus.FAILED or "the judge is down" in finished.trial.reason


async def test_every_attempt_has_a_fresh_workspace(bench) -> None:
    seen = []

    def leaves_a_file(attempt: Attempt) -> str:
        seen.append(sorted(file.name for file in attempt.workspace.iterdir()))
        (attempt.workspace / "left").touch()
        if len(seen) == 1:
            raise MeasurementError("down", transient=True)
        return "yes"

    await run_trial(a_task(), 0, bench(leaves_a_file))
    assert seen == [[], []]


async def test_the_transcript_has_the_files_that_the_agent_changed_and_not_those_that_it_reports(bench) -> None:
    def works(attempt: Attempt) -> Transcript:
        (attempt.workspace / "notes.txt").write_text("done\n")
        reported = FileChanges(files=(ChangedFile(path="report.md", change=ChangeKind.ADDED),))
        return Transcript(output="yes", file_changes=reported)

    finished = await run_trial(a_task(reset=("echo todo > todo.txt",)), 0, bench(works))
    (file,) = finished.transcript.file_changes.files
    assert (file.path, file.change) == ("notes.txt", ChangeKind.ADDED)
    assert file.diff.endswith("\n+done")


async def test_without_a_workspace_no_files_are_compared(bench) -> None:
    class Chat(FunctionAgent):
        uses_workspace = False

    resources = replace(bench(says("yes")), agent=Chat(says("yes")))
    finished = await run_trial(a_task(), 0, resources)
    assert finished.transcript.output == "yes"
    assert finished.transcript.file_changes is None


@pytest.mark.parametrize("result", ["deep", object(), "\ud800", 10**5000], ids=["deep", "object", "surrogate", "long"])
async def test_what_the_agent_hands_over_cannot_end_the_run(bench, result: Any) -> None:
    if result == "deep":
        result = reduce(lambda inner, _: [inner], range(400), "x")
    call = {"tool": "a", "result": result}
    finished = await run_trial(a_task(), 0, bench(says({"messages": [{"role": "assistant", "tool_calls": [call]}]})))
    assert finished.trial.status is TrialStatus.ERROR
    FinishedTrial.model_validate_json(finished.model_dump_json())


async def test_an_unknown_cost_hides_no_violation(bench) -> None:
    task = a_task(graders=[{"type": "policy_check", "canaries": ["c-1"]}], budgets=Budgets(max_cost_usd=1))
    finished = await run_trial(task, 0, bench(says("here: c-1")))
    assert finished.trial.status is TrialStatus.FAILED
    assert len(finished.trial.violations) == 1


@pytest.mark.parametrize(
    ("task", "cost_cap", "expected", "attempts", "reason"),
    [
        ({"reset": ("exit 3",)}, CostCap(), TrialStatus.ERROR, 1, "the task's reset exited 3: exit 3: "),
        ({}, CostCap(1.0, spent=1.0), TrialStatus.NOT_RUN, 0, "the run's cost cap of $1 is spent"),
    ],
)
async def test_without_a_sandbox_or_money_nothing_is_measured(
    bench, task: dict[str, Any], cost_cap: CostCap, expected: TrialStatus, attempts: int, reason: str
) -> None:
    finished = await run_trial(a_task(**task), 0, replace(bench(says("yes")), cost_cap=cost_cap))
    assert (*status(finished), finished.trial.reason) == (expected, attempts, reason)


async def test_a_trial_that_the_cap_stopped_is_not_run_and_not_tried_again(bench) -> None:
    tries = []

    def capped(attempt: Attempt) -> str:
        tries.append(attempt)
        raise CostCapError("the run's cost cap of $1 is spent", transient=True)

    finished = await run_trial(a_task(), 0, bench(capped))
    assert (finished.trial.status, len(tries)) == (TrialStatus.NOT_RUN, 1)


def fails_at_the_second_turn(attempt: Attempt) -> dict[str, Any]:
    if attempt.turn == 1:
        raise MeasurementError("the provider is down", transient=True)
    step = {"role": "assistant", "content": "yes", "usage": {"tokens_in": 5, "tokens_out": 1, "cost_usd": 0.25}}
    return {"messages": [step]}


async def test_an_error_keeps_what_was_said_before_and_attempts_that_were_paid_count(bench) -> None:
    task = a_task(user={"says": ["and then?"]})
    finished = await run_trial(task, 0, bench(fails_at_the_second_turn, retries=2), paid_before=1.0)
    assert status(finished) == (TrialStatus.ERROR, 3)
    assert [message.content for message in finished.transcript.messages] == ["Say yes.", "yes", "and then?"]
    assert finished.trial.isolation in {"bubblewrap", "process_group"}
    assert finished.trial.transcript_digest == json_digest(finished.transcript.model_dump(mode="json"))
    assert finished.trial.unmeasured_cost == 1.5
    assert finished.trial.cost == pytest.approx(1.75), "of three attempts"


async def test_a_judges_answers_that_are_of_no_use_count(bench) -> None:
    finished = await run_trial(
        a_task(graders=[RUBRIC]), 0, bench(says("yes"), retries=0, judge=LlmJudge(0, "of no use"))
    )
    assert status(finished) == (TrialStatus.ERROR, 1)
    assert finished.trial.cost == pytest.approx(1.0), "it was asked once more to repair its reply"
