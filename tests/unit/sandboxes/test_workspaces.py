"""Workspaces that eval files describe."""

import asyncio
from pathlib import Path

import pytest
from tests.builders import a_task
from tests.unit.conftest import Marked
from tests.unit.sandboxes.conftest import hook
from tests.waiting import until

from passgate.tasks.model.task import EvalTask


def task_in(**workspace: object) -> EvalTask:
    return a_task(workspace=workspace)


@pytest.mark.parametrize(("template", "files"), [("../beside", ["file"]), (None, [])])
async def test_a_template_may_lie_beside_the_suites_and_without_one_a_workspace_is_empty(
    sandbox_of, suites: Path, template: str | None, files: list[str]
) -> None:
    (suites.parent / "beside").mkdir()
    (suites.parent / "beside/file").write_text("yes")
    async with sandbox_of(task_in(template=template)) as sandbox:
        assert [file.name for file in sandbox.workspace.iterdir()] == files


@pytest.mark.parametrize("name", ["gone", "file"])
async def test_a_template_that_is_gone_is_an_error(cannot_begin, suites: Path, name: str) -> None:
    (suites / "file").touch()
    await cannot_begin(task_in(template=name), f"the workspace's template {name} is no folder")


async def test_the_tasks_reset_comes_after_the_hooks(sandbox_of) -> None:
    before = hook('echo each >> "$WORKSPACE_PATH/log"')
    task = a_task(workspace={"before_each": before}, reset=("echo reset >> log",), k=1)
    async with sandbox_of(task) as sandbox:
        assert (sandbox.workspace / "log").read_text() == "each\nreset\n"


async def test_tasks_of_one_workspace_share_the_prepared_copy(isolation: str, workbench_of, suites: Path) -> None:
    (suites / "template").mkdir()
    once = hook('date +%s%N > "$WORKSPACE_PATH/prepared-at"; sleep 0.1')
    shared = {"template": "template", "before_all": once}

    async def prepared_at(**workspace: object) -> str:
        async with workbench.sandbox(task_in(**workspace)) as sandbox:
            return (sandbox.workspace / "prepared-at").read_text()

    with workbench_of() as workbench:
        trials = [*(prepared_at(**shared) for _ in range(3)), prepared_at(**shared, before_each=hook("true"))]
        same = await asyncio.gather(*trials)
        other = await prepared_at(before_all=once)
    assert len(set(same)) == 1
    assert other not in same


NO_PROGRAM, NO_MODULE = (
    {"required_commands": ["sh", "gone-1", "gone-2"]},
    {"required_python_modules": ["json", "json.x"]},
)


@pytest.mark.parametrize(
    ("needs", "missing"),
    [
        (NO_PROGRAM, "commands gone-1, gone-2$"),
        (NO_MODULE, "modules json.x$"),
        (NO_PROGRAM | NO_MODULE, "commands gone-1, gone-2; Python modules json.x$"),
        ({"required_python_modules": ["no_such_module", "no.such"]}, "modules no_such_module, no.such$"),
    ],
)
async def test_what_the_machine_lacks_is_named(isolation: str, cannot_begin, needs, missing: str) -> None:
    await cannot_begin(task_in(**needs), f"needs what this machine does not have: .*{missing}")


async def test_what_the_machine_has_is_no_trouble(isolation: str, sandbox_of) -> None:
    needs = {"required_commands": ["sh", "git"], "required_python_modules": ["json", "os.path"]}
    async with sandbox_of(task_in(**needs)) as sandbox:
        assert sandbox.isolation == isolation


async def test_a_preparation_that_is_not_waited_for_is_given_up(
    workbench_of, tmp_path: Path, marked: Marked, without_bubblewrap: None
) -> None:
    """Its end could be seen in this folder, where only a command without bubblewrap can write."""
    task = task_in(before_all=hook(f"sleep 600 # {marked.word}"), after_all=hook(f"touch {tmp_path}/after"))

    async def trial() -> None:
        async with workbench.sandbox(task):
            pytest.fail("the trial must not begin")

    async with workbench_of() as workbench:
        running = asyncio.create_task(trial())
        await until(lambda: marked.running)
        running.cancel()
        await asyncio.wait([running])
    await marked.are_gone()
    assert not (tmp_path / "after").exists()
