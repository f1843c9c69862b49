"""Which agent is run where a change edits its definition: its own, as far as nothing differs that judges."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from passgate.tasks.errors import UsageError
from passgate.tasks.model.agent import AgentKind
from passgate.tasks.model.run import Plan
from tests.repositories import GitRepository
from tests.unit.changes import change, commit_on_main, gates, judging_plans, loosen
from tests.unit.changes import planned as prepared

CLI = {"agent": "cli:sh agent.sh"}
HTTP = {"agent": "http:http://127.0.0.1:8000/v1/answer"}
SNEAKY = "from pathlib import Path\nPath('loaded').touch()\ndef answer(attempt):\n    return 'yes'\n"


@pytest.fixture
def repository(repository: GitRepository, monkeypatch: pytest.MonkeyPatch) -> GitRepository:
    monkeypatch.syspath_prepend(str(repository.path))
    return repository


def define(repository: GitRepository, entry: dict[str, Any], file: str = "agents.yaml") -> None:
    repository.write(file, yaml.safe_dump({"agents": {"desk": entry}}))


def define_target(repository: GitRepository, *targets: dict[str, Any], file: str = ".agentv/targets.yaml") -> None:
    repository.write(file, yaml.safe_dump({"targets": list(targets)}))


def planned(**request: Any) -> Plan:
    return judging_plans(**request).plan


def edits_of(plan: Plan) -> list[tuple[str, str]]:
    return [(edit.path, edit.what) for edit in plan.base.edits]


def judging(plan: Plan) -> tuple[str, ...]:
    assert plan.base.agent is not None
    return plan.base.agent.judging


@pytest.fixture
def desk(repository: GitRepository) -> None:
    """On main the agent is a command."""
    define(repository, CLI)
    commit_on_main(repository)


def own(plan: Plan) -> tuple[str, ...]:
    assert plan.base.agent is not None
    assert judging(plan) == ()
    return plan.base.agent.own


@pytest.mark.usefixtures("desk")
def test_an_agent_that_is_not_edited_is_run_as_it_is(repository: GitRepository) -> None:
    repository.write("agent.sh", "echo its code is the change's\n")
    plan = planned(agent="desk")
    assert (edits_of(plan), plan.base.agent, plan.agent.target) == ([], None, "sh agent.sh")


@pytest.mark.parametrize(
    ("before", "now", "differs"),
    [
        (CLI, CLI | {"agent": "cli:sh agent.sh --fast"}, ("agent",)),
        (CLI, CLI | {"model": "gpt-5-mini"}, ("model",)),
        (CLI, CLI | {"variables": {"DEPTH": "3"}, "timeout_seconds": 9}, ("variables", "timeout_seconds")),
        (
            {"agent": "openai:old"},
            {"agent": "openai:new", "completion": {"system": "Be kind."}},
            ("agent", "completion"),
        ),
        (HTTP, {"agent": "http:http://127.0.0.1:8000/v2"}, ("agent",)),
        (HTTP, HTTP | {"http": {"output": "answer"}}, ("http",)),
    ],
)
def test_the_agent_itself_is_the_change_s_and_the_edit_is_listed(
    repository: GitRepository, before: dict[str, Any], now: dict[str, Any], differs: tuple[str, ...]
) -> None:
    define(repository, before)
    commit_on_main(repository)
    define(repository, now)
    found = judging_plans(agent="desk")
    plan = found.plan
    assert (plan.base.judged_by, edits_of(plan)) == ("base", [("agents.yaml", "agents")])
    assert own(plan) == differs
    assert found.change is not None
    assert plan.agent == found.change.agent
    assert f"{plan.agent.kind}:{plan.agent.target}" == now["agent"]


@pytest.mark.parametrize(
    ("before", "now", "differs"),
    [
        (CLI, {"agent": "replay:recorded"}, "kind (cli at the merge base, replay here)"),
        (CLI, {"agent": "python:sneaky:answer"}, "kind (cli at the merge base, python here)"),
        (CLI, {"agent": "openai:m"}, "kind (cli at the merge base, openai here)"),
        (CLI, CLI | {"upstreams": {"openai": {"base_url": "https://evil.example/v1"}}}, "upstreams"),
        (CLI, CLI | {"upstreams": {"openai": {"api_key_variable": "OTHER_KEY"}}}, "upstreams"),
        (HTTP, {"agent": "http:http://evil.example/v1/answer"}, "address"),
        (HTTP, {"agent": "http:http://127.0.0.1:8001/v1/answer"}, "address"),
        ({"agent": "replay:old"}, {"agent": "replay:recorded"}, "recordings"),
    ],
)
def test_what_judges_of_the_agent_is_the_merge_base_s(
    repository: GitRepository, before: dict[str, Any], now: dict[str, Any], differs: str
) -> None:
    repository.write("old/a.json", "{}")
    define(repository, before)
    commit_on_main(repository)
    repository.write("recorded/a.json", "{}")
    repository.write("sneaky.py", SNEAKY)
    define(repository, now | {"model": "m"} if "replay" not in now["agent"] else now)
    repository.commit()
    plan = prepared(agent="desk") if before == CLI else planned(agent="desk")
    assert differs in judging(plan)
    assert f"{plan.agent.kind}:{plan.agent.target}" == before["agent"]
    assert not plan.agent.upstreams
    assert str(plan.agent) == "desk"
    assert not Path("loaded").exists(), "nothing of the other kind has been loaded"


def test_a_shadow_of_a_target_is_another_definition_of_it(repository: GitRepository) -> None:
    define_target(repository, {"name": "desk", "provider": "cli", "command": "sh agent.sh {PROMPT}"})
    commit_on_main(repository)
    define(repository, {"agent": "replay"})
    plan = planned(agent="desk")
    assert judging(plan) == ("kind (cli at the merge base, replay here)",)
    assert (plan.agent.kind, plan.agent.target) == (AgentKind.CLI, "sh agent.sh {PROMPT}")


@pytest.mark.parametrize("file", ["suites/.agentv/targets.yaml", ".agentv/targets.yaml", "work/.agentv/targets.yaml"])
def test_targets_are_definitions_wherever_they_are_found(
    repository: GitRepository, file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (repository.path / "work").mkdir()
    cli = {"name": "desk", "provider": "cli", "command": "sh agent.sh {PROMPT}", "cwd": "agent"}
    define_target(repository, cli, file=file)
    commit_on_main(repository)
    monkeypatch.chdir(repository.path / "work")
    places = {"suites": "../suites", "gates": "../gates.yaml"}
    before = planned(agent="desk", **places)
    define_target(repository, cli | {"timeout_seconds": 3}, file=file)
    plan = planned(agent="desk", **places)
    assert (edits_of(plan), own(plan)) == ([(file, "agents")], ("timeout_seconds",))
    assert plan.agent.target == before.agent.target
    define_target(repository, {"name": "desk", "provider": "openai", "model": "m"}, file=file)
    plan = planned(agent="desk", **places)
    assert judging(plan)[0].startswith("kind (cli")
    assert plan.agent == before.agent, "its folder is the repository's, not that of the checkout"


def test_an_alias_that_leads_elsewhere_is_another_agent_without_a_baseline(repository: GitRepository) -> None:
    alias = {"name": "default", "use_target": "desk"}
    desk, other = (
        {"name": name, "provider": "cli", "command": f"sh {name}.sh {{PROMPT}}"} for name in ("desk", "other")
    )
    define_target(repository, alias, desk, other)
    commit_on_main(repository)
    define_target(repository, alias | {"use_target": "other"}, desk, other)
    plan = planned(agent="default")
    assert judging(plan) == ("name",)
    assert str(plan.agent) == "desk"


def test_recordings_that_come_with_the_change_are_edits_and_edited_ones_those_of_the_merge_base(
    repository: GitRepository,
) -> None:
    repository.write("recorded/a.json", '{"output": "no"}')
    plan = planned(agent="replay:recorded")
    assert (edits_of(plan), plan.base.agent, plan.agent.target) == ([("recorded/a.json", "agents")], None, "recorded")
    commit_on_main(repository)
    repository.write("recorded/a.json", '{"output": "yes"}')
    plan = planned(agent="replay:recorded")
    assert (edits_of(plan), judging(plan)) == ([("recorded/a.json", "agents")], ("recordings",))
    assert str(plan.agent) == "replay:recorded"
    assert Path(plan.agent.target, "a.json").read_text() == '{"output": "no"}'


@pytest.mark.parametrize(
    ("before", "why"),
    [
        ({}, ": this change brings it"),
        ({"agents.yaml": "agents: {desk: {agent: 'nonsense:x'}}\n"}, ": agents.yaml:1:"),
    ],
    ids=["new", "wrong before"],
)
def test_an_agent_that_the_merge_base_does_not_define_is_named(
    repository: GitRepository, before: dict[str, str], why: str
) -> None:
    change(repository, before)
    commit_on_main(repository)
    define(repository, CLI)
    plan = planned(agent="desk")
    assert plan.agent.target == "sh agent.sh"
    assert plan.base.note.startswith(f"the merge base does not define the agent 'desk'{why}")


def test_an_agent_on_the_command_line_or_in_a_file_that_git_ignores_is_no_edit(repository: GitRepository) -> None:
    repository.write(".gitignore", "agents.yaml\n")
    commit_on_main(repository)
    define(repository, {"agent": "replay"})
    assert edits_of(planned(agent="desk")) == []
    repository.write(".gitignore", "")
    define(repository, CLI)
    commit_on_main(repository)
    define(repository, {"agent": "replay"})
    plan = planned(agent="cli:sh agent.sh")
    assert (plan.base.judged_by, edits_of(plan)) == ("change", [])


@pytest.mark.usefixtures("desk")
def test_an_edit_of_a_grader_does_not_hide_one_of_the_agent(repository: GitRepository) -> None:
    loosen(repository)
    define(repository, {"agent": "replay"})
    plan = planned(agent="desk")
    assert (plan.agent.kind, judging(plan)) == (AgentKind.CLI, ("kind (cli at the merge base, replay here)",))


def test_where_the_merge_base_lets_changes_judge_themselves_the_agent_is_theirs_too(repository: GitRepository) -> None:
    repository.write("gates.yaml", gates(more="integrity: off"))
    define(repository, CLI)
    commit_on_main(repository)
    define(repository, {"agent": "replay"})
    plan = planned(agent="desk")
    assert (plan.agent.kind, edits_of(plan)) == (AgentKind.REPLAY, [("agents.yaml", "agents")])


@pytest.mark.usefixtures("desk")
def test_a_link_in_place_of_the_file_is_an_edit(repository: GitRepository) -> None:
    define(repository, {"agent": "replay"}, file="elsewhere/mine.yaml")
    change(repository, {"agents.yaml": Path("elsewhere/mine.yaml")})
    plan = planned(agent="desk")
    assert plan.agent.kind is AgentKind.CLI
    assert ("agents.yaml", "agents") in edits_of(plan)


def test_an_agent_of_the_merge_base_that_cannot_be_run_any_more_is_refused_with_the_reason(
    repository: GitRepository,
) -> None:
    repository.write("module_of_desk.py", "def answer(attempt):\n    return 'yes'\n")
    define(repository, {"agent": "python:module_of_desk:answer"})
    commit_on_main(repository)
    (repository.path / "module_of_desk.py").unlink()
    define(repository, {"agent": "replay"})
    with pytest.raises(
        UsageError, match=r"agent 'desk' is judged \(kind \(python at .* that cannot be run: .*module_of_desk"
    ):
        prepared(agent="desk")
