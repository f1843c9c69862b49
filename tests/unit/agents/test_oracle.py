"""The agents that prove graders."""

import json
import subprocess
import tempfile
from pathlib import Path

import pytest
from tests.builders import a_task
from tests.unit.agents.conftest import one_turn

from passgate.tasks.agents.oracle import NopAgent, OracleAgent
from passgate.tasks.errors import MeasurementError
from passgate.tasks.metering.usage import trial_metrics
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.transcript import EndReason, ToolCall

PATCH = """\
diff --git a/greeting.txt b/greeting.txt
--- a/greeting.txt
+++ b/greeting.txt
@@ -1 +1 @@
-hello
+yes
diff --git a/deep/new.txt b/deep/new.txt
new file mode 100644
--- /dev/null
+++ b/deep/new.txt
@@ -0,0 +1 @@
+new
"""


@pytest.fixture
def references(suites: Path) -> Path:
    files = suites / "_shared/sandboxes/greeting/files"
    files.mkdir(parents=True)
    (files / "greeting.txt").write_text("hello\n")
    (suites / "fix.patch").write_text(PATCH)
    (suites / "fix.sh").write_text("echo done >> greeting.txt; cat greeting.txt\n")
    (suites / "recorded.json").write_text(
        json.dumps({"messages": [{"role": "assistant", "content": "recorded", "usage": {"tokens_in": 9}}]})
    )
    return suites


def task_with(**solution: str):
    reference = {
        "solution": solution,
        "counterexamples": [{"name": "wrong", "script": "fix.sh"}, {"name": "other", "script": "fix.sh"}],
    }
    return a_task(sandbox="greeting", reference=reference)


PATCHED = task_with(patch="fix.patch")


@pytest.mark.parametrize(
    ("counterexample", "task", "results"),
    [
        (None, PATCHED, {"apply_patch": ""}),
        (None, PATCHED.model_copy(update={"expected_output": "yes"}), {"apply_patch": ""}),
        (None, task_with(patch="fix.patch", script="fix.sh"), {"apply_patch": "", "run_script": "yes\ndone\n"}),
        ("wrong", PATCHED, {"run_script": "hello\ndone\n"}),
    ],
    ids=["patch", "before the expected output", "script after the patch", "counterexample by its name"],
)
async def test_the_reference_solution_is_applied(references, attempt, counterexample, task: EvalTask, results) -> None:
    transcript = await attempt(OracleAgent(references, counterexample), task)
    assert {call.tool: call.result for call in transcript.tool_calls} == results
    assert transcript.end is EndReason.COMPLETED
    assert transcript.output
    metrics = trial_metrics(transcript)
    assert (metrics.cost, metrics.total_tokens) == (0.0, 0), "no model was asked"


async def test_a_recorded_transcript_is_given(references: Path, attempt) -> None:
    transcript = await attempt(OracleAgent(references, None), task_with(transcript="recorded.json", script="fix.sh"))
    assert (transcript.output, trial_metrics(transcript).tokens_in) == ("recorded", 9)


@pytest.mark.parametrize(
    ("counterexample", "task", "what"),
    [
        ("wrnog", PATCHED, "no counterexample 'wrnog'; it has wrong, other"),
        (None, a_task(), "has no `reference:`"),
        ("wrong", a_task(expected_output="yes"), "has no `reference:`"),
        (None, task_with(patch="other.patch"), r"apply_patch .* exited 1: error: patch failed: greeting\.txt:1"),
        (None, task_with(patch="leaves.patch"), "apply_patch"),
        (None, task_with(script="fails.sh"), r"run_script .* exited 3: oh no"),
        (None, task_with(transcript="gone.json"), r"no recorded transcript gone\.json"),
    ],
)
async def test_what_the_oracle_cannot_do_cannot_be_measured(
    references: Path, attempt, counterexample: str | None, task: EvalTask, what: str
) -> None:
    (references / "other.patch").write_text(PATCH.replace("-hello", "-hallo"))
    (references / "leaves.patch").write_text("--- /dev/null\n+++ b/../../escaped\n@@ -0,0 +1 @@\n+x\n")
    (references / "fails.sh").write_text("echo oh no >&2; exit 3\n")
    with pytest.raises(MeasurementError, match=what):
        await attempt(OracleAgent(references, counterexample), task)


async def test_a_script_that_hangs_cannot_be_measured(references: Path, attempt) -> None:
    (references / "hangs.sh").write_text("sleep 600\n")
    with pytest.raises(MeasurementError, match="ran out of time"):
        await attempt(OracleAgent(references, None), task_with(script="hangs.sh"), seconds=0.2)


@pytest.mark.usefixtures("without_bubblewrap")
async def test_a_patch_touches_no_repository_around(references: Path, tmp_path: Path, sandbox_of, monkeypatch) -> None:
    """`git apply` takes paths as of the repository that it is in, which a temporary folder may be."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    subprocess.run(["git", "init", "--quiet", str(temporary)], check=True)
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    async with sandbox_of(PATCHED) as sandbox:
        assert sandbox.workspace.is_relative_to(temporary)
        await one_turn(OracleAgent(references, None), PATCHED, sandbox)
        assert (sandbox.workspace / "greeting.txt").read_text() == "yes\n"
        assert (sandbox.workspace / "deep/new.txt").read_text() == "new\n"


async def test_nop_does_nothing_and_says_nothing(sandbox_of) -> None:
    task = a_task(expected_output="yes")
    async with sandbox_of(task) as sandbox:
        transcript = await one_turn(NopAgent(), task, sandbox)
        assert list(sandbox.workspace.iterdir()) == []
    assert (transcript.output, transcript.steps, transcript.tool_calls) == ("", (), ())
    assert transcript.complete is True
    assert (trial_metrics(transcript).cost, trial_metrics(transcript).total_tokens) == (0.0, 0)


@pytest.mark.parametrize(
    ("expected", "output"),
    [("yes", "yes"), ("", ""), ({"answer": ["é", 1]}, '{\n  "answer": [\n    "é",\n    1\n  ]\n}'), (False, "false")],
)
async def test_the_expected_output_is_the_answer(suites: Path, attempt, expected: object, output: str) -> None:
    transcript = await attempt(OracleAgent(suites, None), a_task(expected_output=expected))
    assert transcript.output == output
    assert [(message.role, message.content) for message in transcript.messages] == [
        ("user", "Say yes."),
        ("assistant", output),
    ]
    assert (transcript.complete, transcript.end) == (True, EndReason.COMPLETED)


async def test_expected_messages_are_said_with_their_calls(suites: Path, attempt) -> None:
    first = {"id": "a", "tool": "find", "arguments": {"q": 1}}
    second = {"id": "b", "tool": "read", "result": {"own": 1}, "duration_ms": 12.5}
    third = {"tool": "look", "duration_ms": -1}
    task = a_task(
        expected_output="not this",
        expected_messages=[
            {"role": "assistant", "content": "I look.", "tool_calls": [first, second, third]},
            {"role": "tool", "content": "not used", "tool_call_id": "b"},
            {"role": "tool", "content": "found", "tool_call_id": "a"},
            {"role": "tool", "content": [{"type": "text", "value": "seen"}]},
            {"role": "user", "content": "And?"},
            {"role": "assistant", "content": [{"type": "text", "value": "yes"}]},
            {"role": "assistant", "tool_calls": [{"tool": "close"}]},
        ],
    )
    transcript = await attempt(OracleAgent(suites, None), task)
    assert [message.role for message in transcript.messages] == ["user", "assistant", "user", "assistant", "assistant"]
    assert transcript.tool_calls == (
        ToolCall(tool="find", arguments={"q": 1}, result="found"),
        ToolCall(tool="read", result={"own": 1}, duration_ms=12.5),
        ToolCall(tool="look", result="seen"),
        ToolCall(tool="close"),
    )
    assert transcript.output == "yes"
    assert trial_metrics(transcript).tool_call_count == 4
