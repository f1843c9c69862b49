"""A sandbox of real processes and evidence to grade, made from as little as a test wants to say."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from passgate.tasks.graders import grade
from passgate.tasks.graders.evidence import Evidence
from passgate.tasks.model.grade import Check, Grade, JudgeRequest, LlmJudge
from passgate.tasks.model.graders import Grader
from passgate.tasks.model.quotes import UNMASKED
from passgate.tasks.model.sandbox import ProcessResult
from passgate.tasks.model.task import Budgets
from passgate.tasks.model.transcript import Transcript
from passgate.tasks.model.trial import TrialMetrics
from passgate.tasks.sandboxes.processes import run_process
from tests.builders import a_task
from tests.unit.graders.trials import Files, Graded, MakeEvidence, RecordedJudge, said

OUTPUT_LIMIT = 100_000
GRADER: TypeAdapter[Grader] = TypeAdapter(Grader)
PLAIN_TASK = a_task(graders=[], description="", budgets=Budgets(), file="suites/golden/task.yaml")


@dataclass(frozen=True)
class LocalSandbox:
    """A sandbox without isolation: commands are process groups in `workspace`."""

    workspace: Path
    scratch: Path
    variables: dict[str, str] = field(default_factory=dict)
    isolation: str = "process_group"

    @property
    def for_a_grader(self) -> "LocalSandbox":
        return self

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
        plain = {"PATH": os.defpath, "HOME": str(self.workspace), "LANG": "C.UTF-8", **self.variables}
        found = await run_process(
            command,
            working_folder=folder,
            environment={**plain, **(environment or {})},
            mark=None,
            seconds=seconds,
            stdin=stdin,
        )
        too_much = max(len(found.stdout), len(found.stderr)) > OUTPUT_LIMIT
        return found.model_copy(update={"output_limit_hit": too_much})


@pytest.fixture
def sandbox(tmp_path: Path) -> LocalSandbox:
    # A blank in the path is what breaks commands that are put together carelessly.
    place = LocalSandbox(workspace=tmp_path / "work space", scratch=tmp_path / "scratch")
    place.workspace.mkdir()
    place.scratch.mkdir()
    # A pytest starts in a third of the time without the plugins that are installed here.
    place.variables["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    return place


@pytest.fixture
def plugins_of_pytest(sandbox: LocalSandbox) -> None:
    """A pytest in the sandbox loads all plugins that it finds."""
    sandbox.variables.clear()


@pytest.fixture
def workspace(sandbox: LocalSandbox) -> Path:
    return sandbox.workspace


@pytest.fixture
def suites_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "suites"
    folder.mkdir()
    return folder


@pytest.fixture
def make_evidence(sandbox: LocalSandbox, suites_folder: Path) -> MakeEvidence:
    def make(
        *,
        transcript: Transcript | None = None,
        metrics: TrialMetrics | None = None,
        judge: LlmJudge | None = None,
        prompt: str = "Do it.",
        **of_task: Any,
    ) -> Evidence:
        return Evidence(
            task=PLAIN_TASK.model_copy(update={"inputs": {"prompt": prompt}, **of_task}),
            transcript=transcript or Transcript(),
            metrics=metrics or TrialMetrics(),
            sandbox=sandbox,
            masker=UNMASKED,
            suites_folder=suites_folder,
            judge=judge,
        )

    return make


@pytest.fixture
def check(graded: Graded) -> Graded:
    """The one check of a `state_check` with one expectation."""

    async def ask(**expectation: Any) -> Check:
        result = await graded({"type": "state_check", "expect": [expectation]})
        assert result.error is None
        (only,) = result.checks
        assert (result.passed, result.score) == (only.passed, float(only.passed))
        return only

    return ask


@pytest.fixture
def graded(make_evidence: MakeEvidence) -> Graded:
    """The grade of a trial by a grader or its options.

    The trial is a transcript or an answer, and what else the fixture `make_evidence` takes.
    """

    async def ask(options: Any, transcript: Transcript | str | None = None, **trial: Any) -> Grade:
        if isinstance(transcript, str):
            transcript = Transcript(output=transcript)
        if isinstance(options, dict):
            options = GRADER.validate_python(options)
        found = await grade(options, make_evidence(transcript=transcript, **trial))
        assert found.error is None or (found.score, found.passed) == (None, False)
        return found

    return ask


@pytest.fixture
def leave(workspace: Path) -> Files:
    """Leave files in the workspace, as an agent would."""
    return lambda files: write(workspace, files)


@pytest.fixture
def provide(suites_folder: Path) -> Files:
    """Put files into the suites folder, as a task's author would."""
    return lambda files: write(suites_folder, files)


def write(folder: Path, files: Mapping[str, str]) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")


@pytest.fixture
def bare_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Graders start a Python that has no packages at all."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bare" / "bin" / "python"))


@pytest.fixture
def judged(graded: Graded) -> Graded:
    """The grade that a judge gives with these replies, and what it was asked."""

    async def ask(
        options: Any, *replies: str, answer: Transcript | str = "Paris", votes: int = 1, **trial: Any
    ) -> tuple[Grade, list[JudgeRequest]]:
        judge = RecordedJudge(*replies, votes=votes)
        transcript = said(answer) if isinstance(answer, str) else answer
        return await graded(options, transcript, judge=judge, **trial), judge.requests

    return ask
