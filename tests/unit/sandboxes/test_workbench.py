"""A fresh place for every trial, with the files of the task's messages."""

import asyncio
import gc
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.builders import a_task
from tests.unit.conftest import call_off
from tests.unit.sandboxes.conftest import hook, left_in, sh, tries
from tests.waiting import until

from passgate.tasks.errors import UsageError
from passgate.tasks.model.task import EvalTask
from passgate.tasks.sandboxes.trial_sandbox import TrialSandbox, make_sandbox, minimal_environment
from passgate.tasks.sandboxes.workbench import Workbench, read_sandbox_file

NOTES = a_task(sandbox="notes")
OF_A_WORKSPACE = a_task(workspace={"template": "_shared/sandboxes/notes/files", "before_all": hook("true")})


@pytest.mark.parametrize("task", [NOTES, OF_A_WORKSPACE], ids=["sandbox", "workspace"])
async def test_every_trial_has_a_fresh_copy(isolation: str, describe, workbench_of, task: EvalTask) -> None:
    source = describe()
    with workbench_of() as workbench:
        async with workbench.sandbox(task) as first:
            assert first.isolation == isolation
            await sh(first, "echo changed > README.md; touch new $HOME/a $TMPDIR/b")
            async with workbench.sandbox(task) as second:
                assert (second.workspace / "README.md").read_text() == "hello\n"
                assert [file.name for file in second.workspace.iterdir()] == ["README.md"]
                assert second.workspace != first.workspace
                assert await sh(second, "ls $HOME $TMPDIR | grep -v : | grep . || true") == ""
            assert (first.workspace / "README.md").read_text() == "changed\n"
        async with workbench.sandbox(task) as third:
            assert await sh(third, "cat README.md") == "hello\n"
    assert (source / "README.md").read_text() == "hello\n"


async def test_a_task_without_a_sandbox_has_an_empty_workspace(isolation: str, sandbox: TrialSandbox) -> None:
    assert list(sandbox.workspace.iterdir()) == []
    assert list(sandbox.scratch.iterdir()) == []
    assert await sh(sandbox, "pwd") == f"{sandbox.workspace}\n"


async def test_git_has_an_identity_where_nobody_has_given_one_and_else_the_one_that_is_given(
    isolation: str, sandbox: TrialSandbox
) -> None:
    commit = "git commit -q --allow-empty -m a && git log -1 --format='%an %ae %cn'"
    assert await sh(sandbox, f"git init -q . && {commit}") == "passgate passgate@localhost passgate\n"
    assert await sh(sandbox, f"git config --global user.name Ada && {commit}") == "Ada passgate@localhost Ada\n"
    assert await sh(sandbox, f"git config user.name Eve && {commit}") == "Eve passgate@localhost Eve\n"


async def test_a_run_has_one_set_up_and_every_trial_its_resets(isolation: str, describe, workbench_of) -> None:
    # Only the time of the set-up is in all copies of one run the same.
    describe("setup: ['date +%s%N > setup-at; sleep 0.1', 'echo a >> log']\nreset: ['echo b >> log']\n")

    async def seen() -> str:
        async with workbench.sandbox(a_task(sandbox="notes", reset=("echo c >> log",))) as sandbox:
            return await sh(sandbox, "cat setup-at log")

    runs = []
    for _ in range(2):
        with workbench_of() as workbench:
            runs.append({*await asyncio.gather(*(seen() for _ in range(3))), await seen()})
    (first,), (second,) = runs
    assert first != second
    assert [text.split()[1:] for text in (first, second)] == [["a", "b", "c"]] * 2


@pytest.mark.parametrize(
    ("description", "reset", "what"),
    [
        ("setup: ['true', 'echo oh >&2; exit 3']\n", (), r"the set-up of sandbox notes exited 3: echo oh .*: oh"),
        ("reset: ['exit 4']\n", (), "the reset of sandbox notes exited 4: exit 4"),
        ("", ("exit 5",), "the task's reset exited 5: exit 5"),
        ("setup: ['sleep 600']\n", (), r"took longer than 0\.3 s: sleep 600"),
    ],
)
async def test_a_sandbox_that_cannot_be_brought_about_is_an_error(
    isolation: str, describe, cannot_begin, temporary: Path, monkeypatch, description: str, reset, what: str
) -> None:
    if "sleep" in description:
        monkeypatch.setattr("passgate.tasks.sandboxes.workbench.SETUP_SECONDS", 0.3)
    describe(description)
    await cannot_begin(a_task(sandbox="notes", reset=reset), what)
    assert left_in(temporary) == []


async def test_links_are_copied_as_links_and_modes_too(isolation: str, describe, sandbox_of, tmp_path: Path) -> None:
    files = describe(**{"run.sh": "#!/bin/sh\ncat inside\n"})
    (files / "run.sh").chmod(0o755)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    links = {"inside": "README.md", "leaves": str(outside), "dangles": "nowhere"}
    for name, place in links.items():
        (files / name).symlink_to(place)
    async with sandbox_of(NOTES) as sandbox:
        assert {name: str((sandbox.workspace / name).readlink()) for name in links} == links
        assert await sh(sandbox, "./run.sh") == "hello\n"
    assert (outside / "secret").read_text() == "secret", "what a link leads to outlives the trial"


@pytest.mark.parametrize("task", [NOTES, OF_A_WORKSPACE], ids=["sandbox", "workspace"])
async def test_nothing_is_left_when_the_workbench_closes(
    isolation: str, describe, workbench_of, temporary: Path, task: EvalTask
) -> None:
    describe("setup: [touch made]\n")
    async with workbench_of() as workbench:
        async with workbench.sandbox(task) as sandbox:
            await sh(sandbox, "mkdir -p deep/er; touch deep/er/x; ln -s / root; mkfifo pipe; chmod 500 deep/er deep .")
            trial = sandbox.workspace.parent
            assert temporary in trial.parents
        assert not trial.exists()
        assert len(left_in(temporary)) == 1
    assert left_in(temporary) == []


async def test_a_trial_that_fails_leaves_nothing(workbench_of, temporary: Path) -> None:
    with workbench_of() as workbench:
        with pytest.raises(ZeroDivisionError):  # noqa: PT012 - the sandbox has to be looked into first
            async with workbench.sandbox(a_task()) as sandbox:
                workspace = sandbox.workspace
                1 / 0  # noqa: B018 - any error of whoever uses the sandbox
        assert not workspace.exists()


async def test_graders_that_look_into_a_sandbox_at_once_find_one_folder(workbench_of) -> None:
    with workbench_of() as workbench, ThreadPoolExecutor(8) as threads:
        for _ in range(40):
            async with workbench.sandbox(a_task()) as sandbox:
                at_once = threading.Barrier(8)

                def look(sandbox: TrialSandbox = sandbox, at_once: threading.Barrier = at_once) -> bool:
                    at_once.wait()
                    return sandbox.workspace.is_dir() and sandbox.scratch.is_dir()

                assert all(looked.result() for looked in [threads.submit(look) for _ in range(8)])


async def test_a_sandbox_that_nobody_looks_into_has_no_folder(temporary: Path, sandbox: TrialSandbox) -> None:
    assert not sandbox.is_used
    assert not list(temporary.rglob("workspace"))
    assert sandbox.workspace.is_dir()
    assert sandbox.is_used


async def test_a_tree_deeper_than_a_path_can_say_is_gone_with_its_trial(workbench_of, temporary: Path) -> None:
    program = "import os\nfor _ in range(1200):\n    os.mkdir('deep')\n    os.chdir('deep')"
    with workbench_of() as workbench:
        async with workbench.sandbox(a_task()) as sandbox:
            left = await sandbox.run([sys.executable, "-c", program], seconds=240)
            assert left.exit_code == 0, left.stderr
        assert not sandbox.workspace.parent.exists()
    assert workbench.warnings == ()
    assert left_in(temporary) == []


async def test_what_a_trial_has_left_for_good_is_told_once(workbench_of, temporary: Path, tmp_path: Path) -> None:
    async with workbench_of() as workbench, workbench.sandbox(a_task()) as sandbox:
        left = sandbox.workspace / "left"
        left.mkdir()
        if subprocess.run(["mount", "--bind", tmp_path, left], capture_output=True, check=False).returncode != 0:
            pytest.skip("this user cannot mount")
    try:
        (told,) = workbench.warnings
        assert told.startswith(f"cannot remove {temporary}/")
    finally:
        subprocess.run(["umount", left], check=True)


@pytest.mark.parametrize(
    "harm",
    [
        "chmod 000 . ../scratch ../home ../tmp",
        "rm -rf ../workspace ../scratch ../home ../tmp",
        "rm -rf ../scratch; ln -s / ../scratch; rmdir ../workspace; touch ../workspace",
    ],
)
async def test_the_folders_of_a_trial_can_be_used_whatever_its_agent_did_to_them(isolation, sandbox, harm: str) -> None:
    await sandbox.for_the_agent.run(["sh", "-c", harm], seconds=240)
    await sh(sandbox, "touch new $HOME/new $TMPDIR/new")
    assert sandbox.scratch.is_dir()
    assert not sandbox.scratch.is_symlink()
    (sandbox.scratch / "new").touch()


@pytest.mark.parametrize(
    ("of_the_task", "description", "network"),
    [(False, "", False), (True, "", True), (False, "network: true\n", True)],
)
async def test_task_or_sandbox_may_ask_for_the_network(
    describe, sandbox_of, of_the_task: bool, description: str, network: bool
) -> None:
    describe(description)
    async with sandbox_of(a_task(sandbox="notes", network=of_the_task)) as sandbox:
        assert sandbox.network is network


async def test_commands_get_a_small_environment(isolation: str, sandbox: TrialSandbox, monkeypatch) -> None:
    monkeypatch.setenv("MY_SECRET", "hunter2")
    printed = await sh(sandbox, "python -c 'import pydantic' && env", environment={"GIVEN": "yes"})
    given = dict(line.split("=", 1) for line in printed.splitlines())
    of_shells = {"PWD", "OLDPWD", "SHLVL", "_", "PASSGATE_PROCESS"}
    of_sandboxes = {"PATH", "HOME", "LANG", "TMPDIR", "PYTHONDONTWRITEBYTECODE", "GIT_CONFIG_SYSTEM"}
    assert given.keys() - of_shells == of_sandboxes | {"GIVEN"}
    assert given["GIVEN"] == "yes"
    assert Path(given["HOME"]).parent == Path(given["TMPDIR"]).parent == sandbox.workspace.parent


def test_the_minimal_environment_works_without_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PATH")
    assert os.defpath in minimal_environment(tmp_path)["PATH"]


async def test_only_so_many_processes_run_at_once_and_agents_are_not_among_them(sandbox_of) -> None:
    """The first process waits for a second one, and each of the agents for all the others."""
    async with sandbox_of(processes=2) as sandbox:
        second = "while [ $(wc -l < seen) -lt 2 ]; do sleep 0.02; done"
        command = f'mine=$(mktemp running.XXXXXX); ls running.* | wc -l >> seen; {second}; rm "$mine"'
        await asyncio.gather(*(sh(sandbox, command) for _ in range(6)))
        assert max(int(line) for line in (sandbox.workspace / "seen").read_text().split()) == 2
        command = "mktemp begun.XXXXXX; while [ $(ls begun.* | wc -l) -lt 6 ]; do sleep 0.02; done"
        await asyncio.gather(*(sh(sandbox.for_the_agent, command) for _ in range(6)))


@pytest.mark.parametrize("text", ["setup: 3", "unknown: 1", "setup: [", "[a]", "3", "description: 2026-99-99"])
def test_a_description_of_another_shape_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "sandbox.yaml").write_text(text)
    with pytest.raises(UsageError, match=r"sandbox\.yaml: not a sandbox description"):
        read_sandbox_file(tmp_path)


async def trial(workbench: Workbench) -> None:
    async with workbench.sandbox(NOTES):
        pytest.fail("the trial must not begin")


def running_tasks() -> set[asyncio.Task[object]]:
    return asyncio.all_tasks() - {asyncio.current_task()}


async def test_a_set_up_that_nobody_waits_for_is_ended(isolation, describe, workbench_of, temporary, marked) -> None:
    describe(f"setup: ['sleep 600 # {marked.word}']\n")
    async with workbench_of() as workbench:
        await call_off(trial(workbench), lambda: marked.running)
        assert running_tasks(), "another trial may want it yet"
    assert running_tasks() == set()
    await marked.are_gone()
    assert left_in(temporary) == []


async def test_what_comes_of_a_set_up_that_nobody_waits_for_troubles_nobody(describe, workbench_of, temporary) -> None:
    told = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
    describe("setup: ['touch begun; while [ ! -e end ]; do sleep 0.02; done; exit 3']\n")
    async with workbench_of() as workbench:
        await call_off(trial(workbench), lambda: list(temporary.rglob("begun")))
        (begun,) = temporary.rglob("begun")
        begun.with_name("end").touch()
        await until(lambda: not running_tasks())
    del workbench
    gc.collect()
    assert told == []


async def test_a_folder_goes_only_when_nothing_is_copied_to_it(describe, workbench_of, temporary, monkeypatch) -> None:
    describe()
    begun, may_go_on = threading.Event(), threading.Event()

    def slowly(*arguments: object, **options: object) -> TrialSandbox:
        begun.set()
        may_go_on.wait(240)
        return make_sandbox(*arguments, **options)

    monkeypatch.setattr("passgate.tasks.sandboxes.workbench.make_sandbox", slowly)
    workbench = await workbench_of().__aenter__()
    await call_off(trial(workbench), begun.is_set)
    closing = asyncio.create_task(workbench.__aexit__())
    await asyncio.wait([closing], timeout=0.1)
    is_over_too_soon = closing.done()
    may_go_on.set()
    await closing
    assert not is_over_too_soon
    assert left_in(temporary) == []


IMAGE = b"\x89PNG\x00\xff"


def asking(*blocks: tuple[str, str]) -> EvalTask:
    content = [{"type": kind, "value": value} for kind, value in blocks]
    return a_task(inputs={}, messages=[{"role": "user", "content": content}])


@pytest.fixture
def files(suites: Path) -> Path:
    texts = {"golden/docs/a.md": "of the suites", "../beside/a.md": "beside them", "../other/a.md": "another"}
    for name, text in texts.items():
        (suites / name).parent.mkdir(parents=True)
        (suites / name).write_text(text)
    (suites / "golden/b.png").write_bytes(IMAGE)
    return suites


async def test_the_agent_finds_the_files_of_the_messages(isolation: str, sandbox_of, files: Path) -> None:
    names = ("golden/docs/a.md", "../beside/a.md", "../other/a.md", str(files / "golden/docs/a.md"))
    images = [("image", value) for value in ("golden/b.png", "data:image/png;base64,AAAA", "https://host/a.png")]
    blocks = [("file", names[0]), ("text", "and"), *(("file", name) for name in names), *images]
    async with sandbox_of(asking(*blocks)) as sandbox:
        assert tuple(sandbox.files) == (*names, "golden/b.png")
        texts = [await sh(sandbox, f"cat {sandbox.files[name]}") for name in names]
        assert texts == ["of the suites", "beside them", "another", "of the suites"]
        assert sandbox.files["golden/b.png"].read_bytes() == IMAGE
        assert sandbox.files[names[0]].parts[-3:] == ("golden", "docs", "a.md")
        assert all(sandbox.files[name].name == "a.md" for name in names)
        assert all(file.is_relative_to(sandbox.workspace.parent) for file in sandbox.files.values())
        assert list(sandbox.workspace.iterdir()) == list(sandbox.scratch.iterdir()) == []


@pytest.mark.usefixtures("needs_bubblewrap")
async def test_no_command_can_change_them(sandbox_of, files: Path) -> None:
    async with sandbox_of(asking(("image", "golden/b.png"))) as sandbox:
        image = sandbox.files["golden/b.png"]
        for command in (f"echo x > {image}", f"rm {image}", f"mv {image.parent} {image.parent}-gone"):
            assert not await tries(sandbox, command)
        assert image.read_bytes() == IMAGE


@pytest.mark.parametrize("name", ["golden/gone.md", "golden"])
async def test_what_is_no_file_that_is_there_is_an_error(cannot_begin, files: Path, name: str) -> None:
    await cannot_begin(asking(("file", name)), f"the file {name} of the task's messages cannot be read")
