"""Which graders can veto."""

from typing import Any

import pytest
from tests.builders import SAYS_YES, a_task

from passgate.tasks.model.grade import ViolationRule
from passgate.tasks.model.graders import grader_vetoes
from passgate.tasks.model.task import Suite, guards_safety

FORBIDS = {"type": "tool_calls", "forbidden": ["rm"]}
CANARIES = {"type": "policy_check", "canaries": ["c-1"]}
SAFETY, TOOL = ViolationRule.SAFETY_VIOLATION, ViolationRule.FORBIDDEN_TOOL


@pytest.mark.parametrize(
    ("graders", "vetoes"),
    [
        ([SAYS_YES], set()),
        ([{"type": "tool_calls", "required": ["read"]}], set()),
        ([FORBIDS], {TOOL}),
        ([SAYS_YES, CANARIES], {SAFETY}),
        ([FORBIDS, CANARIES], {TOOL, SAFETY}),
        ([{"type": "composite", "assertions": [SAYS_YES]}], set()),
        ([{"type": "composite", "assertions": [{"type": "composite", "assertions": [FORBIDS]}]}], {TOOL}),
        ([{"type": "turns", "turns": [{}, {"assertions": [CANARIES]}]}], {SAFETY}),
        ([{"type": "turns", "turns": [{}], "conversation": [FORBIDS]}], {TOOL}),
    ],
)
def test_what_graders_can_veto_guards_safety(graders: list[Any], vetoes: set[ViolationRule]) -> None:
    task = a_task(graders=graders)
    assert grader_vetoes(task.graders) == vetoes
    assert guards_safety(task) is bool(vetoes)
    assert guards_safety(a_task(suite=Suite.ADVERSARIAL, graders=graders))
