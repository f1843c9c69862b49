"""Where in the repository the files are that a gate judges by."""

import os
import posixpath
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Final

from passgate.tasks.integrity.edits import What

_GRADERS: Final = "tasks and graders"


@dataclass(frozen=True)
class JudgingPlaces:
    """The suites folder and the gates file, and what else judges, all relative to the repository's top folder."""

    suites: str
    gates: str
    what: Mapping[str, What]
    """Every file and folder that judges, where links lead included."""
    leads_out: bool = False
    """Whether a link leads from any of them out of the repository."""

    def with_more(self, names: Iterable[str], above: Iterable[str], what: What = _GRADERS) -> "JudgingPlaces":
        """With further files: `names` are relative to the suites folder, and those of `above` lie in any
        folder above it. What lies outside of the repository is left out, and so is what holds the suites folder.
        """
        outer = PurePosixPath(self.suites).parents
        more = [
            *(f"{self.suites}/{name}" for name in names),
            *(f"{folder}/{name}" for folder in outer for name in above),
        ]
        inside: dict[str, What] = dict.fromkeys(filter(self._is_beside, map(posixpath.normpath, more)), what)
        return replace(self, what={**inside, **self.what})

    def _is_beside(self, place: str) -> bool:
        """Whether a place is of the repository and does not hold the suites folder."""
        path = PurePosixPath(place)
        return not path.is_absolute() and path.parts[:1] != ("..",) and path not in PurePosixPath(self.suites).parents

    def with_ways(self, ways: Collection[str]) -> "JudgingPlaces":
        """With what says of which bytes the files are, relative to the repository. What lies below a way that is a link
        or a submodule is known to git by the way alone.
        """
        what: dict[str, What] = {**dict.fromkeys(ways, _GRADERS), **self.what}
        known = {*ways}
        below = {name for name in what if any(str(folder) in known for folder in PurePosixPath(name).parents)}
        return replace(self, what={name: one for name, one in what.items() if name not in below})


def judging_places(
    root: Path, working_folder: Path, suites: str, gates: str, beside_gates: Mapping[str, What]
) -> JudgingPlaces | None:
    """The places of what a request names in a repository; `None` where any of it is named outside.

    `root` is the repository's top folder with all links resolved, `beside_gates` are the names of further files in the
    folder of the gates file.
    """
    folder = Path(os.path.normpath(working_folder.resolve() / suites))
    file = Path(os.path.normpath(working_folder.resolve() / gates))
    named: dict[Path, What] = {folder: _GRADERS, file: "policy"}
    named |= {file.with_name(name): what for name, what in beside_gates.items()}
    if not all(path.is_relative_to(root) or path.resolve().is_relative_to(root) for path in named):
        return None
    # A name may lead through a link to the repository, and then only what it leads to lies inside.
    both = {place: what for path, what in named.items() for place in (path, path.resolve())}
    what = {_relative(path, root): what for path, what in both.items() if path.is_relative_to(root)}
    leads_out = not all(path.resolve().is_relative_to(root) for path in named)
    return JudgingPlaces(_place(folder, root), _place(file, root), what, leads_out)


def _place(path: Path, root: Path) -> str:
    return _relative(path if path.is_relative_to(root) else path.resolve(), root)


def _relative(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix()
