"""Commands of the suites' authors, and what the task wants for its agent."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.builders import a_task
from tests.unit.conftest import Marked
from tests.unit.sandboxes.conftest import sh

from passgate.tasks.errors import MeasurementError
from passgate.tasks.model.sandbox import ProcessResult
from passgate.tasks.sandboxes.trial_sandbox import TrialSandbox

NEEDS_ENVIRONMENT = a_task(workspace={"environment": {"MODE": "careful", "LANG": "C"}})


async def ran(sandbox: TrialSandbox, command: str, folder: Path, **changes: object) -> ProcessResult:
    """What comes of a command of the authors."""
    return await sandbox.run_for_authors(["sh", "-c", command], folder=folder, **{"seconds": 240, **changes})


async def tries(sandbox: TrialSandbox, command: str, folder: Path) -> bool:
    """Whether a command of the authors succeeds."""
    return (await ran(sandbox, command, folder)).exit_code == 0


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


async def test_authors_have_the_suites_the_repository_and_the_network(isolation, repository, sandbox, port) -> None:
    suites = repository / "suites"
    seen = await ran(sandbox, "pwd; cat answer; cat ../../templates/one", suites / "golden")
    assert seen.stdout == f"{suites}/golden\nthe answer\nbeside\n"
    assert await tries(sandbox, "git rev-parse --show-toplevel", suites)
    assert await tries(sandbox, f"python -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}))'", suites)


async def test_authors_get_input_and_write_to_the_trials_folders(isolation, sandbox, suites: Path, monkeypatch) -> None:
    monkeypatch.setenv("MY_SECRET", "hunter2")
    command = f"cat; env; echo made > {sandbox.workspace}/made; touch $HOME/a $TMPDIR/b"
    done = await ran(sandbox, command, suites, stdin=b"told\n", environment={"GIVEN": "yes"})
    lines = done.stdout.splitlines()
    assert (done.exit_code, lines[0]) == (0, "told")
    assert {"GIVEN=yes", f"HOME={sandbox.workspace.parent}/home"} <= set(lines)
    assert "hunter2" not in done.stdout
    assert (await sandbox.run(["cat", "made"], seconds=240)).stdout == "made\n"


async def test_nothing_of_an_authors_command_is_left(isolation, sandbox, suites: Path, marked: Marked) -> None:
    command = f"setsid sleep 600 & sleep 600; : {marked.word}"
    assert (await ran(sandbox, command, suites, seconds=0.2)).timed_out
    await marked.are_gone()


@pytest.mark.usefixtures("needs_bubblewrap")
class TestBubblewrap:
    async def test_authors_write_nowhere_else(self, repository: Path, sandbox: TrialSandbox) -> None:
        suites = repository / "suites"
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

    async def test_authors_see_a_repository_in_a_crowded_tmp(self, sandbox_of, repository: Path, monkeypatch) -> None:
        if not repository.is_relative_to("/tmp"):
            pytest.skip("the tests' folders do not lie in /tmp")
        monkeypatch.setattr("passgate.tasks.sandboxes.isolation._MAX_KEPT", 0)
        async with sandbox_of() as sandbox:
            assert await tries(sandbox, "cat golden/answer ../templates/one", repository / "suites")


async def test_the_variables_of_the_workspace_are_the_agents_alone(isolation: str, sandbox_of, suites: Path) -> None:
    show = ["sh", "-c", 'echo "$MODE $LANG"']
    async with sandbox_of(NEEDS_ENVIRONMENT) as sandbox:
        agents = sandbox.for_the_agent
        assert (await agents.run(show, seconds=240)).stdout == "careful C\n"
        given = await agents.run(show, seconds=240, environment={"MODE": "mine"})
        assert given.stdout == "mine C\n", "what a command is given for itself goes first"
        assert (await sandbox.run(show, seconds=240)).stdout == " C.UTF-8\n"
        assert (await sandbox.run_for_authors(show, folder=suites, seconds=240)).stdout == " C.UTF-8\n"


async def test_all_commands_of_a_trial_have_the_same_time_zone_locale_and_path(
    isolation: str, sandbox: TrialSandbox, suites: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a grader refuses for hours of each day what the agent did well."""
    for name, value in {"TZ": "Pacific/Kiritimati", "LC_ALL": "C", "LC_TIME": "C", "LANGUAGE": "de"}.items():
        monkeypatch.setenv(name, value)
    show = ["sh", "-c", 'date +%z; echo "$LANG $LC_ALL $LC_TIME $LANGUAGE $PATH"']
    (of_setup, of_agent, of_grader) = [
        (await place.run(show, seconds=240)).stdout for place in (sandbox, sandbox.for_the_agent, sandbox.for_a_grader)
    ]
    assert of_setup == of_agent == of_grader
    assert of_setup.startswith("+1400\nC.UTF-8 C C de /")
    assert (await sandbox.run_for_authors(show, folder=suites, seconds=240)).stdout == of_setup


async def test_graders_have_folders_of_their_own(isolation: str, sandbox: TrialSandbox, suites: Path) -> None:
    await sh(sandbox.for_the_agent, "touch $HOME/mine $TMPDIR/mine; echo x > result; touch ../scratch/mine")
    first, second = sandbox.for_a_grader, sandbox.for_a_grader
    look = 'ls -A "$HOME" "$TMPDIR" | grep mine; test -e "$PASSGATE_AGENT_HOME/mine" && cat result; touch "$HOME/mine"'
    for grader in (first, second):
        assert await sh(grader, look) == "x\n"
        assert list(grader.scratch.iterdir()) == []
        seen = await grader.run_for_authors(["sh", "-c", "ls -A $HOME"], folder=suites, seconds=240)
        assert seen.stdout == "mine\n"
    assert await sh(sandbox.for_the_agent, "ls $HOME") == "mine\n"


# Where each way to start Python finds its modules: the library's own, the one beside a script, the work itself.
WHERE = "import json, pathlib, work; print(pathlib.Path(json.__file__).parent.name, work.NAME"


@pytest.mark.parametrize(
    ("start", "found"),
    [
        (f'python -c "{WHERE})"', "json agent"),
        (f'echo "{WHERE})" | python', "json agent"),
        ("python -m where", "json agent"),
        ("python tools/where.py", "json tools"),
        ('mkdir -p "$TMPDIR/a" && cp tools/* "$TMPDIR/a" && python "$TMPDIR/a/where.py"', "json tools"),
        ("python -I -c 'import json, sys; print(\"\" in sys.path)'", "False"),
    ],
)
async def test_what_an_agent_leaves_shadows_no_module_of_a_graders_python(
    sandbox: TrialSandbox, start: str, found: str
) -> None:
    (sandbox.workspace / "tools").mkdir()
    for name in ("json", "usercustomize", "sitecustomize"):
        (sandbox.workspace / f"{name}.py").write_text("import os; os._exit(9)\n")
    for folder, name in ((".", "agent"), ("tools", "tools")):
        (sandbox.workspace / folder / "work.py").write_text(f"NAME = {name!r}\n")
        (sandbox.workspace / folder / "where.py").write_text(f"{WHERE})\n")
    assert await sh(sandbox.for_a_grader, start) == f"{found}\n"


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


@pytest.fixture
def run_once(needs_bubblewrap: None, sandbox_of, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Run a command under a bubblewrap that fails so many times. What it fails at is nobody's failed command."""

    async def _run_once(failures: int) -> ProcessResult:
        fake = tmp_path / "bin" / "bwrap"
        fake.parent.mkdir()
        real = shutil.which("bwrap")
        fake.write_text(FAILS_AT_FIRST.format(bwrap=real, tries=tmp_path / "tries", failures=failures))
        fake.chmod(0o755)
        monkeypatch.setenv("PATH", f"{fake.parent}:{os.environ['PATH']}")
        async with sandbox_of() as sandbox:
            assert sandbox.isolation == "bubblewrap"
            command = 'echo once >> ran; cat ran; echo "bwrap: mine" >&2; exit 3 # count-me'
            return await sandbox.run(["sh", "-c", command], seconds=240)

    return _run_once


async def test_a_command_whose_isolation_fails_is_started_again_and_runs_once(run_once) -> None:
    result = await run_once(failures=3)
    assert (result.exit_code, result.stdout, result.stderr) == (3, "once\n", "bwrap: mine\n")


async def test_where_the_isolation_always_fails_nothing_was_measured(run_once) -> None:
    with pytest.raises(MeasurementError, match="the sandbox could not be made 20 times: bwrap: Can't bind mount"):
        await run_once(failures=99)


async def test_what_is_complained_of_before_the_start_is_no_failed_start(isolation: str, sandbox: TrialSandbox) -> None:
    """A linker that misses a library says so before anything is run, and the command runs once all the same."""
    command = ["sh", "-c", "echo once >> ran; cat ran; exit 3"]
    result = await sandbox.run(command, seconds=240, environment={"LD_PRELOAD": "/missing.so"})
    assert (result.exit_code, result.stdout) == (3, "once\n")
    assert result.stderr.startswith("ERROR: ld.so")
    assert "\0" not in result.stderr
