"""What can be known to be wrong is found before anything runs."""

from pathlib import Path
from typing import Any

import pytest

from passgate import __version__
from passgate.tasks.errors import InputError, StorageError, UsageError
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.load import load
from passgate.tasks.model.run import RunRequest
from passgate.tasks.model.task import GateName
from tests.builders import REPOSITORY, write_task


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("PASSGATE_JUDGE_BASE_URL", "PASSGATE_JUDGE_MODEL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "gates.yaml").write_bytes((REPOSITORY / "gates.yaml").read_bytes())
    write_task(tmp_path / "suites/golden/a.yaml")
    return tmp_path


KEY = "sk-123456"
WITH_KEY = {"agents.yaml": f"agents: {{mine: {{agent: 'cli:sh', variables: {{KEY: {KEY}}}}}}}\n"}


def run_folders() -> list[Path]:
    return list(Path(".passgate/runs").glob("*"))


def prepared(gate: GateName = GateName.CI_MERGE, **request: Any):
    return load(gate, RunRequest(**request))


def test_a_plan_is_made_and_written() -> None:
    plan = prepared(agent="nop", k=2)
    assert plan.passgate_version == __version__
    assert [task.k for task in plan.tasks] == [2]
    assert RunStore.of(plan.run_id).read_plan() == plan


def test_a_run_that_was_begun_is_carried_on_as_it_was_planned(project: Path) -> None:
    plan = prepared(agent="nop")
    write_task(project / "suites/golden/b.yaml", task_id="later")
    (project / "gates.yaml").write_text("broken: [")
    assert prepared(agent="oracle", run=plan.run_id) == plan
    (project / f".passgate/runs/{plan.run_id}/verdict.json").write_text('{"decision": "PA')
    assert prepared(run=plan.run_id) == plan
    assert len(run_folders()) == 1


def test_a_run_of_another_gate_or_one_that_is_not_there_is_refused() -> None:
    plan = prepared()
    with pytest.raises(UsageError, match="is of the gate ci_merge, not of nightly"):
        prepared(GateName.NIGHTLY, run=plan.run_id)
    with pytest.raises(StorageError, match="is not the plan of a run"):
        prepared(run="gone")


@pytest.mark.parametrize(
    ("request_", "given", "kind", "match"),
    [
        ({"agent": "orakel"}, {}, UsageError, "unknown agent"),
        ({"agent": "cli:no-such-program-here"}, {}, UsageError, "not on this machine"),
        ({"agent": "cli:sh {promt}"}, {}, UsageError, "unknown placeholder"),
        ({"agent": "python:no_such_module_here:f"}, {}, UsageError, "cannot be imported"),
        ({"suites": "gone"}, {}, UsageError, "no suites folder"),
        ({"gates": "gone.yaml"}, {}, UsageError, "no gates file"),
        ({"task": "gone"}, {}, UsageError, "no task of ci_merge matches"),
        ({"history": "gopher://somewhere"}, {}, StorageError, "cannot be opened"),
        ({"agent": "cli:sh"}, {"OPENAI_BASE_URL": "ftp://models"}, UsageError, "'ftp://models' is not of the form"),
        ({}, {"PASSGATE_JUDGE_MODEL": "gpt-judge"}, UsageError, "needs both a base URL and a model"),
        ({}, {"suites/golden/b.yaml": "task_id: b\n"}, InputError, "b.yaml"),
        # The command is recorded with every trial; masked, it could not be carried on.
        ({"agent": f"cli:sh --key {KEY}"}, {"OPENAI_API_KEY": KEY}, UsageError, "contains the value of a secret"),
        ({"agent": "mine"}, {"OPENAI_API_KEY": KEY, **WITH_KEY}, UsageError, "contains the value of a secret"),
    ],
)
def test_bad_usage_is_refused_leaves_nothing_and_repeats_no_secret(
    monkeypatch: pytest.MonkeyPatch, request_: dict[str, Any], given: dict[str, str], kind: type[Exception], match: str
) -> None:
    """Variables and files are given."""
    for name, value in given.items():
        Path(name).write_text(value) if "." in name else monkeypatch.setenv(name, value)
    with pytest.raises(kind, match=match) as caught:
        prepared(**request_)
    assert KEY not in str(caught.value)
    assert run_folders() == []
    assert "OPENAI_BASE_URL" not in given or prepared(agent="nop").agent.kind == "nop"


def test_a_named_agent_is_planned_with_its_settings_and_known_by_its_name(project: Path) -> None:
    (project / "agents.yaml").write_text("agents: {mine: {agent: 'cli:sh {prompt}', model: gpt-5-mini}}\n")
    plan = prepared(agent="mine")
    assert (str(plan.agent), plan.agent.target, plan.agent.model) == ("mine", "sh {prompt}", "gpt-5-mini")
    (project / "agents.yaml").write_text("agents: {}\n")
    assert prepared(run=plan.run_id).agent == plan.agent


def test_a_secret_in_a_task_is_not_written(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-123456")
    write_task(project / "suites/golden/a.yaml", inputs={"prompt": "use sk-123456"})
    plan = prepared()
    assert "sk-123456" not in RunStore.of(plan.run_id).plan.read_text()
