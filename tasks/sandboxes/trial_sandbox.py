"""One trial's own place, and the commands that are run in it."""

import asyncio
import os
import re
import secrets
import shutil
import stat
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Generic, Self, TypeVar

from passgate.tasks.errors import MeasurementError
from passgate.tasks.files.environment import search_path
from passgate.tasks.model.quotes import quote_end, raw
from passgate.tasks.model.sandbox import Bridge, ProcessResult
from passgate.tasks.model.transcript import FileChanges
from passgate.tasks.sandboxes.changed_files import NO_FILES, WorkspaceFiles, changes_since
from passgate.tasks.sandboxes.isolation import STARTED, Isolation, Launch
from passgate.tasks.sandboxes.processes import run_process

_Result = TypeVar("_Result")
TRIAL_FOLDERS = ("workspace", "scratch", "home", "tmp")  # all that the agent may write to
INPUTS_FOLDER = "inputs"  # what commands of a trial may only read
_GRADER_FOLDERS = ("scratch", "home", "tmp")
_GRADER_PYTHON = Path(__file__).resolve().with_name("grader_python")
# What a day and an order of words depend on: where it differs, a grader refuses what the agent does well.
_TIME_AND_PLACE = re.compile(r"TZ|TZDIR|LANGUAGE|LC_[A-Z]+")
_GIT_SETTINGS = Path(__file__).resolve().with_name("gitconfig")  # In place of /etc/gitconfig
_MOST_STARTS = 20  # on a machine whose /tmp never rests several may fail in a row


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What all sandboxes of a run share."""

    isolation: Isolation
    of_authors: Isolation  # for commands of the suites' authors
    processes: AbstractAsyncContextManager[None]  # the limit on local processes
    bridge: Bridge | None = None


class Once(Generic[_Result]):
    """Results that are prepared once for each key."""

    def __init__(self) -> None:
        self._futures: dict[str, asyncio.Future[_Result]] = {}

    async def get(self, key: str, prepare: Callable[[], Awaitable[_Result]]) -> _Result:
        """Return what was prepared for a key. If that failed, every caller gets its error."""
        if key not in self._futures:
            self._futures[key] = asyncio.ensure_future(prepare())
        # A trial that is cancelled while it waits must not stop what others wait for.
        return await asyncio.shield(self._futures[key])

    async def cancel_unfinished(self) -> list[_Result | BaseException]:
        """Stop what is still being prepared. Return the results and errors of all."""
        for future in self._futures.values():
            future.cancel()
        # The trials that waited, if any did, have received the errors.
        return await asyncio.gather(*self._futures.values(), return_exceptions=True)


class TrialFolder:
    """The folder of one trial, made once somebody asks for it: a chat without tools needs none, and making, restoring
    and removing one costs as much as the rest of such a trial.
    """

    def __init__(self, path: Path, names: Sequence[str] = TRIAL_FOLDERS) -> None:
        self.path = path
        self._names = names
        self.is_made = False

    def make(self) -> Path:
        if not self.is_made:
            for name in self._names:
                (self.path / name).mkdir(parents=True, exist_ok=True)  # graders ask from several threads at once
            self.is_made = True
        return self.path

    def folders(self) -> list[Path]:
        return [self.make() / name for name in self._names]


@dataclass(frozen=True, kw_only=True)
class TrialSandbox:
    """One trial's own place."""

    network: bool
    # Where the files of the task's messages lie, by the names that they have there. No command can change them.
    files: Mapping[str, Path] = field(default_factory=dict)
    # Environment variables that the task wants for the agent.
    variables: Mapping[str, str] = field(default_factory=dict)
    # The folder that the workspace is a copy of, and what was in the workspace before the agent began.
    template: Path | None = None
    before: WorkspaceFiles = NO_FILES
    _folder: TrialFolder
    _around: Surroundings = field(repr=False)
    _is_agents: bool = False
    _grader_folder: TrialFolder | None = None

    @property
    def workspace(self) -> Path:
        return self._folder.make() / "workspace"

    @property
    def scratch(self) -> Path:
        return (self._grader_folder or self._folder).make() / "scratch"

    @property
    def is_used(self) -> bool:
        """Whether anybody has looked into it so far."""
        return self._folder.is_made

    @property
    def isolation(self) -> str:
        return self._around.isolation.name

    @property
    def for_the_agent(self) -> Self:
        """The same place with a way to the models, and beside the limit on local processes: agents mostly wait."""
        return replace(self, _around=replace(self._around, processes=nullcontext()), _is_agents=True)

    @property
    def for_a_grader(self) -> Self:
        """See `passgate.tasks.model.sandbox.Sandbox.for_a_grader`."""
        # Nobody can guess the name, so nothing of the agent's lies there or in a folder above.
        folder = self._folder.path / f"grader-{secrets.token_hex(16)}"
        return replace(self, _grader_folder=TrialFolder(folder, _GRADER_FOLDERS))

    async def run(
        self,
        command: Sequence[str],
        *,
        seconds: float,
        stdin: bytes = b"",
        environment: Mapping[str, str] | None = None,
        network: bool = False,
        folder: Path | None = None,
    ) -> ProcessResult:
        """Run a command as `passgate.tasks.model.sandbox.Sandbox.run` says."""
        place = self.workspace if folder is None else _existing(folder, command)
        given = {**(self.variables if self._is_agents else {}), **(environment or {})}
        if self._grader_folder:
            given = {"PYTHONSAFEPATH": "1", "PYTHONPATH": str(_GRADER_PYTHON), **given}
        bridge = self._around.bridge if self._is_agents else None
        launch = self._launch(self._around.isolation, command, place, given, bridge, network=network)
        return await self._run(launch, seconds, stdin)

    async def run_for_authors(
        self,
        command: Sequence[str],
        *,
        folder: Path,
        seconds: float,
        stdin: bytes = b"",
        environment: Mapping[str, str] | None = None,
        pipes: tuple[int, int] | None = None,
    ) -> ProcessResult:
        """Run a command as `passgate.tasks.model.sandbox.Sandbox.run_for_authors` says."""
        place = _existing(folder, command)
        launch = self._launch(self._around.of_authors, command, place, environment or {}, None, network=True)
        return await self._run(launch, seconds, stdin, pipes)

    def _launch(
        self,
        isolation: Isolation,
        command: Sequence[str],
        place: Path,
        variables: Mapping[str, str],
        bridge: Bridge | None,
        *,
        network: bool,
    ) -> Launch:
        trial, own = self._folder, self._grader_folder or self._folder
        writable, readable = trial.folders(), [trial.path / INPUTS_FOLDER]
        environment = {**minimal_environment(own.make()), **variables}
        if own is not trial:
            environment = {"PYTHONNOUSERSITE": "1", "PASSGATE_AGENT_HOME": str(trial.path / "home"), **environment}
            writable, readable = [*writable, *own.folders()], [*readable, _GRADER_PYTHON]
        return isolation.wrap(
            command,
            environment,
            working_folder=place,
            writable=writable,
            readable=readable,
            network=network,
            bridge=bridge,
        )

    async def _run(
        self, launch: Launch, seconds: float, stdin: bytes, pipes: tuple[int, int] | None = None
    ) -> ProcessResult:
        # An isolation ends all processes, but some go on for a few milliseconds: an agent's could still write to what
        # is graded, so these are looked for by a mark as well.
        ends_by_itself = self._around.isolation.bubblewrap and not self._is_agents
        mark = None if ends_by_itself else secrets.token_hex(16)
        run = partial(run_process, **launch._asdict(), mark=mark, seconds=seconds, pipes=pipes)
        async with self._around.processes:
            # Bubblewrap fails if a file of /tmp goes away while it mounts that one. Without the mark nothing was run.
            for _ in range(_MOST_STARTS):
                result = await run(stdin=stdin)
                # Not always first: a dynamic linker or a shell that misses something reports it before.
                if STARTED in result.stderr or result.timed_out:
                    break
            else:
                what = f"the sandbox could not be made {_MOST_STARTS} times: "
                raise MeasurementError(raw(what, quote_end(result.stderr, 500)))
        if self._is_agents:
            await asyncio.to_thread(self.restore)
        return result.model_copy(update={"stderr": result.stderr.replace(STARTED, "", 1)})

    def agent_changes(self) -> FileChanges:
        """Restore the folders, and list the files of the workspace that changed since `before`."""
        self.restore()
        return changes_since(self.before, self.workspace, self.template)

    def restore(self) -> None:
        """Make the trial's folders usable again, whatever the agent did to them: that is for the graders to judge."""
        for folder in (self._folder.path / name for name in TRIAL_FOLDERS):
            with suppress(OSError):
                if not stat.S_ISDIR(folder.lstat().st_mode):
                    folder.unlink()
            with suppress(OSError):
                folder.mkdir(parents=True, exist_ok=True)
                folder.chmod(folder.stat().st_mode | stat.S_IRWXU)


def _existing(folder: Path, command: Sequence[str]) -> Path:
    if not folder.is_dir():
        raise MeasurementError(f"cannot start {command[0]}: there is no folder {folder}")
    return folder.resolve()


def make_sandbox(folder: Path, template: Path | None, around: Surroundings, *, network: bool) -> TrialSandbox:
    """Make a sandbox in a new folder; its workspace is a copy of the template."""
    sandbox = TrialSandbox(network=network, template=template, _folder=TrialFolder(folder), _around=around)
    if template is not None:
        shutil.copytree(template, sandbox.workspace, symlinks=True, dirs_exist_ok=True)
    return sandbox


async def run_all(sandbox: TrialSandbox, commands: Sequence[str], seconds: float, what: str) -> None:
    """Run commands one after the other. Raise `MeasurementError` for the first that fails or takes too long."""
    for command in commands:
        result = await sandbox.run(["sh", "-c", command], seconds=seconds, network=sandbox.network)
        refuse_failure(result, seconds, what, command)


def refuse_failure(result: ProcessResult, seconds: float, what: str, command: str) -> None:
    """Raise `MeasurementError` unless the command succeeded in time."""
    if result.timed_out:
        raise MeasurementError(f"{what} took longer than {seconds:g} s: {command}")
    if result.output_limit_hit:
        raise MeasurementError(f"{what} printed too much: {command}")
    if result.exit_code != 0:
        raise MeasurementError(raw(f"{what} exited {result.exit_code}: {command}: ", quote_end(result.stderr, 500)))


def minimal_environment(folder: Path) -> dict[str, str]:
    """Return what every command gets, of agents, set-ups and graders alike: no secret of ours, the programs of the
    user's shell, the job's time zone and locale.
    """
    return {
        **{name: value for name, value in os.environ.items() if _TIME_AND_PLACE.fullmatch(name)},
        "PATH": search_path(),
        "HOME": str(folder / "home"),
        "TMPDIR": str(folder / "tmp"),
        "LANG": "C.UTF-8",
        "PYTHONDONTWRITEBYTECODE": "1",
        "GIT_CONFIG_SYSTEM": str(_GIT_SETTINGS),
    }
