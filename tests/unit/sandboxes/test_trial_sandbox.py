"""Commands of the suites' authors, and what the task wants for its agent."""

import os
import secrets
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.builders import a_task
from tests.unit.sandboxes.conftest import marked, until

from passgate.tasks.errors import MeasurementError
from passgate.tasks.model.sandbox import ProcessResult
from passgate.tasks.sandboxes.trial_sandbox import TrialSandbox

CONNECT = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1])), timeout=5).close()"
NEEDS_ENVIRONMENT = a_task(workspace={"environment": {"MODE": "careful", "LANG": "C"}})


async def said(sandbox: TrialSandbox, command: str, folder: Path, **changes: object) -> str:
    """What a command of the authors prints."""
    result = await sandbox.run_for_authors(["sh", "-c", command], folder=folder, **{"seconds": 20, **changes})
    assert result.exit_code == 0, result.stderr
    return result.stdout


async def tries(sandbox: TrialSandbox, command: str, folder: Path) -> bool:
    """Whether a command of the authors succeeds."""
    result = await sandbox.run_for_authors(["sh", "-c", command], folder=folder, seconds=20)
    return result.exit_code == 0


@pytest.fixture
def repository(suites: Path) -> Path:
    """The suites in a repository, with something beside them."""
    folder = suites.parent
    subprocess.run(["git", "init", "--quiet", str(folder)], check=True)
    (folder / "templates").mkdir()
    (folder / "templates/one").write_text("beside\n")
    (suites / "golden").mkdir()
    (suites / "golden/answer").write_text("the answer\n")
    return folder


async def test_authors_see_their_suites_and_the_repository(isolation: str, workbench_of, repository: Path) -> None:
    suites = repository / "suites"
    with workbench_of() as workbench:
        async with workbench.sandbox(a_task()) as sandbox:
            assert await said(sandbox, "pwd; cat answer; cat ../../templates/one", suites / "golden") == (
                f"{suites}/golden\nthe answer\nbeside\n"
            )
            assert await tries(sandbox, "git rev-parse --show-toplevel", suites)


async def test_authors_get_input_and_variables(isolation: str, workbench_of, suites: Path, monkeypatch) -> None:
    monkeypatch.setenv("MY_SECRET", "hunter2")
    with workbench_of() as workbench:
        async with workbench.sandbox(a_task()) as sandbox:
            printed = await said(sandbox, "cat; env", suites, stdin=b"told\n", environment={"GIVEN": "yes"})
    lines = printed.splitlines()
    assert lines[0] == "told"
    assert "GIVEN=yes" in lines
    assert f"HOME={sandbox.workspace.parent}/home" in lines
    assert "hunter2" not in printed


async def test_authors_write_to_the_trials_folders(isolation: str, workbench_of, suites: Path) -> None:
    with workbench_of() as workbench:
        async with workbench.sandbox(a_task()) as sandbox:
            await said(sandbox, f"echo made > {sandbox.workspace}/made; touch $HOME/a $TMPDIR/b", suites)
            assert (sandbox.workspace / "made").read_text() == "made\n"
            assert (await sandbox.run(["cat", "made"], seconds=20)).stdout == "made\n"


async def test_authors_have_the_network(isolation: str, workbench_of, suites: Path, port: int) -> None:
    with workbench_of() as workbench:
        async with workbench.sandbox(a_task()) as sandbox:
            command = [sys.executable, "-c", CONNECT, str(port)]
            assert (await sandbox.run_for_authors(command, folder=suites, seconds=20)).exit_code == 0


async def test_nothing_of_an_authors_command_is_left(isolation: str, workbench_of, suites: Path) -> None:
    word = f"passgate-test-{secrets.token_hex(8)}"
    command = ["sh", "-c", "setsid sleep 120 & sleep 120", word]
    with workbench_of() as workbench:
        async with workbench.sandbox(a_task()) as sandbox:
            result = await sandbox.run_for_authors(command, folder=suites, seconds=0.5)
    assert result.timed_out
    assert await until(lambda: marked(word) == [])


async def test_a_folder_that_is_not_there_is_an_error(isolation: str, workbench_of, suites: Path) -> None:
    with workbench_of() as workbench:
        async with workbench.sandbox(a_task()) as sandbox:
            with pytest.raises(MeasurementError, match=r"cannot start true: there is no folder .*/gone"):
                await sandbox.run_for_authors(["true"], folder=suites / "gone", seconds=20)


@pytest.mark.usefixtures("needs_bubblewrap")
class TestBubblewrap:
    async def test_authors_write_nowhere_else(self, workbench_of, repository: Path) -> None:
        suites = repository / "suites"
        with workbench_of() as workbench:
            async with workbench.sandbox(a_task()) as sandbox:
                for place in (suites, suites / "golden/answer", repository, repository / ".git", Path("/var")):
                    assert not await tries(sandbox, f"touch {place}/new || echo x >> {place}", suites)
        assert (suites / "golden/answer").read_text() == "the answer\n"

    async def test_the_history_and_other_trials_stay_hidden_from_authors(self, workbench_of, repository: Path) -> None:
        suites, state = repository / "suites", repository / ".passgate"
        state.mkdir()
        (state / "history").write_text("what was")
        with workbench_of(hidden=[state]) as workbench:
            async with workbench.sandbox(a_task()) as first, workbench.sandbox(a_task()) as second:
                (first.workspace / "answer").write_text("yes")
                assert not await tries(second, f"cat {state}/history", suites)
                assert not await tries(second, f"cat {first.workspace}/answer", suites)
                assert await tries(first, f"cat {first.workspace}/answer", suites)
        assert (state / "history").exists()

    async def test_agents_still_see_nothing_of_the_suites(self, workbench_of, repository: Path) -> None:
        with workbench_of() as workbench:
            async with workbench.sandbox(a_task()) as sandbox:
                for agents in (sandbox, sandbox.for_the_agent):
                    for hidden in ("suites/golden/answer", ".git/HEAD"):
                        assert (await agents.run(["cat", f"{repository}/{hidden}"], seconds=20)).exit_code != 0

    async def test_authors_see_a_repository_that_a_crowded_tmp_would_not_show(
        self, workbench_of, repository: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        if not repository.is_relative_to("/tmp"):
            pytest.skip("the tests' folders do not lie in /tmp")
        monkeypatch.setattr("passgate.tasks.sandboxes.isolation._MAX_KEPT", 0)
        with workbench_of() as workbench:
            async with workbench.sandbox(a_task()) as sandbox:
                assert await tries(sandbox, "cat golden/answer ../templates/one", repository / "suites")


async def test_the_variables_of_the_workspace_are_the_agents_alone(isolation: str, workbench_of, suites: Path) -> None:
    show = ["sh", "-c", 'echo "$MODE $LANG"']
    with workbench_of() as workbench:
        async with workbench.sandbox(NEEDS_ENVIRONMENT) as sandbox:
            agents = sandbox.for_the_agent
            assert (await agents.run(show, seconds=20)).stdout == "careful C\n"
            given = await agents.run(show, seconds=20, environment={"MODE": "mine"})
            assert given.stdout == "mine C\n", "what a command is given for itself goes first"
            assert (await sandbox.run(show, seconds=20)).stdout == " C.UTF-8\n"
            assert (await sandbox.run_for_authors(show, folder=suites, seconds=20)).stdout == " C.UTF-8\n"


FAILS_AT_FIRST = """#!/bin/sh
# Bubblewrap on a machine where a file of /tmp goes away while it is mounted: it complains, and runs nothing.
case "$*" in *count-me*) ;; *) exec {bwrap} "$@" ;; esac
echo x >> {tries}
if [ $(wc -l < {tries}) -le {failures} ]; then
  echo "bwrap: Can't bind mount /oldroot/tmp/x on /newroot/tmp/x: No such file or directory" >&2
  exit 1
fi
exec {bwrap} "$@"
"""


@pytest.mark.usefixtures("needs_bubblewrap")
class TestAnIsolationThatFails:
    """What bubblewrap itself fails at is nobody's failed command."""

    async def _ran(self, workbench_of, tmp_path: Path, monkeypatch, failures: int) -> ProcessResult:
        real, tries = shutil.which("bwrap"), tmp_path / "tries"
        fake = tmp_path / "bin" / "bwrap"
        fake.parent.mkdir()
        fake.write_text(FAILS_AT_FIRST.format(bwrap=real, tries=tries, failures=failures))
        fake.chmod(0o755)
        monkeypatch.setenv("PATH", f"{fake.parent}:{os.environ['PATH']}")
        with workbench_of() as workbench:
            async with workbench.sandbox(a_task()) as sandbox:
                assert sandbox.isolation == "bubblewrap"
                command = 'echo once >> ran; cat ran; echo "bwrap: mine" >&2; exit 3 # count-me'
                return await sandbox.run(["sh", "-c", command], seconds=20)

    async def test_the_command_is_started_again_and_runs_once(self, workbench_of, tmp_path: Path, monkeypatch) -> None:
        result = await self._ran(workbench_of, tmp_path, monkeypatch, failures=3)
        assert (result.exit_code, result.stdout, result.stderr) == (3, "once\n", "bwrap: mine\n")

    async def test_where_it_always_fails_nothing_was_measured(self, workbench_of, tmp_path: Path, monkeypatch) -> None:
        with pytest.raises(MeasurementError, match="the sandbox could not be made 20 times: bwrap: Can't bind mount"):
            await self._ran(workbench_of, tmp_path, monkeypatch, failures=99)


async def test_what_is_complained_of_before_the_start_is_no_failed_start(
    isolation: str, workbench_of, suites: Path
) -> None:
    """A linker that misses a library says so before anything is run, and the command runs once all the same."""
    async with workbench_of() as workbench, workbench.sandbox(a_task()) as sandbox:
        command = ["sh", "-c", "echo once >> ran; cat ran; exit 3"]
        result = await sandbox.run(command, seconds=20, environment={"LD_PRELOAD": "/missing.so"})
    assert (result.exit_code, result.stdout) == (3, "once\n")
    assert result.stderr.startswith("ERROR: ld.so")
    assert "\0" not in result.stderr


def test_this_machine_has_git() -> None:
    """Some tests here would pass without it."""
    assert subprocess.run(["git", "--version"], capture_output=True, check=False, env=os.environ).returncode == 0
