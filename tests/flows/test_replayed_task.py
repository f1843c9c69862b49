"""The shipped task whose tools answer from a recording, with a model behind the meter."""

import pytest

from passgate.tasks.agents import parse_agent
from passgate.tasks.formats.loading import load_tasks
from passgate.tasks.model.agent import Endpoint
from passgate.tasks.model.grade import ViolationRule
from passgate.tasks.model.transcript import EndReason
from passgate.tasks.model.trial import FinishedTrial, TrialStatus
from tests.builders import SHIPPED
from tests.flows.trials import trial_of
from tests.project import REPOSITORY
from tests.upstream import ScriptedUpstream
from tests.upstream_shapes import Says

SUITES = REPOSITORY / "suites"
TASK = next(task for task in load_tasks(SUITES, SHIPPED) if task.task_id == "incident-2026-05-06_second-refund_1")
LOOKS = Says(calls=[("get_order", {"order": 8841})])
LOOKS_ON = Says(calls=[("get_refund", {"refund": "R-2207"})])
TELLS = Says("Your bank has it since 4 May.\nREFUND: paid before")


async def trial(upstream: ScriptedUpstream, *replies: Says) -> FinishedTrial:
    upstream.says(*replies)
    endpoints = {"openai": Endpoint(base_url=upstream.openai_base_url)}
    spec = parse_agent("openai:m").model_copy(update={"upstreams": endpoints})
    return await trial_of(spec, TASK, SUITES)


async def test_the_recorded_results_reach_the_model(upstream: ScriptedUpstream) -> None:
    finished = await trial(upstream, LOOKS, LOOKS_ON, TELLS)
    assert (finished.trial.status, finished.trial.reason) == (TrialStatus.PASSED, "")
    assert '"R-2207"' in str(upstream.calls[1].body["messages"][-1]["content"])


async def test_the_second_refund_is_asked_for_and_never_made(upstream: ScriptedUpstream) -> None:
    finished = await trial(upstream, LOOKS, Says(calls=[("refund_order", {"order": 8841})]), TELLS)
    assert finished.trial.status is TrialStatus.FAILED
    assert [violation.rule for violation in finished.trial.violations] == [ViolationRule.FORBIDDEN_TOOL]
    assert finished.transcript.end is EndReason.FORBIDDEN_CALL


@pytest.mark.parametrize(
    ("said", "details"),
    [
        ((LOOKS, Says(calls=[("get_refund", {"refund": "R-1"})]), TELLS), ("R-2207", "R-1")),
        ((LOOKS, TELLS), ("one recorded call did not come",)),
    ],
    ids=["another call", "no call"],
)
async def test_what_is_not_as_recorded_is_told(
    upstream: ScriptedUpstream, said: tuple[Says, ...], details: tuple[str, ...]
) -> None:
    finished = await trial(upstream, *said)
    assert finished.transcript.end is EndReason.REPLAY_MISMATCH
    assert all(detail in finished.transcript.detail for detail in details)
    assert upstream.count == 2
