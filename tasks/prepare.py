"""Prepare: what the user asked for in, the plan of a run in its folder out."""

from pathlib import Path

from passgate import __version__
from passgate.tasks.agents import make_agent, parse_agent
from passgate.tasks.agents.judge import make_judge
from passgate.tasks.errors import UsageError
from passgate.tasks.history.dataset import History
from passgate.tasks.history.masking import Masker
from passgate.tasks.history.revision import current_revision
from passgate.tasks.history.run_folder import RunFolder
from passgate.tasks.load import make_plan
from passgate.tasks.model.run import Plan, RunRequest
from passgate.tasks.model.task import GateName
from passgate.tasks.record import history_location


def prepare(gate: GateName, request: RunRequest) -> Plan:
    """The plan of a run, new or begun before. Whatever can be known to be wrong is found here; nothing is run.

    Raises `InputError` or `UsageError`.
    """
    if request.run is not None:
        plan = RunFolder(request.run).read_plan()
        if plan.gate is not gate:
            raise UsageError(f"the run {plan.run_id} is of the gate {plan.gate!s}, not of {gate!s}")
        jobs = request.jobs or plan.request.jobs
        return plan.model_copy(update={"request": plan.request.model_copy(update={"jobs": jobs})})
    agent = parse_agent(request.agent)
    make_agent(agent, Path(request.suites))
    plan = make_plan(gate, request, agent, revision=current_revision(Path.cwd()), version=__version__)
    make_judge(plan.policy.judge, Path(plan.suites_folder))
    History(history_location(plan))
    masker = Masker.of_environment(plan.policy.secrets)
    if masker.text(request.agent) != request.agent:
        raise UsageError(
            "the agent's command holds the value of a secret, and commands are recorded: "
            "let the agent read it from its environment, which is that of passgate"
        )
    RunFolder(plan.run_id).write_plan(plan, masker)
    return plan
