"""Environment variables of a flow run whose values a real Prefect server keeps."""

import json

import pytest

from tests.project import Project
from tests.warm import CODE

pytestmark = pytest.mark.slow

RESOLVE = """
import asyncio, json, os
from prefect.blocks.system import Secret
from prefect.variables import Variable
from passgate.flows.prefect_environment import resolve_environment
from passgate.tasks.errors import UsageError

async def main():
    await Secret(value="s3cret-of-a-block").asave("a-key-of-tests", overwrite=True)
    await Variable.aset("a_place_of_tests", "s3://bucket/history", overwrite=True)
    try:
        await resolve_environment()
    except UsageError as error:
        return str(error)
    return {name: os.environ[name] for name in ("A_KEY", "A_PLACE", "PLAIN")}

print(json.dumps(asyncio.run(main())))
"""
NAMED = {"A_KEY": "prefect-secret:a-key-of-tests", "A_PLACE": "prefect-variable:a_place_of_tests", "PLAIN": "as it is"}


def test_a_flow_run_gets_what_prefect_keeps_under_the_names(project: Project) -> None:
    ended = project.run([*CODE, RESOLVE], **NAMED)
    expected = {"A_KEY": "s3cret-of-a-block", "A_PLACE": "s3://bucket/history", "PLAIN": "as it is"}
    assert json.loads(ended.stdout) == expected, ended.stderr


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"A_KEY": "prefect-secret:none"}, "the Secret block 'none' of Prefect, which A_KEY names, does not exist"),
        ({"A_PLACE": "prefect-variable:none"}, "the variable 'none' of Prefect, which A_PLACE names, does not exist"),
    ],
)
def test_a_name_that_prefect_does_not_know_is_refused(project: Project, changed: dict[str, str], said: str) -> None:
    ended = project.run([*CODE, RESOLVE], **NAMED | changed)
    assert json.loads(ended.stdout) == said, ended.stderr
