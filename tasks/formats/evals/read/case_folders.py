"""Folders with one test each."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from passgate.tasks.formats.evals.node import Node
from passgate.tasks.formats.evals.read.documents import Documents

CASE_FILES = ("case.yaml", "case.yml")
_WORKSPACE = "workspace"


@dataclass(frozen=True)
class CaseFolder:
    """A folder that is a test."""

    file: Path
    """Its case file."""
    workspace: Path | None
    """The folder of files for the agent that stands beside the case file."""

    @property
    def name(self) -> str:
        return self.file.parent.name


def case_folders(folder: Path, at: Node, documents: Documents) -> list[CaseFolder]:
    """The cases of a folder, by name. A folder without a case file is a warning, none at all is a problem."""
    found = [case for entry in _folders(folder, at, documents) for case in _case(entry, at, documents)]
    if not found:
        message = (
            f"no folder of {at.value!r} has a {CASE_FILES[0]}; for files of tests write a pattern, as './cases/*.yaml'"
        )
        documents.refuse(at.problem(message))
    return found


def case_folder_of(file: Path) -> CaseFolder:
    """The case that a case file is of."""
    workspace = file.parent / _WORKSPACE
    return CaseFolder(file, workspace if workspace.is_dir() else None)


def _folders(folder: Path, at: Node, documents: Documents) -> Iterator[Path]:
    repository = documents.ground.repository.resolve()
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        documents.refuse(at.problem(f"the folder cannot be read: {error.strerror}"))
        return
    for entry in entries:
        if entry.name.startswith(".") or entry.name == "node_modules" or not entry.is_dir():
            continue
        if entry.resolve().is_relative_to(repository):
            yield entry
        else:
            documents.refuse(at.problem(f"{entry.name!r} in it leaves the repository"))


def _case(folder: Path, at: Node, documents: Documents) -> list[CaseFolder]:
    candidates = [folder / name for name in CASE_FILES]
    documents.ground.looked_at.update(candidates)
    files = [file for file in candidates if file.is_file()]
    if not files:
        documents.complaints.warnings.append(at.problem(f"the folder {folder.name!r} has no {CASE_FILES[0]}: skipped"))
    if len(files) > 1:
        documents.refuse(at.problem(f"the folder {folder.name!r} has both {CASE_FILES[0]} and {CASE_FILES[1]}"))
    return [case_folder_of(file) for file in files[:1]]
