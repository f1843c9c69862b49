"""Commands, and what they say."""

import signal
import subprocess
import sys
from dataclasses import dataclass, field

import pytest

from passgate.flows.cli import main
from tests.project import Project


@dataclass
class Here(Project):
    """A project whose commands run in this process, which is in its folder."""

    capture: pytest.CaptureFixture[str] = field(kw_only=True)

    def passgate(self, *arguments: str, timeout: float = 0, **extra: str) -> subprocess.CompletedProcess[str]:
        self.wait_for_next_second(arguments)
        with pytest.MonkeyPatch.context() as patch:
            for name, value in {"COLUMNS": "120", **self.environment, **extra}.items():
                patch.setenv(name, value)
            # A run has the process ignore interrupts at its end, and whatever tests start next would inherit that.
            handlers = {kind: signal.getsignal(kind) for kind in (signal.SIGINT, signal.SIGTERM)}
            try:
                code = main(arguments)
            finally:
                for kind, handler in handlers.items():
                    signal.signal(kind, handler)
        said = self.capture.readouterr()
        return subprocess.CompletedProcess(arguments, code, said.out, said.err)


def exits(project: Project, code: int, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """How a command ends, with the exit code that it must have."""
    ended = project.passgate(*arguments, **environment)
    assert ended.returncode == code, ended.stdout + ended.stderr
    return ended


def told(project: Project, *arguments: str, **environment: str) -> str:
    """What a command prints that ends well."""
    return exits(project, 0, *arguments, **environment).stdout


def refused(project: Project, *arguments: str, **environment: str) -> str:
    """What a command says of bad input. It prints no result."""
    ended = exits(project, 2, *arguments, **environment)
    assert ended.stdout == ""
    assert "Traceback" not in ended.stderr
    return ended.stderr


def imported_by(project: Project, *arguments: str) -> set[str]:
    """The modules that a command has imported by its end."""
    code = (
        "import sys; from passgate.flows.cli import main; main(sys.argv[1:]); "
        "sys.stderr.write('MODULES ' + ' '.join(sys.modules))"
    )
    ended = project.run([sys.executable, "-c", code, *arguments])
    return set(ended.stderr.rpartition("MODULES ")[2].split())
