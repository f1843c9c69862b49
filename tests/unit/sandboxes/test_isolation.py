"""What a command of a trial can see and do."""

import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import pytest
from tests.builders import a_task
from tests.project import REPOSITORY
from tests.repositories import GitRepository
from tests.unit.conftest import Marked
from tests.unit.sandboxes.conftest import sh, tries
from tests.waiting import wait_until
from tests.warm import CODE, popen

from passgate.tasks.errors import UsageError
from passgate.tasks.sandboxes.isolation import Isolation, best_isolation
from passgate.tasks.sandboxes.trial_sandbox import TrialSandbox

RUNS_A_COMMAND = """
    import asyncio, os
    from pathlib import Path
    from passgate.tasks.sandboxes.workbench import Workbench
    from tests.builders import a_task

    async def run():
        with Workbench(Path(os.environ["SUITES"]), processes=1) as workbench:
            async with workbench.sandbox(a_task()) as sandbox:
                await sandbox.run(["sh", "-c", "setsid sleep 600 & sleep 600", os.environ["WORD"]], seconds=600)

    asyncio.run(run())
"""


def connect(port: int) -> str:
    return f"python -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}), 5)'"


@pytest.fixture
def all_of_tmp(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands see all of /tmp, however much lies there when the tests run."""
    monkeypatch.setattr("passgate.tasks.sandboxes.isolation._MAX_KEPT", sys.maxsize)


@pytest.mark.usefixtures("needs_bubblewrap")
class TestBubblewrap:
    @pytest.mark.usefixtures("all_of_tmp")
    async def test_only_the_trials_own_folders_are_writable(self, sandbox_of, tmp_path: Path) -> None:
        async with sandbox_of() as sandbox:
            for folder in (sandbox.workspace, sandbox.scratch, "$HOME", "$TMPDIR", "/tmp"):
                assert await tries(sandbox, f"touch {folder}/new"), folder
            for folder in (tmp_path, "/", "/etc", "/usr", Path.cwd(), Path(sys.prefix)):
                assert not await tries(sandbox, f"touch {folder}/passgate-must-not-write"), folder
            assert (sandbox.workspace / "new").exists()
        assert not Path("/tmp/new").exists()
        assert not (tmp_path / "passgate-must-not-write").exists()

    async def test_there_is_no_network_unless_it_is_asked_for(self, sandbox: TrialSandbox, port: int) -> None:
        assert not await tries(sandbox, connect(port))
        assert await tries(sandbox, connect(port), network=True)

    async def test_names_are_looked_up_in_vain_at_once_where_there_is_no_network(self, sandbox: TrialSandbox) -> None:
        """Programs built on musl would wait for 5 seconds."""
        if not Path("/etc/resolv.conf").is_file():
            pytest.skip("the machine resolves no names")
        of_machine = Path("/etc/resolv.conf").read_text()
        assert "options timeout:1 attempts:1\n" in await sh(sandbox, "cat /etc/resolv.conf")
        assert await sh(sandbox, "cat /etc/resolv.conf", network=True) == of_machine
        assert not await tries(sandbox, "ls /run/systemd/resolve/io.systemd.Resolve", network=True)

    @pytest.mark.parametrize("place", ["/run", "/tmp", "/tmp/ssh-passgate-test"])
    async def test_sockets_of_the_machines_services_cannot_be_reached(self, sandbox_of, place: str) -> None:
        if not os.access(Path(place).parent, os.W_OK) or not os.access("/run", os.W_OK):
            pytest.skip("only who may write there can test it")
        folder = Path(place)
        made = not folder.is_dir()
        folder.mkdir(exist_ok=True)
        path = folder / f"passgate-test-{secrets.token_hex(4)}.sock"
        reach = f"python -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"{path}\")'"
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(path))
            server.listen()
            try:
                async with sandbox_of() as sandbox:
                    assert not await tries(sandbox, reach)
                    assert not await tries(sandbox, reach, network=True)
                assert subprocess.run(["sh", "-c", reach], check=False).returncode == 0, "others reach it"
            finally:
                path.unlink()
                if made:
                    folder.rmdir()

    async def test_suites_history_and_hidden_folders_are_hidden(self, sandbox_of, describe, suites, tmp_path) -> None:
        """What git keeps holds the hidden tests and the solutions too."""
        describe()
        hidden = [suites / "golden/task.yaml", tmp_path / ".git/HEAD", tmp_path / "state/history"]
        for file in hidden:
            file.parent.mkdir()
            file.write_text("the answer")
        (tmp_path / "link").symlink_to(tmp_path / "state")
        task = a_task(sandbox="notes")
        async with sandbox_of(task, hidden=[tmp_path / "link", tmp_path / "not-there"]) as sandbox:
            assert sandbox.isolation == "bubblewrap"
            for file in (*hidden, tmp_path / "link/history"):
                assert not await tries(sandbox, f"cat {file}"), file
                assert not await tries(sandbox.for_the_agent, f"cat {file}"), file
            assert await tries(sandbox, f'test -z "$(ls -A {suites})"')
            assert await tries(sandbox, "cat README.md")
        assert all(file.exists() for file in hidden)

    async def test_the_suites_of_other_worktrees_are_hidden(self, sandbox_of, describe, suites, tmp_path) -> None:
        describe()
        repository, linked = GitRepository(suites.parent), tmp_path / "elsewhere/linked"
        repository.write("suites/hidden", "the answer")
        repository.commit()
        repository.git("worktree", "add", "--quiet", str(linked))
        async with sandbox_of(a_task(sandbox="notes")) as sandbox:
            assert await tries(sandbox, f"test -e {linked}/.git")
            assert not await tries(sandbox, f"cat {linked}/suites/hidden")
        assert (linked / "suites/hidden").exists()

    async def test_other_trials_are_hidden(self, workbench_of) -> None:
        with workbench_of() as workbench:
            async with workbench.sandbox(a_task()) as first, workbench.sandbox(a_task()) as second:
                (first.workspace / "answer").write_text("yes")
                assert not await tries(second, f"cat {first.workspace}/answer")
                assert not await tries(second, f"ls {first.workspace}")
                assert await tries(first, "cat answer")

    @pytest.mark.parametrize("place", ["/tmp", "/var/tmp"])
    async def test_other_gates_are_hidden(self, workbench_of, place: str, monkeypatch, tmp_path: Path) -> None:
        """Their trials, and the hidden tests that are copied into them, wherever they have their temporary files."""
        monkeypatch.setattr(tempfile, "tempdir", place)
        with workbench_of() as theirs:
            async with theirs.sandbox(a_task()) as first:
                (first.scratch / "hidden-test").write_text("the answer")
                for own in (place, str(tmp_path)):
                    monkeypatch.setattr(tempfile, "tempdir", own)
                    with workbench_of() as ours:
                        async with ours.sandbox(a_task()) as second:
                            assert second.isolation == "bubblewrap"
                            assert not await tries(second, f"cat {first.scratch}/hidden-test")
                            assert not await tries(second, f"ls {first.workspace.parents[1]}")
                            assert await tries(second, "touch answer")

    async def test_what_a_command_is_given_acts_inside_alone(self, sandbox_of, suites, tmp_path, monkeypatch) -> None:
        """Else the agent's LD_PRELOAD would load its code outside, and everybody could read its keys."""
        (tmp_path / "bwrap").write_text(
            f'#!/bin/sh\n{{ pwd; env; echo "$@"; }} >> {tmp_path}/seen\nexec {shutil.which("bwrap")} "$@"\n'
        )
        (tmp_path / "bwrap").chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
        given = {"MY_KEY": "k-4711", "PYTHONPATH": "k-4711", "GIT_EXEC_PATH": "k-4711", "PATH": f"k-4711:{os.defpath}"}
        async with sandbox_of() as sandbox:
            for place in (sandbox, sandbox.for_the_agent):
                assert (await sh(place, "env; pwd", environment=given, folder=suites)).count("k-4711") == len(given)
        seen = (tmp_path / "seen").read_text()
        assert "--unshare-pid" in seen
        assert "k-4711" not in seen
        assert str(suites) not in {line for line in seen.splitlines() if line.startswith("/")}

    async def test_other_processes_are_hidden(self, sandbox: TrialSandbox) -> None:
        assert not await tries(sandbox, f"cat /proc/{os.getpid()}/environ")
        assert int(await sh(sandbox, "ls -d /proc/[0-9]* | wc -l")) < 10

    @pytest.mark.usefixtures("all_of_tmp")
    async def test_the_temporary_folder_of_the_machine_is_readable_and_keeps_nothing(self, sandbox_of) -> None:
        """Agents and whole checkouts may live there."""
        with tempfile.TemporaryDirectory(dir="/tmp") as folder:
            Path(folder, "tool").write_text("#!/bin/sh\necho works\n")
            async with sandbox_of() as sandbox:
                assert await tries(sandbox, f"grep works {folder}/tool")
                assert not await tries(sandbox, f"touch {folder}/new")
                assert await tries(sandbox, "touch /tmp/left")
                assert not await tries(sandbox, "test -e /tmp/left")

    async def test_nobody_can_take_the_isolation_back(self, sandbox_of, suites: Path) -> None:
        """Not even root, as which many CI systems run everything."""
        (suites / "answer").write_text("yes")
        for command in (["unshare", "--help"], ["mount", "--help"], ["umount", "--help"]):
            assert subprocess.run(command, capture_output=True, check=False).returncode == 0, "the tools are there"
        async with sandbox_of() as sandbox:
            assert not await tries(sandbox, f"umount {suites} && cat {suites}/answer")
            assert not await tries(sandbox, "mount -o remount,rw,bind / && touch /passgate-must-not-write")
            assert not await tries(sandbox, f"cat /proc/1/root{suites}/answer")
            assert not await tries(sandbox, f"unshare --mount umount {suites}")
        assert not Path("/passgate-must-not-write").exists()

    async def test_the_trials_folders_cannot_be_replaced(self, sandbox: TrialSandbox, tmp_path: Path) -> None:
        """Else a grader would write its tests to wherever the agent wants."""
        for folder in (sandbox.workspace, sandbox.scratch):
            assert not await tries(sandbox, f"mv {folder} {folder}-gone && ln -s {tmp_path} {folder}")
            assert not await tries(sandbox, f"rmdir {folder} && ln -s {tmp_path} {folder}")
            assert folder.is_dir()
            assert not folder.is_symlink()

    def test_a_command_ends_when_passgate_is_killed(self, tmp_path: Path, suites: Path, marked: Marked) -> None:
        environment = {**os.environ, "TMPDIR": str(tmp_path), "SUITES": str(suites), "WORD": marked.word}
        with popen([*CODE, textwrap.dedent(RUNS_A_COMMAND)], cwd=REPOSITORY, env=environment) as passgate:
            try:
                wait_until(lambda: len(marked.running) >= 3)  # bwrap, its init and the command
            finally:
                passgate.kill()
        wait_until(lambda: not marked.running)


@pytest.mark.usefixtures("without_bubblewrap")
async def test_without_bubblewrap_a_trial_says_so(sandbox: TrialSandbox, port: int) -> None:
    assert sandbox.isolation == "process_group"
    assert await tries(sandbox, connect(port))


def test_a_bubblewrap_that_is_not_there_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert best_isolation([], run_folder=tmp_path) == Isolation(why_not="bubblewrap is not installed")


def test_a_process_tries_bubblewrap_again_only_for_other_folders_and_after_a_failure(tmp_path, monkeypatch) -> None:
    tried, broken = tmp_path / "tried", tmp_path / "broken"
    (tmp_path / "bwrap").write_text(f"#!/bin/sh\necho >> {tried}\n! test -e {broken}\n", encoding="utf-8")
    (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")

    def found(*hidden: str) -> str:
        run_folder = Path(tempfile.mkdtemp(dir=tmp_path))
        return best_isolation([tmp_path / name for name in hidden], run_folder=run_folder).name

    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    broken.touch()
    assert [found(), found()] == ["process_group"] * 2
    tried.unlink()
    broken.unlink()
    assert [found(), found(), found("a"), found("a"), found("a", "b")] == ["bubblewrap"] * 5
    assert len(tried.read_text(encoding="utf-8")) == 3


def test_a_bubblewrap_that_is_slow_is_tried_again_with_more_time(tmp_path, monkeypatch, workbench_of) -> None:
    tried = tmp_path / "tried"
    text = f"#!/bin/sh\ntest -e {tried}-{{0}} || {{{{ touch {tried}-{{0}}; exec sleep 600; }}}}\n"
    (tmp_path / "bwrap").write_text(text.format("first"), encoding="utf-8")
    (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr("passgate.tasks.sandboxes.isolation.PROBE_SECONDS", (0.5, 300.0))
    assert best_isolation([], run_folder=tmp_path).name == "bubblewrap"
    (tmp_path / "bwrap").write_text("#!/bin/sh\nexec sleep 600\n", encoding="utf-8")
    monkeypatch.setattr("passgate.tasks.sandboxes.isolation.PROBE_SECONDS", (0.1, 0.2))
    (tmp_path / "other").mkdir()
    refused = (
        r"demands isolation, and bubblewrap does not work here \(it took longer than 0.2 s\): nothing was run; install"
    )
    with pytest.raises(UsageError, match=refused):
        workbench_of(hidden=[tmp_path / "other"], is_isolation_required=True)


def test_who_may_see_a_folder_sees_it_inside_of_one_that_stays_hidden(tmp_path: Path) -> None:
    """As the graders of a merge base, whose suites lie in the folder of the run."""
    suites, state = tmp_path / "state/base/suites", tmp_path / "state"
    other, git = tmp_path / "suites", tmp_path / ".git"
    isolation = Isolation("bwrap", hidden=(suites, state, other, git)).reveal([suites, git, tmp_path])
    assert isolation.hidden == (state, other)
    assert isolation.shown == (suites,)
    launch = isolation.wrap(["true"], {}, working_folder=tmp_path, network=False, bridge=None)
    options = launch.command
    last = [max(index for index, word in enumerate(options) if word == str(folder)) for folder in (state, suites)]
    assert last[0] < last[1], "what is hidden later is not seen"


async def test_no_core_is_dumped_and_files_are_bounded(isolation: str, sandbox: TrialSandbox) -> None:
    assert await sh(sandbox, "ulimit -c; ulimit -f") == "0\n2097152\n"
    assert not await tries(sandbox, "truncate -s 1200M large")
