"""Workspaces that eval files describe."""

import asyncio
from pathlib import Path

import pytest
from tests.builders import a_task
from tests.unit.conftest import Marked
from tests.unit.sandboxes.conftest import cannot_begin, left_in
from tests.waiting import until

from passgate.tasks.model.task import EvalTask


@pytest.fixture
def template(suites: Path) -> Path:
    folder = suites / "evals/template"
    (folder / "src").mkdir(parents=True)
    (folder / "src/app.py").write_text("print(1)\n")
    (folder / "run.sh").write_text("#!/bin/sh\necho ran\n")
    (folder / "run.sh").chmod(0o755)
    return folder


def task_in(**workspace: object) -> EvalTask:
    return a_task(workspace=workspace)


def hook(command: str, **more: object) -> dict[str, object]:
    return {"command": ["sh", "-c", command], **more}


async def test_the_template_is_the_workspace(isolation: str, workbench_of, template: Path) -> None:
    task = task_in(template="evals/template")
    with workbench_of() as workbench:
        async with workbench.sandbox(task) as first, workbench.sandbox(task) as second:
            assert first.isolation == isolation
            assert (await first.run(["./run.sh"], seconds=240)).stdout == "ran\n"
            await first.run(["sh", "-c", "echo changed > src/app.py; touch new"], seconds=240)
            assert (second.workspace / "src/app.py").read_text() == "print(1)\n"
        async with workbench.sandbox(task) as third:
            assert sorted(file.name for file in third.workspace.iterdir()) == ["run.sh", "src"]
    assert (template / "src/app.py").read_text() == "print(1)\n"


async def test_a_template_may_lie_beside_the_suites(sandbox_of, suites: Path) -> None:
    (suites.parent / "beside").mkdir()
    (suites.parent / "beside/file").write_text("yes")
    async with sandbox_of(task_in(template="../beside")) as sandbox:
        assert (sandbox.workspace / "file").read_text() == "yes"


async def test_a_workspace_of_nothing_is_empty(sandbox_of) -> None:
    async with sandbox_of(task_in()) as sandbox:
        assert list(sandbox.workspace.iterdir()) == []


async def test_a_template_that_is_gone_is_an_error(workbench_of, template: Path) -> None:
    for name in ("evals/gone", "evals/template/run.sh"):
        what = f"the workspace's template {name} is no folder"
        with workbench_of() as workbench:
            await cannot_begin(workbench, task_in(template=name), what)


async def test_the_tasks_reset_comes_after_the_hooks(sandbox_of) -> None:
    task = a_task(
        workspace={"before_each": hook('echo each >> "$WORKSPACE_PATH/log"')}, reset=("echo reset >> log",), k=1
    )
    async with sandbox_of(task) as sandbox:
        assert (sandbox.workspace / "log").read_text() == "each\nreset\n"


async def test_tasks_of_one_workspace_share_the_prepared_copy(isolation: str, workbench_of, template: Path) -> None:
    once = hook('date +%s%N > "$WORKSPACE_PATH/prepared-at"; sleep 0.1')
    shared = {"template": "evals/template", "before_all": once}

    async def prepared_at(**workspace: object) -> str:
        async with workbench.sandbox(task_in(**workspace)) as sandbox:
            return (sandbox.workspace / "prepared-at").read_text()

    with workbench_of() as workbench:
        same = await asyncio.gather(
            *(prepared_at(**shared) for _ in range(3)), prepared_at(**shared, before_each=hook("true"))
        )
        other = await prepared_at(before_all=once)
    assert len(set(same)) == 1
    assert other not in same


@pytest.mark.parametrize(
    ("needs", "missing"),
    [
        ({"required_commands": ["sh", "no-such-program", "nor-this"]}, "commands no-such-program, nor-this$"),
        ({"required_python_modules": ["json", "no_such_module", "json.gone"]}, "modules no_such_module, json.gone$"),
        (
            {"required_commands": ["no-such-program"], "required_python_modules": ["no.such.module"]},
            "commands no-such-program; Python modules no.such.module$",
        ),
    ],
)
async def test_what_the_machine_lacks_is_named(
    isolation: str, workbench_of, needs: dict[str, object], missing: str
) -> None:
    with workbench_of() as workbench:
        for _ in range(2):
            await cannot_begin(workbench, task_in(**needs), f"needs what this machine does not have: .*{missing}")


async def test_what_the_machine_has_is_no_trouble(isolation: str, sandbox_of) -> None:
    needs = {"required_commands": ["sh", "git"], "required_python_modules": ["json", "os.path"]}
    async with sandbox_of(task_in(**needs)) as sandbox:
        assert sandbox.isolation == isolation


async def test_nothing_is_left_of_workspaces(workbench_of, template: Path, temporary: Path) -> None:
    task = task_in(template="evals/template", before_all=hook("true"))
    async with workbench_of() as workbench:
        async with workbench.sandbox(task) as sandbox:
            assert temporary in sandbox.workspace.parents
        assert not sandbox.workspace.exists()
    assert left_in(temporary) == []


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
