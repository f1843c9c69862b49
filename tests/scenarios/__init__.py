"""Whole runs that many tests read, each made once in a run of the tests, by whichever of its processes comes first."""

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.project import Project
from tests.sharing import made_once

Make = Callable[["Scenario"], object]
"""Writes the files of a new repository and runs its commands by `Scenario.keep`."""


class Scenario(Project):
    """A repository as its commands have left it. It is for all tests to read: who changes it takes a copy."""

    def keep(self, name: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a command of passgate, and keep how it ended for `ended(name)`."""
        ended = self.passgate(*arguments, **environment)
        text = json.dumps([ended.args, ended.returncode, ended.stdout, ended.stderr])
        (self.path.parent / f"{name}.json").write_text(text, encoding="utf-8")
        return ended

    def ended(self, name: str = "run") -> subprocess.CompletedProcess[str]:
        """How the command that was kept under this name has ended."""
        words = json.loads((self.path.parent / f"{name}.json").read_text(encoding="utf-8"))
        return subprocess.CompletedProcess(*words)

    def copy(self, folder: Path) -> Project:
        """The same in another folder, for a test that goes on from here."""
        shutil.copytree(self.path, folder, symlinks=True)
        return Project(folder, dict(self.environment))


Scenarios = Callable[[Make], Scenario]
"""Gives the scenario that a function makes, as the fixture `scenario` does."""


def made(folder: Path, make: Make) -> Scenario:
    """The scenario that a function makes, in a folder of its own under `folder`.

    It has a repository on the branch main with one commit, and `PASSGATE_ENGINE=none`.
    """

    def begin(place: Path) -> None:
        scenario = _at(place)
        scenario.path.mkdir()
        scenario.git("init", "-q", "-b", "main")
        scenario.git("commit", "-q", "--allow-empty", "-m", "Begin")
        make(scenario)

    return _at(made_once(folder / make.__name__, begin))


def _at(place: Path) -> Scenario:
    return Scenario(place / "repository", {"PASSGATE_ENGINE": "none"})
