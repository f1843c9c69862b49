"""What agents and graders know of the place that a trial runs in."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol, Self

from passgate.tasks.model.base import Frozen

SANDBOXES = "_shared/sandboxes"  # The folder of the named sandboxes in a suites folder


class SandboxFile(Frozen):
    """sandbox.yaml: how a named environment is brought about. Its files lie beside it in `files/`."""

    description: str = ""
    setup: tuple[str, ...] = ()
    """Commands for `sh -c`, run once per run in the copy that trials are copied from."""
    reset: tuple[str, ...] = ()
    """Commands for `sh -c`, run in every trial's own copy before the agent."""
    network: bool = False


class Bridge(Frozen):
    """An address on the loopback that an agent can reach even where it has no network."""

    port: int
    """Of 127.0.0.1, inside and outside of the sandbox."""
    socket: Path
    """The Unix socket that the same server listens on."""


class ProcessResult(Frozen):
    """How a command ended and the beginning of what it printed."""

    exit_code: int
    stdout: str
    stderr: str
    timed_out: bool = False
    output_limit_hit: bool = False
    wall_time_seconds: float


class Sandbox(Protocol):
    """One trial's own place. Only `workspace` and `scratch` are writable for commands where isolation works."""

    @property
    def workspace(self) -> Path:
        """The agent's working folder: a fresh copy of the task's environment."""

    @property
    def scratch(self) -> Path:
        """An empty folder outside the workspace, for what the agent must not find in it."""

    @property
    def isolation(self) -> str:
        """`bubblewrap` or `process_group`."""

    @property
    def for_a_grader(self) -> Self:
        """The same place with a home, a scratch and a temporary folder that the agent has not had, and a Python that
        takes nothing of the agent's for a part of the library.
        """

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
        """Run a command in the workspace, or in another folder; when it ends or its time is up, no process of it is
        left. `environment` is all that it gets beside a minimal set (PATH, HOME, LANG, TMPDIR). Raises
        `MeasurementError` when the command cannot be started.
        """

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
        """Run a command of the suites' authors, a grader's or a hook's, in a folder of theirs.

        Unlike an agent's command it sees the suites and their repository, which it cannot write to, and has the
        network; otherwise as `run`. `pipes` are file descriptors that become its standard input and output.
        Raises `MeasurementError` when the command cannot be started.
        """
