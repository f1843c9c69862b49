"""The plan of a new run, from the files as they are now."""

from pathlib import Path

from passgate import __version__
from passgate.tasks.integrity.git import current_revision
from passgate.tasks.model.run import Plan, RunRequest
from passgate.tasks.model.task import GateName
from passgate.tasks.planning.named_agents import find_agent
from passgate.tasks.planning.plan import agent_digest_of, make_plan


def plan_of(gate: GateName, request: RunRequest) -> Plan:
    """The plan of a new run, from the files as they are now, whoever is to judge; nothing is written.

    Raises `InputError` or `UsageError`.
    """
    agent = find_agent(request.agent, Path(request.gates), Path(request.suites))
    plan = make_plan(gate, request, agent, revision=current_revision(Path.cwd()), version=__version__)
    return plan.model_copy(update={"agent_digest": agent_digest_of(plan)})
