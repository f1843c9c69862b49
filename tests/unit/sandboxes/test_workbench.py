"""A fresh place for every trial."""

import asyncio
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.builders import a_task
from tests.unit.sandboxes.conftest import cannot_begin, left_in, sh

from passgate.tasks.errors import UsageError
from passgate.tasks.model.sandbox import SandboxFile
from passgate.tasks.sandboxes.trial_sandbox import TrialSandbox, minimal_environment
from passgate.tasks.sandboxes.workbench import read_sandbox_file

NOTES = a_task(sandbox="notes")


async def test_every_trial_has_a_fresh_copy(isolation: str, describe, workbench_of) -> None:
    source = describe()
    with workbench_of() as workbench:
        async with workbench.sandbox(NOTES) as first:
            assert first.isolation == isolation
            await sh(first, "echo changed > README.md; touch new")
            async with workbench.sandbox(NOTES) as second:
                assert (second.workspace / "README.md").read_text() == "hello\n"
                assert [file.name for file in second.workspace.iterdir()] == ["README.md"]
                assert second.workspace != first.workspace
            assert (first.workspace / "README.md").read_text() == "changed\n"
        async with workbench.sandbox(NOTES) as third:
            assert await sh(third, "cat README.md") == "hello\n"
    assert (source / "files/README.md").read_text() == "hello\n"


async def test_a_task_without_a_sandbox_has_an_empty_workspace(isolation: str, sandbox: TrialSandbox) -> None:
    assert list(sandbox.workspace.iterdir()) == []
    assert list(sandbox.scratch.iterdir()) == []
    assert await sh(sandbox, "pwd") == f"{sandbox.workspace}\n"


async def test_the_set_up_runs_once_and_the_reset_in_every_trial(isolation: str, describe, workbench_of) -> None:
    # Only the time of the set-up is in all copies the same.
    describe(description="setup: ['date +%s%N > setup-at', 'echo a >> log']\nreset: ['echo b >> log']\n")
    seen = []
    with workbench_of() as workbench:
        for _ in range(3):
            async with workbench.sandbox(NOTES) as sandbox:
                seen.append((await sh(sandbox, "cat setup-at"), await sh(sandbox, "cat log")))
    assert len({setup for setup, _ in seen}) == 1
    assert {log for _, log in seen} == {"a\nb\n"}


async def test_trials_that_begin_together_share_one_set_up(isolation: str, describe, workbench_of) -> None:
    describe(description="setup: ['date +%s%N > setup-at; sleep 0.1']\n")

    async def setup_at() -> str:
        async with workbench.sandbox(NOTES) as sandbox:
            return await sh(sandbox, "cat setup-at")

    with workbench_of() as workbench:
        assert len(set(await asyncio.gather(*(setup_at() for _ in range(5))))) == 1


async def test_another_run_has_another_set_up(describe, sandbox_of) -> None:
    describe(description="setup: ['date +%s%N > setup-at']\n")
    seen = set()
    for _ in range(2):
        async with sandbox_of(NOTES) as sandbox:
            seen.add((sandbox.workspace / "setup-at").read_text())
    assert len(seen) == 2


async def test_the_tasks_reset_comes_last(isolation: str, describe, sandbox_of) -> None:
    describe(description="reset: ['echo sandbox >> log']\n")
    async with sandbox_of(a_task(sandbox="notes", reset=("echo task >> log", "echo more >> log"))) as one:
        assert (one.workspace / "log").read_text() == "sandbox\ntask\nmore\n"


@pytest.mark.parametrize(
    ("description", "reset", "what"),
    [
        ("setup: ['true', 'echo oh >&2; exit 3']\n", (), r"the set-up of sandbox notes exited 3: echo oh .*: oh"),
        ("reset: ['exit 4']\n", (), "the reset of sandbox notes exited 4: exit 4"),
        ("", ("exit 5",), "the task's reset exited 5: exit 5"),
    ],
)
async def test_a_sandbox_that_cannot_be_brought_about_is_an_error(
    isolation: str, describe, workbench_of, temporary: Path, description: str, reset: tuple[str, ...], what: str
) -> None:
    describe(description=description)
    with workbench_of() as workbench:
        for _ in range(2):
            await cannot_begin(workbench, a_task(sandbox="notes", reset=reset), what)
    assert left_in(temporary) == []


async def test_a_set_up_that_takes_too_long_is_an_error(describe, workbench_of, monkeypatch) -> None:
    monkeypatch.setattr("passgate.tasks.sandboxes.workbench.SETUP_SECONDS", 0.2)
    describe(description="setup: ['sleep 600']\n")
    async with workbench_of() as workbench:
        await cannot_begin(workbench, NOTES, r"took longer than 0\.2 s: sleep 600")


async def test_links_are_copied_as_links(isolation: str, describe, sandbox_of, tmp_path: Path) -> None:
    files = describe() / "files"
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    (files / "inside").symlink_to("README.md")
    (files / "leaves").symlink_to(outside)
    (files / "dangles").symlink_to("nowhere")
    async with sandbox_of(NOTES) as sandbox:
        assert (sandbox.workspace / "leaves").readlink() == outside
        assert (sandbox.workspace / "dangles").readlink() == Path("nowhere")
        assert await sh(sandbox, "cat inside") == "hello\n"
    assert (outside / "secret").read_text() == "secret", "what a link leads to outlives the trial"


async def test_modes_are_copied(isolation: str, describe, sandbox_of) -> None:
    files = describe(**{"run.sh": "#!/bin/sh\necho ran\n"}) / "files"
    (files / "run.sh").chmod(0o755)
    async with sandbox_of(NOTES) as sandbox:
        assert await sh(sandbox, "./run.sh") == "ran\n"


async def test_nothing_is_left_when_the_workbench_closes(isolation: str, describe, workbench_of, temporary) -> None:
    describe(description="setup: [touch made]\n")
    with workbench_of() as workbench:
        async with workbench.sandbox(NOTES) as sandbox:
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


LEAVES_A_DEEP_TREE = """
import os
for _ in range(1200):
    os.mkdir("deep")
    os.chdir("deep")
"""


async def test_a_tree_deeper_than_a_path_can_say_is_gone_with_its_trial(workbench_of, temporary: Path) -> None:
    with workbench_of() as workbench:
        async with workbench.sandbox(a_task()) as sandbox:
            left = await sandbox.run([sys.executable, "-c", LEAVES_A_DEEP_TREE], seconds=240)
            assert left.exit_code == 0, left.stderr
        assert not sandbox.workspace.parent.exists()
    assert workbench.warnings == ()
    assert left_in(temporary) == []


async def test_what_a_trial_has_left_for_good_is_told_once_and_changes_nothing(
    workbench_of, temporary: Path, tmp_path: Path
) -> None:
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
async def test_the_folders_of_a_trial_can_be_used_whatever_its_agent_did_to_them(
    isolation: str, sandbox: TrialSandbox, harm: str
) -> None:
    await sandbox.for_the_agent.run(["sh", "-c", harm], seconds=240)
    await sh(sandbox, "touch new $HOME/new $TMPDIR/new")
    assert sandbox.scratch.is_dir()
    assert not sandbox.scratch.is_symlink()
    (sandbox.scratch / "new").touch()


@pytest.mark.parametrize(
    ("task_network", "description", "network"),
    [(False, "", False), (True, "", True), (False, "network: true\n", True)],
)
async def test_the_task_or_its_sandbox_may_ask_for_the_network(
    describe, sandbox_of, task_network: bool, description: str, network: bool
) -> None:
    describe(description=description)
    async with sandbox_of(a_task(sandbox="notes", network=task_network)) as sandbox:
        assert sandbox.network is network


async def test_commands_get_a_small_environment(isolation: str, sandbox: TrialSandbox, monkeypatch) -> None:
    monkeypatch.setenv("MY_SECRET", "hunter2")
    printed = await sh(sandbox, "env", environment={"GIVEN": "yes"})
    given = dict(line.split("=", 1) for line in printed.splitlines())
    of_shells = {"PWD", "OLDPWD", "SHLVL", "_", "PASSGATE_PROCESS"}
    assert given.keys() - of_shells == {"PATH", "HOME", "LANG", "TMPDIR", "PYTHONDONTWRITEBYTECODE", "GIVEN"}
    assert given["GIVEN"] == "yes"
    assert Path(given["HOME"]).parent == Path(given["TMPDIR"]).parent == sandbox.workspace.parent


async def test_home_and_the_temporary_folder_are_the_trials_own(isolation: str, workbench_of) -> None:
    with workbench_of() as workbench:
        async with workbench.sandbox(a_task()) as first, workbench.sandbox(a_task()) as second:
            await sh(first, "touch $HOME/a $TMPDIR/b")
            assert await sh(second, "ls $HOME $TMPDIR | grep -v : | grep . || true") == ""


async def test_python_is_the_one_that_runs_passgate(isolation: str, sandbox: TrialSandbox) -> None:
    assert await sh(sandbox, "python -c 'import pydantic; print(1)'") == "1\n"


def test_the_minimal_environment_works_without_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PATH")
    assert minimal_environment(tmp_path)["PATH"].endswith(os.defpath)


async def test_only_so_many_processes_run_at_once(sandbox_of) -> None:
    async with sandbox_of(processes=2) as sandbox:
        command = 'mine=$(mktemp running.XXXXXX); ls running.* | wc -l >> seen; sleep 0.1; rm "$mine"'
        await asyncio.gather(*(sh(sandbox, command) for _ in range(6)))
        assert max(int(line) for line in (sandbox.workspace / "seen").read_text().split()) == 2


async def test_agents_are_not_among_them(sandbox_of) -> None:
    """Each waits for all the others."""
    async with sandbox_of(processes=2) as sandbox:
        command = "mktemp begun.XXXXXX; while [ $(ls begun.* | wc -l) -lt 6 ]; do sleep 0.02; done"
        await asyncio.gather(*(sh(sandbox.for_the_agent, command) for _ in range(6)))


@pytest.mark.parametrize(
    ("text", "described"),
    [
        (None, SandboxFile()),
        ("", SandboxFile()),
        ("network: true\nsetup: [a, b]\n", SandboxFile(network=True, setup=("a", "b"))),
    ],
)
def test_the_description_of_a_sandbox(tmp_path: Path, text: str | None, described: SandboxFile) -> None:
    if text is not None:
        (tmp_path / "sandbox.yaml").write_text(text)
    assert read_sandbox_file(tmp_path) == described


@pytest.mark.parametrize("text", ["setup: 3", "unknown: 1", "setup: [", "[a]", "3", "description: 2026-99-99"])
def test_a_description_of_another_shape_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "sandbox.yaml").write_text(text)
    with pytest.raises(UsageError, match=r"sandbox\.yaml: not a sandbox description"):
        read_sandbox_file(tmp_path)
