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
from passgate.tasks.model.transcript import EndReason

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
    (suites / "fails.sh").write_text("echo oh no >&2; exit 3\n")
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


async def test_a_patch_is_applied(references: Path, sandbox_of) -> None:
    task = task_with(patch="fix.patch")
    async with sandbox_of(task) as sandbox:
        transcript = await one_turn(OracleAgent(references, None), task, sandbox)
        assert (sandbox.workspace / "greeting.txt").read_text() == "yes\n"
        assert (sandbox.workspace / "deep/new.txt").read_text() == "new\n"
    assert [call.tool for call in transcript.tool_calls] == ["apply_patch"]
    assert transcript.end is EndReason.COMPLETED
    assert transcript.output


async def test_a_script_runs_after_the_patch(references: Path, attempt) -> None:
    transcript = await attempt(OracleAgent(references, None), task_with(patch="fix.patch", script="fix.sh"))
    assert [call.tool for call in transcript.tool_calls] == ["apply_patch", "run_script"]
    assert transcript.tool_calls[1].result == "yes\ndone\n"


async def test_a_recorded_transcript_is_given(references: Path, attempt) -> None:
    transcript = await attempt(OracleAgent(references, None), task_with(transcript="recorded.json", script="fix.sh"))
    assert transcript.output == "recorded"
    assert trial_metrics(transcript).tokens_in == 9


async def test_a_counterexample_goes_by_its_name(references: Path, attempt) -> None:
    transcript = await attempt(OracleAgent(references, "wrong"), task_with(patch="fix.patch"))
    assert transcript.tool_calls[0].result == "hello\ndone\n"


async def test_an_unknown_counterexample_cannot_be_measured(references: Path, attempt) -> None:
    with pytest.raises(MeasurementError, match="no counterexample 'wrnog'; it has wrong, other"):
        await attempt(OracleAgent(references, "wrnog"), task_with(patch="fix.patch"))


async def test_without_a_reference_there_is_nothing_to_do(references: Path, attempt) -> None:
    with pytest.raises(MeasurementError, match="has no `reference:`"):
        await attempt(OracleAgent(references, None), a_task())


async def test_a_patch_that_does_not_fit_cannot_be_measured(references: Path, attempt) -> None:
    (references / "fix.patch").write_text(PATCH.replace("-hello", "-hallo"))
    with pytest.raises(MeasurementError, match=r"apply_patch .* exited 1: error: patch failed: greeting\.txt:1"):
        await attempt(OracleAgent(references, None), task_with(patch="fix.patch"))


async def test_a_patch_that_leaves_the_workspace_cannot_be_measured(references: Path, attempt) -> None:
    (references / "fix.patch").write_text("--- /dev/null\n+++ b/../../escaped\n@@ -0,0 +1 @@\n+x\n")
    with pytest.raises(MeasurementError, match="apply_patch"):
        await attempt(OracleAgent(references, None), task_with(patch="fix.patch"))


async def test_a_script_that_fails_cannot_be_measured(references: Path, attempt) -> None:
    with pytest.raises(MeasurementError, match=r"run_script .* exited 3: oh no"):
        await attempt(OracleAgent(references, None), task_with(script="fails.sh"))


async def test_a_script_that_hangs_cannot_be_measured(references: Path, attempt) -> None:
    (references / "fails.sh").write_text("sleep 600\n")
    with pytest.raises(MeasurementError, match="ran out of time"):
        await attempt(OracleAgent(references, None), task_with(script="fails.sh"), seconds=0.2)


async def test_a_transcript_that_is_gone_cannot_be_measured(references: Path, attempt) -> None:
    with pytest.raises(MeasurementError, match=r"no recorded transcript gone\.json"):
        await attempt(OracleAgent(references, None), task_with(transcript="gone.json"))


@pytest.mark.usefixtures("without_bubblewrap")
async def test_a_patch_touches_no_repository_around(
    references: Path, tmp_path: Path, sandbox_of, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`git apply` takes paths as of the repository that it is in, which a temporary folder may be."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    subprocess.run(["git", "init", "--quiet", str(temporary)], check=True)
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    task = task_with(patch="fix.patch")
    async with sandbox_of(task) as sandbox:
        assert sandbox.workspace.is_relative_to(temporary)
        await one_turn(OracleAgent(references, None), task, sandbox)
        assert (sandbox.workspace / "greeting.txt").read_text() == "yes\n"


async def test_nop_does_nothing_and_says_nothing(sandbox_of) -> None:
    async with sandbox_of() as sandbox:
        transcript = await one_turn(NopAgent(), a_task(), sandbox)
        assert list(sandbox.workspace.iterdir()) == []
    assert (transcript.output, transcript.steps, transcript.tool_calls) == ("", (), ())
    assert transcript.complete is True


async def test_no_model_costs_nothing(references: Path, attempt) -> None:
    solved = await attempt(OracleAgent(references, None), task_with(patch="fix.patch"))
    for transcript in (solved, await attempt(NopAgent())):
        metrics = trial_metrics(transcript)
        assert (metrics.cost, metrics.total_tokens) == (0.0, 0)


# --- tasks without a reference solution ------------------------------------------------------------------------------


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
    assert [(call.tool, call.arguments, call.result) for call in transcript.tool_calls] == [
        ("find", {"q": 1}, "found"),
        ("read", {}, {"own": 1}),
        ("look", {}, "seen"),
        ("close", {}, None),
    ]
    assert [call.duration_ms for call in transcript.tool_calls] == [None, 12.5, None, None]
    assert transcript.output == "yes"
    assert trial_metrics(transcript).tool_call_count == 4


async def test_a_reference_solution_goes_before_the_expected_output(references: Path, attempt) -> None:
    task = task_with(patch="fix.patch").model_copy(update={"expected_output": "yes"})
    assert [call.tool for call in (await attempt(OracleAgent(references, None), task)).tool_calls] == ["apply_patch"]


async def test_an_expected_output_is_no_counterexample(suites: Path, attempt) -> None:
    with pytest.raises(MeasurementError, match="has no `reference:`"):
        await attempt(OracleAgent(suites, "wrong"), a_task(expected_output="yes"))


async def test_nop_says_nothing_of_the_expected_output(attempt) -> None:
    assert (await attempt(NopAgent(), a_task(expected_output="yes"))).output == ""
