"""Workspaces that eval files describe, and commands of the suites' authors around the trials in them."""

import asyncio
import json
from pathlib import Path

import pytest
from tests.builders import a_task
from tests.unit.conftest import Marked, call_off
from tests.unit.sandboxes.conftest import hook

from passgate.tasks.model.task import EvalTask
from passgate.tasks.sandboxes.trial_sandbox import TrialSandbox


def task_in(**workspace: object) -> EvalTask:
    return a_task(workspace=workspace)


@pytest.mark.parametrize(("template", "files"), [("../beside", ["file"]), (None, [])])
async def test_a_template_may_lie_beside_the_suites_or_be_none(sandbox_of, suites, template, files: list[str]) -> None:
    (suites.parent / "beside").mkdir()
    (suites.parent / "beside/file").write_text("yes")
    async with sandbox_of(task_in(template=template)) as sandbox:
        assert [file.name for file in sandbox.workspace.iterdir()] == files


@pytest.mark.parametrize("name", ["gone", "file"])
async def test_a_template_that_is_gone_is_an_error(cannot_begin, suites: Path, name: str) -> None:
    (suites / "file").touch()
    await cannot_begin(task_in(template=name), f"the workspace's template {name} is not a folder")


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
        await call_off(trial(), lambda: marked.running)
    await marked.are_gone()
    assert not (tmp_path / "after").exists()


TELL = "import json, os, sys; print(json.dumps([json.load(sys.stdin), dict(os.environ), os.getcwd(), sys.argv[1:]]))"


@pytest.fixture(autouse=True)
def _script(suites: Path) -> None:
    """The script that says what a hook is told."""
    (suites / "evals/scripts").mkdir(parents=True)
    (suites / "evals/scripts/tell.py").write_text(TELL)


def telling(name: str, *words: str) -> dict[str, object]:
    """A hook that writes what it is told into the workspace."""
    command = f'"$0" scripts/tell.py "$@" > "$WORKSPACE_PATH/{name}.json"'
    return {"command": ["sh", "-c", command, "python", *words], "cwd": "evals"}


def heard(sandbox: TrialSandbox, name: str) -> list[object]:
    return json.loads((sandbox.workspace / f"{name}.json").read_text())


async def test_what_a_hook_of_a_trial_is_told(isolation: str, sandbox_of, suites: Path) -> None:
    words = ["{{workspace_path}}", "id={{ test_id }}", "{{case_metadata}}", "{{ new }}", "{{task_id}}{{case_input}}"]
    task = a_task(
        metadata={"difficulty": "hard"},
        workspace={"before_each": telling("each", *words), "environment": {"MODE": "careful"}},
        file=str(suites / "evals/a.eval.yaml"),
    )
    async with sandbox_of(task) as sandbox:
        told, environment, folder, arguments = heard(sandbox, "each")
        workspace = str(sandbox.workspace)
    assert told.pop("eval_run_id")
    assert told == {
        "workspace_path": workspace,
        "test_id": "say-yes",
        "task_id": "say-yes",
        "eval_dir": str(suites / "evals"),
        "case_input": "Say yes.",
        "case_metadata": {"difficulty": "hard"},
    }
    assert environment["WORKSPACE_PATH"] == environment["AGENTV_WORKSPACE_PATH"] == workspace
    assert (environment["MODE"], folder) == ("careful", str(suites / "evals"))
    assert arguments == [workspace, "id=say-yes", '{"difficulty": "hard"}', "{{ new }}", "say-yesSay yes."]


async def test_what_a_hook_of_the_run_is_told(isolation: str, sandbox_of) -> None:
    async with sandbox_of(a_task(workspace={"before_all": telling("all")})) as sandbox:
        told, environment, _, _ = heard(sandbox, "all")
    assert (told["test_id"], told["task_id"], told["case_input"]) == ("__before_all__", None, None)
    assert told["workspace_path"] == environment["WORKSPACE_PATH"] != str(sandbox.workspace)


async def test_every_hook_has_its_time(workbench_of, tmp_path: Path, without_bubblewrap) -> None:
    """Written outside of the workspaces, which is only possible without bubblewrap."""
    log = tmp_path / "log"
    names = ("before_all", "before_each", "after_each", "after_all")
    task = a_task(workspace={name: hook(f"echo {name} >> {log}") for name in names})
    async with workbench_of() as workbench:
        for number in range(2):
            async with workbench.sandbox(task):
                with log.open("a") as file:
                    file.write(f"trial {number}\n")
    each = ["before_each", "trial 0", "after_each", "before_each", "trial 1", "after_each"]
    assert log.read_text().splitlines() == ["before_all", *each, "after_all"]


async def test_the_last_hooks_see_what_the_first_ones_left(isolation: str, workbench_of) -> None:
    workspace = {
        "before_all": hook('echo all > "$WORKSPACE_PATH/made"'),
        "after_all": hook('grep -q all "$WORKSPACE_PATH/made"'),
        "before_each": hook('echo each > "$WORKSPACE_PATH/made"'),
        "after_each": hook('grep -q graded "$WORKSPACE_PATH/made"'),
    }
    async with workbench_of() as workbench, workbench.sandbox(a_task(workspace=workspace)) as sandbox:
        assert (sandbox.workspace / "made").read_text() == "each\n"
        (sandbox.workspace / "made").write_text("graded")
    assert workbench.warnings == ()


@pytest.mark.parametrize("name", ["before_all", "before_each"])
@pytest.mark.parametrize(
    ("command", "what"),
    [
        (hook("echo oh no >&2; exit 3"), "the hook {} exited 3: sh -c .*: oh no"),
        (hook("sleep 600", timeout_seconds=0.2), r"the hook {} took longer than 0\.2 s: sh -c 'sleep 600'"),
        ({"command": ["no-such-program", "a"]}, "the hook {} exited 127: no-such-program a: .*not found"),
        ({"command": ["true"], "cwd": "gone"}, "cannot start true: there is no folder .*gone"),
    ],
)
async def test_a_hook_that_fails_before_a_trial_is_an_error(
    isolation: str, cannot_begin, name: str, command: dict[str, object], what: str
) -> None:
    task = a_task(workspace={name: command, "after_each": hook("false"), "after_all": hook("true")})
    assert await cannot_begin(task, what.format(name)) == (), "what did not begin is not ended"


async def test_a_hook_that_fails_after_a_trial_is_a_trouble_and_no_error(isolation: str, workbench_of) -> None:
    task = a_task(workspace={"after_each": hook("echo oh >&2; exit 3"), "after_all": hook("exit 4")})
    async with workbench_of() as workbench:
        async with workbench.sandbox(task) as sandbox:
            assert not sandbox.network
        assert not sandbox.workspace.exists()
    assert tuple(map(str, workbench.warnings)) == (
        "say-yes: the hook after_each exited 3: sh -c 'echo oh >&2; exit 3': oh",
        "the hook after_all exited 4: sh -c 'exit 4': ",
    )


async def test_the_last_hook_runs_after_a_trial_that_broke(workbench_of, tmp_path: Path, without_bubblewrap) -> None:
    task = a_task(workspace={"after_each": hook(f"touch {tmp_path}/tidied")})
    with workbench_of() as workbench, pytest.raises(ZeroDivisionError):
        async with workbench.sandbox(task):
            1 / 0  # noqa: B018 - any error of whoever uses the sandbox
    assert (tmp_path / "tidied").exists()
