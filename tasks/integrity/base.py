"""The base of a run: the commit that a change is compared with."""

import os
from functools import partial
from pathlib import Path

from passgate.tasks.files.temporary import temporary_folder
from passgate.tasks.formats.project_files import read_policy
from passgate.tasks.integrity.base_files import is_committed, read_committed
from passgate.tasks.integrity.git import top_folder
from passgate.tasks.integrity.merge_base import find_base
from passgate.tasks.model.branch import DEFAULT_BRANCH
from passgate.tasks.model.policy import Policy
from passgate.tasks.model.run import Base, RunRequest


def base_of(folder: Path, request: RunRequest, policy: Policy) -> Base:
    """The base of what is checked out, for a request whose own files make this policy.

    `folder` lies in the repository. Raises `UsageError` for a `--base` that is none.
    """
    own = policy.baseline.branch
    return find_base(folder, own, request.base, branch_at=partial(_branch_at, folder, request, own))


def _branch_at(folder: Path, request: RunRequest, own: str, commit: str) -> str | None:
    """The branch that the gates file of a commit names; `None` where the commit has nothing to judge by.

    A gates file outside of the repository is no change's to edit, and is taken at its word.
    """
    root = top_folder(folder)
    suites, gates = (Path(os.path.normpath(folder.resolve() / name)) for name in (request.suites, request.gates))
    if root is None or not gates.is_relative_to(root):
        return own
    content = read_committed(root, commit, gates.relative_to(root).as_posix())
    if content is not None:
        return _named_by(content, request.gates)
    has_suites = suites.is_relative_to(root) and is_committed(root, commit, suites.relative_to(root).as_posix())
    return DEFAULT_BRANCH if has_suites else None


def _named_by(content: bytes, name: str) -> str:
    """The branch that a gates file names; the usual one where the file cannot be read."""
    with temporary_folder("base") as folder:
        file = folder / Path(name).name
        file.write_bytes(content)
        policy = read_policy(file, name)
    return policy.baseline.branch if isinstance(policy, Policy) else DEFAULT_BRANCH
