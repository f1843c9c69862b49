"""A sandbox of real processes and evidence to grade, made from as little as a test wants to say."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from passgate.tasks.graders.interface import Evidence
from passgate.tasks.model.grade import JudgeReply, JudgeRequest, LlmJudge
from passgate.tasks.model.sandbox import ProcessResult
from passgate.tasks.model.task import Budgets, EvalTask, Metric, Suite
from passgate.tasks.model.transcript import Message, ToolCall, Transcript, Usage
from passgate.tasks.model.trial import TrialMetrics

OUTPUT_LIMIT = 100_000


@dataclass(frozen=True)
class LocalSandbox:
    """A sandbox without isolation: commands are process groups in `workspace`."""

    workspace: Path
    scratch: Path
    isolation: str = "process_group"

    async def run(
        self,
        command: Sequence[str],
        *,
        seconds: float,
        stdin: bytes = b"",
        environment: Mapping[str, str] | None = None,
        network: bool = False,
    ) -> ProcessResult:
        return await self.run_for_authors(
            command, folder=self.workspace, seconds=seconds, stdin=stdin, environment=environment
        )

    async def run_for_authors(
        self,
        command: Sequence[str],
        *,
        folder: Path,
        seconds: float,
        stdin: bytes = b"",
        environment: Mapping[str, str] | None = None,
    ) -> ProcessResult:
        started = time.monotonic()
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=folder,
            env={"PATH": os.defpath, "HOME": str(self.workspace), "LANG": "C.UTF-8", **(environment or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        conversation = asyncio.ensure_future(process.communicate(stdin))
        done, _ = await asyncio.wait([conversation], timeout=seconds)
        if not done:
            os.killpg(process.pid, signal.SIGKILL)
        stdout, stderr = await conversation
        assert process.returncode is not None
        return ProcessResult(
            exit_code=process.returncode,
            stdout=stdout[:OUTPUT_LIMIT].decode(errors="replace"),
            stderr=stderr[:OUTPUT_LIMIT].decode(errors="replace"),
            timed_out=not done,
            output_limit_hit=max(len(stdout), len(stderr)) > OUTPUT_LIMIT,
            wall_time_seconds=time.monotonic() - started,
        )


class RecordedJudge:
    """A judge that gives its replies one after the other, the last one again and again, and keeps what it was asked."""

    name = "recorded"

    def __init__(self, *replies: str, votes: int = 1) -> None:
        self.replies = replies
        self.votes = votes
        self.requests: list[JudgeRequest] = []

    async def reply(self, request: JudgeRequest) -> JudgeReply:
        self.requests.append(request)
        text = self.replies[min(len(self.requests), len(self.replies)) - 1]
        return JudgeReply(text=text, usage=Usage(tokens_in=10, tokens_out=3))

    async def close(self) -> None:
        return


@pytest.fixture
def sandbox(tmp_path: Path) -> LocalSandbox:
    # A blank in the path is what breaks commands that are put together carelessly.
    place = LocalSandbox(workspace=tmp_path / "work space", scratch=tmp_path / "scratch")
    place.workspace.mkdir()
    place.scratch.mkdir()
    return place


@pytest.fixture
def workspace(sandbox: LocalSandbox) -> Path:
    return sandbox.workspace


@pytest.fixture
def suites_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "suites"
    folder.mkdir()
    return folder


@pytest.fixture
def make_evidence(sandbox: LocalSandbox, suites_folder: Path) -> Callable[..., Evidence]:
    def make(
        *,
        transcript: Transcript | None = None,
        metrics: TrialMetrics | None = None,
        judge: LlmJudge | None = None,
        prompt: str = "Do it.",
        **of_task: Any,
    ) -> Evidence:
        return Evidence(
            task=eval_task(prompt).model_copy(update=of_task),
            transcript=transcript or Transcript(),
            metrics=metrics or TrialMetrics(),
            sandbox=sandbox,
            suites_folder=suites_folder,
            judge=judge,
        )

    return make


@pytest.fixture
def evidence(make_evidence: Callable[..., Evidence]) -> Evidence:
    return make_evidence()


def eval_task(prompt: str) -> EvalTask:
    return EvalTask(
        task_id="task",
        suite=Suite.GOLDEN,
        description="",
        inputs={"prompt": prompt},
        budgets=Budgets(),
        k=1,
        metric=Metric.PASS_HAT_K,
        graders=(),
        tracked_metrics=(),
        gates=frozenset(),
        file="suites/golden/task.yaml",
        task_digest="",
        grader_digest="",
    )


@pytest.fixture
def said() -> Callable[..., Transcript]:
    """A transcript of assistant messages, the last of which is the final answer."""

    def make(*contents: str, **fields: Any) -> Transcript:
        messages = tuple(Message(role="assistant", content=content) for content in contents)
        return Transcript(**{"messages": messages, "output": contents[-1] if contents else "", **fields})

    return make


@pytest.fixture
def called() -> Callable[..., Transcript]:
    """A transcript of one assistant message with tool calls: names, or pairs of name and arguments."""

    def make(*calls: str | tuple[str, dict[str, Any]], **fields: Any) -> Transcript:
        pairs = [(call, {}) if isinstance(call, str) else call for call in calls]
        tool_calls = tuple(ToolCall(tool=tool, arguments=arguments) for tool, arguments in pairs)
        return Transcript(**{"messages": (Message(role="assistant", tool_calls=tool_calls),), **fields})

    return make


@pytest.fixture
def leave(workspace: Path) -> Callable[[dict[str, str]], None]:
    """Leave files in the workspace, as an agent would."""
    return lambda files: write(workspace, files)


@pytest.fixture
def provide(suites_folder: Path) -> Callable[[dict[str, str]], None]:
    """Put files into the suites folder, as a task's author would."""
    return lambda files: write(suites_folder, files)


def write(folder: Path, files: Mapping[str, str]) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")


@pytest.fixture
def recorded_judge() -> type[RecordedJudge]:
    return RecordedJudge


@pytest.fixture
def bare_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Graders start a Python that has no packages at all."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bare" / "bin" / "python"))
