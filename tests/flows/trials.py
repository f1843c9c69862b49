"""One trial of a task by an agent, and the grades that it has."""

from pathlib import Path

from passgate.tasks.execution.resources import open_resources
from passgate.tasks.execution.trial import run_trial
from passgate.tasks.metering.cost_cap import CostCap
from passgate.tasks.model.agent import AgentSpec
from passgate.tasks.model.policy import Policy
from passgate.tasks.model.price import PriceTable
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.trial import FinishedTrial
from tests.builders import SHIPPED

FREE = PriceTable()


async def trial_of(
    agent: AgentSpec, task: EvalTask, suites: Path, *, policy: Policy = SHIPPED, prices: PriceTable = FREE
) -> FinishedTrial:
    opened = open_resources(agent, suites, policy, prices=prices, cost_cap=CostCap(), error_retries=0, tasks=[task])
    async with opened as bench:
        return await run_trial(task, 0, bench)
