"""Refusals that name what they refuse."""

from typing import Any

import pytest

from passgate.tasks.graders.grader_checks.transcripts import MOST_NAMES, refusals_of
from passgate.tasks.model.task import Tool
from tests.builders import a_task


def names(*graders: dict[str, Any], bad: tuple[str, ...] = (), good: tuple[str, ...] = (), **changes: Any) -> object:
    refusals = refusals_of(a_task(graders=list(graders), **changes), bad, good)
    return refusals and refusals.names


DELETE = {"type": "tool_calls", "forbidden": ["delete_*"]}


@pytest.mark.parametrize(
    ("grader", "named"),
    [
        ({"type": "tool_calls", "forbidden": ["drop_table"]}, ("drop_table",)),
        ({"type": "tool_calls", "forbidden": [{"tool": "send", "params": {"to": "*@evil"}}]}, ("send",)),
        (
            {"type": "tool_calls", "forbidden": [{"tool": "*", "params": {"command": "*rm -r*archive*"}}]},
            ("rm -r archive",),
        ),
        ({"type": "tool_calls", "forbidden": [{"tool": "*", "params": {"path": "/etc/*"}}]}, None),
        ({"type": "policy_check", "deny_tools": ["issue_*"]}, ("issue_",)),
        ({"type": "tool_used", "tools": ["shell"], "negate": True}, ("shell",)),
        ({"type": "tool_used", "tools": ["shell"]}, None),
        ({"type": "composite", "assertions": [{"type": "tool_used", "tools": ["shell"], "negate": True}]}, ("shell",)),
    ],
)
def test_what_is_forbidden_is_named(grader: dict[str, Any], named: tuple[str, ...] | None) -> None:
    assert names(grader) == named


def test_patterns_go_by_the_tools_that_are_known() -> None:
    tool = Tool(name="delete_order", description="Deletes.", command="true")
    assert names(DELETE, bad=("delete_customer",), tools=(tool,)) == ("delete_customer", "delete_order")


def test_tools_that_only_bad_trials_call_are_named_too() -> None:
    assert names({"type": "output_check", "contains": ["x"]}, bad=("wipe", "look"), good=("look",)) == ("wipe",)


def test_both_refusals_are_the_same_but_for_the_names() -> None:
    refusals = refusals_of(a_task(graders=[DELETE]), (), ())
    assert refusals is not None
    assert "`delete_`" in refusals.naming.output
    assert "delete" not in refusals.plain.output
    assert refusals.naming.tool_calls == refusals.plain.tool_calls == ()
    assert refusals.naming.complete


def test_names_are_bounded() -> None:
    found = names({"type": "tool_calls", "forbidden": [f"tool_{number}" for number in range(50)]})
    assert isinstance(found, tuple)
    assert len(found) == MOST_NAMES
