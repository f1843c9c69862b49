"""Where in the repository the files are that a gate judges by."""

import os
import posixpath
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Final

from passgate.tasks.history.edits import What

_GRADERS: Final = "tasks and graders"


@dataclass(frozen=True)
class JudgingPlaces:
    """The suites folder and the gates file, and what else judges, all relative to the repository's top folder."""

    suites: str
    gates: str
    what: Mapping[str, What]
    """Every file and folder that judges, where links lead included."""

    def with_more(self, names: Iterable[str], above: Iterable[str]) -> "JudgingPlaces":
        """With further files of graders: `names` are relative to the suites folder, and those of `above` lie in any
        folder above it. What lies outside of the repository is left out.
        """
        outer = PurePosixPath(self.suites).parents
        more = [
            *(f"{self.suites}/{name}" for name in names),
            *(f"{folder}/{name}" for folder in outer for name in above),
        ]
        places = map(posixpath.normpath, more)
        inside: dict[str, What] = {place: _GRADERS for place in places if not place.startswith(("../", "/"))}
        return replace(self, what={**inside, **self.what})


def judging_places(
    root: Path, working_folder: Path, suites: str, gates: str, beside_gates: Mapping[str, What]
) -> JudgingPlaces | None:
    """The places of what a request names in a repository; `None` where any of it lies outside.

    `root` is the repository's top folder with all links resolved, `beside_gates` are the names of further files in the
    folder of the gates file.
    """
    folder = Path(os.path.normpath(working_folder.resolve() / suites))
    file = Path(os.path.normpath(working_folder.resolve() / gates))
    named: dict[Path, What] = {folder: _GRADERS, file: "policy"}
    named |= {file.with_name(name): what for name, what in beside_gates.items()}
    if not all(path.resolve().is_relative_to(root) for path in named):
        return None
    # A name may lead through a link to the repository, and then only what it leads to lies inside.
    both = {place: what for path, what in named.items() for place in (path, path.resolve())}
    what = {_relative(path, root): what for path, what in both.items() if path.is_relative_to(root)}
    return JudgingPlaces(_place(folder, root), _place(file, root), what)


def _place(path: Path, root: Path) -> str:
    return _relative(path if path.is_relative_to(root) else path.resolve(), root)


def _relative(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix()
