"""Task runs that Prefect's server should know, while it records others."""

import pytest

from tests.project import Project
from tests.warm import CODE

LISTED_WHILE_ONE_IS_RECORDED = """
import asyncio, time
from uuid import UUID
from prefect import flow, task
from prefect.client.orchestration import PrefectClient
from prefect.runtime import flow_run
from prefect.states import Completed
from passgate.flows.prefect_engine import ShownStep, report_missing

@task
async def step(): ...

read, listed = PrefectClient.read_task_runs, []

async def recorded(client, number):
    await client.create_task_run(step, flow_run.id, str(number), id=UUID(int=number), state=Completed())

async def read_before_one_is_recorded(self, **options):
    page = await read(self, **options)
    listed.append(len(page))
    if len(listed) == 1:
        await recorded(self, 9)  # Before the others: the server lists the largest id first.
    return page

@flow
async def lists():
    from prefect import get_client
    async with get_client() as client:
        await recorded(client, 1)
        await recorded(client, 2)
    PrefectClient.read_task_runs = read_before_one_is_recorded
    ended = ShownStep(name="step", task_run_id=UUID(int=2), state=Completed(), ended=time.monotonic() - 60)
    await asyncio.wait_for(report_missing([ended]), 60)

asyncio.run(lists())
print("LISTED", len(listed))
"""


@pytest.mark.slow
def test_a_task_run_that_is_recorded_while_they_are_listed_is_no_endless_list(project: Project) -> None:
    ended = project.run([*CODE, LISTED_WHILE_ONE_IS_RECORDED])
    assert ended.returncode == 0, ended.stderr
    assert "LISTED 1\n" in ended.stdout
