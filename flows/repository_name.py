"""Name a repository on a Prefect server, and find its default branch."""

import re
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from passgate.tasks.integrity.checkout import Checkout
from passgate.tasks.integrity.git import GitError, git_text
from passgate.tasks.model.policy import DEFAULT_BRANCH

UNNAMED: Final = "my-repository"
SCP_ADDRESS: Final = re.compile(r"(?:[^/@]+@)?(?P<host>[^/:]+):(?P<path>.+)")
"""The address of a remote without `://`, such as `git@host:path`."""


class RepositoryName(NamedTuple):
    """A name in small letters, digits and dashes."""

    text: str
    is_of_remote: bool
    """Whether the name contains the owner of the remote. Without it, other repositories may have the same name."""


def repository_name(folder: Path) -> RepositoryName:
    """Return the path of the remote `origin`, such as `acme-desk`, and the folder's path in the repository, else the
    name of the folder.
    """
    here = folder.resolve()
    existing = next((one for one in (here, *here.parents) if one.is_dir()), here)
    try:
        top = Checkout(existing).top
        path = "" if top is None else _remote_path(git_text(existing, "remote", "get-url", "origin"))
    except GitError:
        top, path = None, ""
    if top is not None and _slug(path):
        return RepositoryName(_slug(f"{path}/{here.relative_to(top).as_posix()}"), is_of_remote=True)
    return RepositoryName(_slug(here.name) or UNNAMED, is_of_remote=False)


def default_branch(folder: Path) -> str:
    """Return the default branch of a repository, else the branch that is checked out."""
    existing = next((one for one in (folder.resolve(), *folder.resolve().parents) if one.is_dir()), folder)
    try:
        return (
            Checkout(existing).default_branch or git_text(existing, "symbolic-ref", "--short", "HEAD") or DEFAULT_BRANCH
        )
    except GitError:
        return DEFAULT_BRANCH


def _remote_path(url: str) -> str:
    """Return the path of a repository on its server, or an empty text for a local folder."""
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
