"""Which calls a task forbids beforehand."""

from typing import Any

import pytest

from passgate.tasks.graders import forbidden_by
from passgate.tasks.model.transcript import ToolCall
from tests.builders import SAYS_YES, a_task

FORBIDS = {"type": "tool_calls", "name": "calls", "forbidden": ["rm"]}
DENIES = {"type": "policy_check", "name": "rules", "deny_tools": ["rm"]}


def composite(*members: Any, **options: Any) -> dict[str, Any]:
    return {"type": "composite", "assertions": list(members), **options}


def forbidden(grader: Any) -> tuple[bool, bool]:
    """Whether `rm` and `ls` are."""
    forbids = forbidden_by(a_task(graders=[SAYS_YES, grader]))
    return forbids(ToolCall(tool="rm")), forbids(ToolCall(tool="ls"))


@pytest.mark.parametrize("rule", [FORBIDS, DENIES])
@pytest.mark.parametrize(
    "where",
    [
        lambda rule: rule,
        lambda rule: composite(SAYS_YES, rule),
        lambda rule: composite(rule, aggregator={"type": "threshold", "threshold": 0.5}),
        lambda rule: composite(SAYS_YES, composite(rule)),
        lambda rule: {"type": "turns", "turns": [{}], "conversation": [composite(rule)]},
    ],
    ids=["a grader", "a member", "a member that need not pass", "a member of a member", "of the conversation"],
)
def test_what_would_be_a_violation_is_forbidden(rule: Any, where: Any) -> None:
    assert forbidden(where(rule)) == (True, False)


def test_what_one_turn_forbids_may_be_done_in_another() -> None:
    assert forbidden({"type": "turns", "turns": [{}, {"assertions": [FORBIDS]}]}) == (False, False)


def test_a_required_call_is_not_forbidden() -> None:
    assert forbidden({"type": "tool_calls", "required": ["rm"]}) == (False, False)
