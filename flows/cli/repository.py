"""What `passgate init` finds out about the user's repository, and about the installed passgate."""

import json
import re
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from passgate.tasks.integrity.checkout import Checkout
from passgate.tasks.integrity.git import GitError, full_commit, git_text
from passgate.tasks.model.policy import DEFAULT_BRANCH

UNNAMED: Final = "my-repository"
_SCP_ADDRESS: Final = re.compile(r"(?:[^/@]+@)?(?P<host>[^/:]+):(?P<path>.+)")
"""The address of a remote without `://`, such as `git@host:path`."""


class RepositoryName(NamedTuple):
    """A name in small letters, digits and dashes."""

    text: str
    is_of_remote: bool
    """Whether the name contains the owner of the remote. Without it, other repositories may have the same name."""


class OwnVersion(NamedTuple):
    """The version of passgate that a CI job installs."""

    suffix: str  # The part of a pip requirement after the name and the extras
    is_known: bool  # Whether it contains the address of passgate, which a checkout without a remote does not know


def repository_name(folder: Path) -> RepositoryName:
    """Return the path of the remote `origin`, as in `acme-desk`, and of the folder below it, else the folder's name."""
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


def _remote_path(url: str) -> str:
    """Return the path of a repository on its server, or an empty text for a local folder."""
    if "://" in url:
        try:
            parts = urlsplit(url)
        except ValueError:
            return ""
        path = parts.path if parts.hostname else ""
    else:
        scp = _SCP_ADDRESS.fullmatch(url)
        path = scp["path"] if scp is not None else ""
    return path.rstrip("/").removesuffix(".git")


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def default_branch(folder: Path) -> str:
    """Return the default branch of a repository, else the branch that is checked out."""
    existing = next((one for one in (folder.resolve(), *folder.resolve().parents) if one.is_dir()), folder)
    try:
        branch = Checkout(existing).default_branch or git_text(existing, "symbolic-ref", "--short", "HEAD")
    except GitError:
        branch = ""
    return branch or DEFAULT_BRANCH


def own_version(version: str) -> OwnVersion:
    """Return the version of the installed passgate, which certainly exists: a release or a commit of its repository."""
    try:
        # The source of pip's installation as PEP 610 describes it; an index has none.
        text = distribution("passgate").read_text("direct_url.json")
    except PackageNotFoundError:
        text = None
    if not text:
        return OwnVersion(f"=={version}", is_known=True)
    source: Any = json.loads(text)
    if "vcs_info" in source:
        url, commit = source["url"], source["vcs_info"]["commit_id"]
    else:
        url, commit = _checkout_source(source["url"])
    return OwnVersion(f" @ git+{url or 'https://github.com/OWNER/passgate'}@{commit or 'main'}", is_known=bool(url))


def _checkout_source(url: str) -> tuple[str, str]:
    """Return the address and the commit of a checkout, with an empty text for what is unknown."""
    folder = Path(url.removeprefix("file://"))
    try:
        remote, commit = git_text(folder, "remote", "get-url", "origin"), full_commit(folder, "HEAD")
    except GitError:
        return "", ""
    if "://" not in remote and (scp := _SCP_ADDRESS.fullmatch(remote)):
        remote = f"https://{scp['host']}/{scp['path'].lstrip('/')}"
    remote = re.sub(r"^(?:ssh|https?)://(?:[^@/]*@)?", "https://", remote)
    return remote if remote.startswith("https://") else "", commit
