"""A small repository with a gate and an agent, for whoever attacks the gate.

What each attack tries and what comes of it stands in docs/integrity.md, by the name of its test.
"""

import asyncio
import json
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import chdir
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from passgate.flows.evaluate import evaluate
from passgate.tasks.errors import PassgateError
from passgate.tasks.execution.engine import Engine
from passgate.tasks.load import load
from passgate.tasks.model.run import RunRequest
from passgate.tasks.model.task import GateName
from passgate.tasks.reports.terminal import terminal
from passgate.tasks.sandboxes.isolation import best_isolation
from tests.project import Project
from tests.repositories import GitRepository

INSTALLED = (str(Path(sys.executable).with_name("passgate")),)
"""The command that is installed, in a new interpreter."""
GATES = """\
baseline: {young: block}
suites:
  golden: {k: 1, metric: pass^k, max_steps: 20, budgets: {max_seconds: 300}}
gates:
  ci_merge:
    suites: [golden]
    blocks_on: [safety_violation, forbidden_tool, golden_regression, task_failed]
"""

TASK = """\
task_id: {name}
suite: golden
description: Write ok into {name}.txt.
inputs: {{prompt: Write ok into {name}.txt.}}
graders:
{graders}
tracked_metrics: [latency]
"""

WORDS = "  - {{type: state_check, expect: [{{file: {name}.txt, {expect}}}]}}"
DONE_BY_TESTS = "  - {type: deterministic_tests, tests: [_shared/tests/a/test_a.py]}"
HIDDEN_TEST = """\
from pathlib import Path

def test_it_is_done():
    assert Path("a.txt").read_text() == "ok"
"""

WORKS = "printf ok > a.txt\n"
BROKEN = "printf bad > a.txt\n"

QUICK = {"loosened_grader", "branch_from_an_old_commit", "shallow_clone", "history_that_comes_with_the_change"}
"""The attacks that are tried with the tests that are not slow."""

Files = Mapping[str, str | None]
"""Texts by the names of their files; None takes a file away."""


def task(name: str, expect: str = "equals: ok", graders: str = "") -> str:
    """A task to write a file, and what is expected of the file."""
    return TASK.format(name=name, graders=graders or WORDS.format(name=name, expect=expect))


A = "suites/golden/a.yaml"
LAX = {A: task("a", 'matches: "."')}
"""A loosened grader of the task `a`."""
BLOCKS_NOTHING = GATES.replace(", golden_regression, task_failed", "")
ANOTHER_SUITE = "  adversarial: {k: 1, metric: pass^k, max_steps: 20}\ngates:"
TESTED = {A: task("a", graders=DONE_BY_TESTS), "suites/_shared/tests/a/test_a.py": HIDDEN_TEST}
"""A hidden test that grades the task `a`."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == Path(__file__).parent and item.name.removeprefix("test_") not in QUICK:
            item.add_marker(pytest.mark.slow)


@dataclass
class Outcome:
    """How a run of the gate has ended."""

    code: int
    printed: str
    verdict: dict[str, Any] = field(default_factory=dict)

    @property
    def edits(self) -> list[str]:
        return [edit["path"] for edit in (self.verdict.get("integrity") or {}).get("edits", [])]


class Clone(GitRepository):
    """A repository with a gate."""

    def gate(self, *codes: int, base: str | None = None, **environment: str) -> Outcome:
        """Run the gate in this process, with more of the environment; it ends with one of these exit codes."""
        with chdir(self.path), patch.dict(os.environ, environment):
            outcome = self._outcome(base)
        assert outcome.code in codes, outcome.printed
        return outcome

    def _outcome(self, base: str | None) -> Outcome:
        try:
            plan = load(GateName.CI_MERGE, RunRequest(agent="desk", jobs=1, base=base))
            verdict = asyncio.run(evaluate(plan.gate, plan.request, Engine(), plan))
        except PassgateError as error:
            return Outcome(error.exit_code, str(error))
        return Outcome(verdict.exit_code, terminal(verdict, width=200, color=False), verdict.model_dump(mode="json"))

    def command(self, code: int, *arguments: str, passgate: Sequence[str] = (), **environment: str) -> Outcome:
        """Run the gate by a command, as a workflow does; it ends with this exit code."""
        project = Project(self.path, {"PASSGATE_ENGINE": "none", "CI": "true"})
        arguments = arguments or ("--agent", "desk")
        result = project.run([*(passgate or project.command()), "run", "ci_merge", *arguments], **environment)
        assert result.returncode == code, result.stdout + result.stderr
        files = sorted((self.path / ".passgate/runs").glob("*/verdict.json"))
        return Outcome(code, result.stdout + result.stderr, json.loads(files[-1].read_text()) if files else {})

    def put(self, files: Files) -> None:
        for name, text in files.items():
            if text is None:
                (self.path / name).unlink()
            else:
                self.write(name, text)

    def change(self, files: Files) -> str:
        """Commit files; the commit."""
        self.put(files)
        return self.commit()


class Attacked(Clone):
    """A gate with the task `a` and an agent that does it, on main, which the remote has too; the branch `change` is
    checked out, on which the agent is broken.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.git("config", "remote.origin.url", str(path))
        agents = f"agents: {{desk: {{agent: 'cli:sh {path}/agent.sh'}}}}\n"
        self.put({"gates.yaml": GATES, A: task("a"), "agent.sh": WORKS, "agents.yaml": agents})
        self.land()
        self.branch("change")
        self.agent(BROKEN)

    def land(self, files: Files | None = None) -> str:
        """Commit files as if the remote's main had them; the commit."""
        commit = self.change(files or {})
        self.git("update-ref", "refs/remotes/origin/main", commit)
        return commit

    def on_main(self, files: Files) -> None:
        """Put files on main, and the change on top of it."""
        self.checkout("main")
        self.land(files)
        self.git("rebase", "--quiet", "main", "change")

    def agent(self, script: str) -> None:
        """What the agent does now."""
        self.change({"agent.sh": script})


@pytest.fixture
def attacked(tmp_path: Path) -> Attacked:
    return Attacked(tmp_path / "repository")


@pytest.fixture
def isolated(attacked: Attacked, tmp_path: Path) -> Attacked:
    """The same on a machine where commands of trials are isolated."""
    (tmp_path / "probe").mkdir()
    if not best_isolation([], run_folder=tmp_path / "probe").bubblewrap:
        pytest.skip("bubblewrap does not work on this machine")
    return attacked
