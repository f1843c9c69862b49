"""The gate of a counting agent in one process, which others are held against."""

from tests.flows.counting import write_counting
from tests.scenarios import Scenario
from tests.unit.agents.agent_server import running_agent

TASKS, K, JOBS = 6, 15, 6


def in_one_process(scenario: Scenario) -> None:
    """A run of 90 trials in which the agent fails the task `t3`."""
    with running_agent() as agent:
        write_counting(scenario, agent, tasks=TASKS, k=K, jobs=JOBS, fails="t3")
        scenario.keep("run", "run", "ci_merge", "--agent", "counting")
