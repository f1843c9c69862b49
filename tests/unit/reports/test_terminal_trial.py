"""A recorded trial on a terminal and as JSON."""

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from rich.cells import cell_len
from tests.unit.reports.hostile import HOSTILE

from passgate.flows.cli.output import OutputForm, answer, output_form
from passgate.tasks.model.grade import Check, Grade, Violation, ViolationRule
from passgate.tasks.model.task import Metric, Suite
from passgate.tasks.model.transcript import (
    ChangedFile,
    ChangeKind,
    EndReason,
    FileChanges,
    Message,
    ToolCall,
    Transcript,
)
from passgate.tasks.model.trial import FinishedTrial, Trial, TrialMetrics, TrialStatus
from passgate.tasks.reports.terminal_trial import trial_report

RUN = "20260401T020000Z-ci_merge-5f3a"
COMMAND = ("passgate", "try", "golden/refund", "--agent", "cli:python agent.py")


def a_finished(text: str = "", transcript: Transcript | None = None, **changes: Any) -> FinishedTrial:
    """A failed trial with a text in every place that an agent can fill, and changes of the trial."""
    call = ToolCall(tool=f"refund{text}", arguments={f"order{text}": f"A-17{text}"}, result=f"no such order{text}")
    grades = (
        Grade(
            name="policy",
            type="policy_check",
            score=0.0,
            passed=False,
            checks=(Check(passed=False, message=f"expected status 'refunded', got 'open'{text}"),),
            violations=(Violation(rule=ViolationRule.SAFETY_VIOLATION, message=f"told the card number{text}"),),
        ),
        Grade(name="judge", type="llm_rubric", score=None, passed=False, error=f"the judge said nothing{text}"),
    )
    plain: dict[str, Any] = {
        "suite": Suite.GOLDEN,
        "task_id": f"refund{text}",
        "trial": 2,
        "k": 3,
        "metric": Metric.PASS_HAT_K,
        "status": TrialStatus.FAILED,
        "reason": f"policy: expected status 'refunded', got 'open'{text}",
        "grades": grades,
        "metrics": TrialMetrics(steps=2, cost=0.0123),
        "started_at": datetime(2026, 4, 1, 2, 0, tzinfo=UTC),
        "task_digest": "t" * 16,
        "grader_digest": "g" * 16,
        "file": f"suites/golden/refund{text}.yaml",
        "line": 3,
    }
    messages = (
        Message(role="user", content=f"Refund order A-17.{text}"),
        Message(role="assistant", content=f"I look.{text}", tool_calls=(call,)),
        Message(role="assistant", tool_calls=(ToolCall(tool="delete_user", refused=True),)),
    )
    diff = (
        f"--- a/orders.csv\n+++ b/orders.csv\n@@ -1,2 +1,2 @@\n order,state{text}\n-A-17,open{text}\n+A-17,closed{text}"
    )
    files = (
        ChangedFile(path=f"orders{text}.csv", change=ChangeKind.MODIFIED, size=23, diff=diff),
        ChangedFile(path=f"receipt{text}.pdf", change=ChangeKind.ADDED, size=48_113),
        ChangedFile(path=f"draft{text}.md", change=ChangeKind.DELETED),
    )
    known = transcript or Transcript(
        messages=messages,
        output=f"Done.{text}",
        end=EndReason.COMPLETED,
        wall_time_seconds=4.2,
        file_changes=FileChanges(files=files, left_out=2),
    )
    return FinishedTrial(trial=Trial(**plain | changes), transcript=known)


def shown(finished: FinishedTrial, *, width: int = 80, color: bool = False, kept: bool = True) -> str:
    return trial_report(finished, run_id=RUN, kept=kept, command=COMMAND, width=width, color=color)


@pytest.mark.parametrize(("name", "text"), [("failed", ""), ("hostile", HOSTILE)])
def test_a_trial_reads_as_the_golden_file(name: str, text: str, matches_golden: Callable[[str, str], None]) -> None:
    matches_golden(shown(a_finished(text)), f"show_{name}.txt")


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_hostile_agent_steers_no_terminal_and_no_runner(width: int) -> None:
    text = shown(a_finished(HOSTILE), width=width)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)
    assert "##[" not in text
    assert not [line for line in text.split("\n") if line.lstrip().startswith(("::", "ci_merge PASS"))]
    assert max(map(cell_len, text.split("\n"))) <= width


def test_as_json_it_has_every_field_and_no_control_character(capsys: pytest.CaptureFixture[str]) -> None:
    form = output_form.set(OutputForm(as_json=True))
    answer(str, a_finished(HOSTILE, reason=HOSTILE))
    output_form.reset(form)
    text = capsys.readouterr().out
    assert text.isascii()
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", text)
    document = json.loads(text)
    assert document["trial"]["reason"] == HOSTILE
    assert document["transcript"]["messages"][1]["tool_calls"][0]["result"] == f"no such order{HOSTILE}"


def saying(*messages: Message) -> Transcript:
    return Transcript(messages=messages)


def test_what_is_too_long_says_how_much_is_left_out() -> None:
    text = shown(a_finished(transcript=saying(*(Message(role="user", content=f"message {one}") for one in range(250)))))
    assert "… 150 messages left out …" in text
    assert [one for one in (49, 50, 199, 200) if f"message {one}\n" in text] == [49, 200]
    answer = Message(role="assistant", content="word " * 2000 + "in the end: yes")
    text = shown(a_finished(transcript=saying(answer)))
    assert "… 2,015 characters left out …" in " ".join(text.split())
    assert "in the end: yes" in text
    checks = tuple(Check(passed=one > 0, message="m") for one in range(230))
    calls = Message(role="assistant", tool_calls=tuple(ToolCall(tool=f"tool{one}") for one in range(60)))
    grade = Grade(name="g", type="g", score=0, passed=False, checks=checks)
    text = shown(a_finished(transcript=saying(calls), grades=(grade,)))
    assert "... and 10 more calls" in text
    assert "... and 30 more checks" in text
    text = shown(a_finished(transcript=saying(*[Message(role="user", content="word\n" * 50)] * 100)))
    assert text.count("\n") < 3010
    assert re.search(r"\n… [\d,]+ lines left out …\n", text)
    assert text.startswith("golden/refund, trial 2")
    assert text.endswith("  passgate try golden/refund --agent 'cli:python agent.py'\n")


def test_an_agent_that_changed_no_file_is_told_from_one_without_a_workspace() -> None:
    assert "changed files\nnone\n" in shown(a_finished(transcript=Transcript(file_changes=FileChanges())))
    assert "changed files" not in shown(a_finished(transcript=Transcript()))


def test_the_last_lines_that_an_agent_printed_are_shown_unless_the_reason_says_them() -> None:
    printed = "".join(f"line {number}\n" for number in range(1, 101))
    finished = a_finished(reason="it failed")
    finished = finished.model_copy(update={"transcript": finished.transcript.model_copy(update={"printed": printed})})
    text = shown(finished)
    assert "line 100" in text
    assert "line 80\n" not in text
    told = finished.model_copy(update={"trial": finished.trial.model_copy(update={"reason": f"it failed: {printed}"})})
    assert shown(told).count("line 100") == 1


def test_what_is_special_about_a_trial_is_said() -> None:
    text = shown(a_finished(reused_from="run-1", trial=4), kept=False)
    assert "Not run again: this trial is of the run run-1.\n" in text
    assert "A confirming trial: it was run because the task had failed.\n" in text
    assert "The run keeps no transcript of this trial.\n" in text


def test_what_fails_a_trial_whatever_its_score_is_stands_before_the_checks() -> None:
    check = Check(passed=True, message="the answer is kind")
    grade = Grade(name="g", type="g", score=0.9, passed=False, checks=(check,), fatal="a required item is not met")
    text = shown(a_finished(grades=(grade,)))
    assert text.index("✗ a required item is not met") < text.index("the answer is kind")
