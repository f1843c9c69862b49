"""What a repository says of itself: the name by which a Prefect server tells it from others, and its default branch."""

import re
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from passgate.tasks.integrity.checkout import Checkout
from passgate.tasks.integrity.git import GitError, git_text
from passgate.tasks.model.policy import DEFAULT_BRANCH

UNNAMED: Final = "my-repository"
SCP_ADDRESS: Final = re.compile(r"(?:[^/@]+@)?(?P<host>[^/:]+):(?P<path>.+)")
"""An address of a remote without `://`, as in `git@host:path`."""


class RepositoryName(NamedTuple):
    """A name in small letters, digits and dashes."""

    text: str
    is_of_remote: bool
    """Whether it has the owner of the repository, as its remote says. Without, others may be called so too."""


def repository_name(folder: Path) -> RepositoryName:
    """The path of the remote `origin`, as in `acme-desk`, with the folder's place in the repository; else the name of
    the folder.
    """
    here = folder.resolve()
    there = next((one for one in (here, *here.parents) if one.is_dir()), here)
    try:
        top = Checkout(there).top
        path = "" if top is None else _path_of(git_text(there, "remote", "get-url", "origin"))
    except GitError:
        top, path = None, ""
    if top is not None and _slug(path):
        return RepositoryName(_slug(f"{path}/{here.relative_to(top).as_posix()}"), is_of_remote=True)
    return RepositoryName(_slug(here.name) or UNNAMED, is_of_remote=False)


def default_branch_of(folder: Path) -> str:
    """The branch that changes of a repository go into: its default one, else the one that is checked out."""
    there = next((one for one in (folder.resolve(), *folder.resolve().parents) if one.is_dir()), folder)
    try:
        return Checkout(there).default_branch or git_text(there, "symbolic-ref", "--short", "HEAD") or DEFAULT_BRANCH
    except GitError:
        return DEFAULT_BRANCH


def _path_of(url: str) -> str:
    """The path of a repository on its server; empty for a folder of this machine."""
    if "://" in url:
        try:
            parts = urlsplit(url)
        except ValueError:
            return ""
        path = parts.path if parts.hostname else ""
    else:
        scp = SCP_ADDRESS.fullmatch(url)
        path = scp["path"] if scp is not None else ""
    return path.rstrip("/").removesuffix(".git")


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
