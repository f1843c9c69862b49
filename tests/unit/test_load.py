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


def run_folders() -> list[Path]:
    return list(Path(".passgate/runs").glob("*"))


def prepared(gate: GateName = GateName.CI_MERGE, **request: Any):
    return load(gate, RunRequest(**request))


def test_a_plan_is_made_and_written() -> None:
    plan = prepared(agent="nop", k=2)
    assert plan.passgate_version == __version__
    assert [task.k for task in plan.tasks] == [2]
    assert RunStore.of(plan.run_id).read_plan() == plan


def test_an_address_of_models_that_is_none_is_found_before_anything_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "ftp://models")
    with pytest.raises(UsageError, match=r"'ftp://models' is not of the form"):
        prepared(agent="cli:sh")
    assert run_folders() == []
    assert prepared(agent="nop").agent.kind == "nop"


def test_a_run_that_was_begun_is_carried_on_as_it_was_planned(project: Path) -> None:
    plan = prepared(agent="nop")
    write_task(project / "suites/golden/b.yaml", task_id="later")
    (project / "gates.yaml").write_text("broken: [")
    assert prepared(agent="oracle", run=plan.run_id) == plan
    assert len(run_folders()) == 1


def test_a_run_of_another_gate_is_refused() -> None:
    plan = prepared()
    with pytest.raises(UsageError, match="is of the gate ci_merge, not of nightly"):
        prepared(GateName.NIGHTLY, run=plan.run_id)


def test_a_run_that_is_not_there_is_refused() -> None:
    with pytest.raises(StorageError, match="is not the plan of a run"):
        prepared(run="gone")


@pytest.mark.parametrize(
    ("request_", "match"),
    [
        ({"agent": "orakel"}, "unknown agent"),
        ({"agent": "cli:no-such-program-here"}, "not on this machine"),
        ({"agent": "cli:sh {promt}"}, "unknown placeholder"),
        ({"agent": "python:no_such_module_here:f"}, "cannot be imported"),
        ({"suites": "gone"}, "no suites folder"),
        ({"gates": "gone.yaml"}, "no gates file"),
        ({"task": "gone"}, "no task of ci_merge matches"),
    ],
)
def test_bad_usage_is_refused_and_leaves_nothing(request_: dict[str, Any], match: str) -> None:
    with pytest.raises(UsageError, match=match):
        prepared(**request_)
    assert run_folders() == []


def test_a_broken_task_is_refused_and_leaves_nothing(project: Path) -> None:
    (project / "suites/golden/b.yaml").write_text("task_id: b\n")
    with pytest.raises(InputError):
        prepared()
    assert run_folders() == []


def test_half_a_judge_is_refused_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PASSGATE_JUDGE_MODEL", "gpt-judge")
    with pytest.raises(UsageError, match="needs both a base URL and a model"):
        prepared()
    assert run_folders() == []


def test_a_history_that_cannot_be_opened_is_refused_and_leaves_nothing() -> None:
    with pytest.raises(StorageError, match="cannot be opened"):
        prepared(history="gopher://somewhere")
    assert run_folders() == []


def test_a_secret_in_the_agents_command_is_refused_and_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command is recorded with every trial; masked, it could not be carried on."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-123456")
    with pytest.raises(UsageError, match="contains the value of a secret") as caught:
        prepared(agent="cli:sh --key sk-123456")
    assert "sk-123456" not in str(caught.value)
    assert run_folders() == []


def test_a_secret_in_an_agents_settings_is_refused_and_not_repeated(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-123456")
    (project / "agents.yaml").write_text("agents: {mine: {agent: 'cli:sh', variables: {KEY: sk-123456}}}\n")
    with pytest.raises(UsageError, match="contains the value of a secret") as caught:
        prepared(agent="mine")
    assert "sk-123456" not in str(caught.value)
    assert run_folders() == []


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
