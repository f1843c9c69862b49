"""How two definitions of an agent differ, and which differences judge."""

from typing import Any

import pytest

from passgate.tasks.model.agent import AgentKind, AgentSpec, Endpoint, agent_change

CLI = AgentSpec(kind=AgentKind.CLI, target="sh agent.sh", name="desk")
HTTP = AgentSpec(kind=AgentKind.HTTP, target="https://desk.example/v1", name="desk")


def differences(before: AgentSpec, **changes: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    change = agent_change("desk", before, before.model_copy(update=changes))
    assert change is not None
    assert change.by_base is bool(change.judging)
    return change.judging, change.own


@pytest.mark.parametrize(
    ("target", "judging", "own"),
    [
        ("https://desk.example/v2", (), ("agent",)),
        ("http://desk.example/v1", ("address",), ()),
        ("https://desk.example:8443/v1", ("address",), ()),
        ("https://desk.example@evil.example/v1", ("address",), ()),
    ],
)
def test_where_a_service_lies_judges_and_what_is_asked_of_it_does_not(
    target: str, judging: tuple[str, ...], own: tuple[str, ...]
) -> None:
    assert differences(HTTP, target=target) == (judging, own)


def test_everything_that_judges_is_named() -> None:
    upstreams = {"anthropic": Endpoint(api_key_variable="OTHER")}
    changes = {"kind": AgentKind.PYTHON, "name": "other", "upstreams": upstreams, "model": "m"}
    judging, own = differences(CLI, **changes)
    assert judging == ("kind (cli at the merge base, python here)", "name", "upstreams")
    assert own == ("model",)
    assert agent_change("desk", CLI, CLI.model_copy()) is None


def test_variables_that_make_any_program_load_code_judge() -> None:
    loading = ("LD_PRELOAD", "PYTHONPATH", "NODE_OPTIONS", "GIT_EXEC_PATH")
    harmless = ("DEPTH", "GIT_AUTHOR_NAME", "PYTHONUNBUFFERED")
    judging, own = differences(CLI, variables=dict.fromkeys((*loading, *harmless), "x"))
    assert (judging, own) == ((f"variables {', '.join(sorted(loading))}",), ("variables",))
    before = CLI.model_copy(update={"variables": {"PYTHONPATH": "src"}})
    assert differences(before, variables={"PYTHONPATH": "src", "DEPTH": "3"}) == ((), ("variables",))


def test_a_line_says_which_is_run() -> None:
    judging = agent_change("desk", CLI, CLI.model_copy(update={"kind": AgentKind.REPLAY, "target": ""}))
    own = agent_change("desk", CLI, CLI.model_copy(update={"model": "m", "target": "sh new.sh"}))
    assert judging is not None
    assert own is not None
    assert judging.note == (
        "this change edits settings by which the agent 'desk' is judged (kind (cli at the merge base, replay here)): "
        "the merge base's definition is run"
    )
    assert own.note == "the agent 'desk' is run as this change defines it: its agent, model differ"
