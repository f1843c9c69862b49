"""What installs this very passgate in a CI job: its release, or the commit of the repository that it comes from."""

import json
import re
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, Final, NamedTuple

from passgate.flows.repository_name import SCP_ADDRESS

_OWNER: Final = "OWNER"


class OwnVersion(NamedTuple):
    """The version of passgate."""

    suffix: str
    """What follows the name, and the extras, in a requirement of pip."""
    is_known: bool
    """Whether it says where passgate is: nobody can say it of a checkout without a remote."""


def own_version(version: str) -> OwnVersion:
    """Find out how this passgate was installed, which is a version that exists."""
    direct = _direct_url()
    if direct is None:
        return OwnVersion(f"=={version}", is_known=True)
    is_of_vcs = "vcs_info" in direct
    url, commit = (direct["url"], direct["vcs_info"]["commit_id"]) if is_of_vcs else _of_checkout(direct["url"])
    return OwnVersion(f" @ git+{url or f'https://github.com/{_OWNER}/passgate'}@{commit or 'main'}", is_known=bool(url))


def _direct_url() -> Any:
    """Where pip has installed passgate from, as PEP 610 has it; `None` for an index."""
    try:
        text = distribution("passgate").read_text("direct_url.json")
    except PackageNotFoundError:
        return None
    return json.loads(text) if text else None


def _of_checkout(url: str) -> tuple[str, str]:
    """The address and the commit of a checkout, each empty where nobody knows it."""
    from passgate.tasks.integrity.git import GitError, full_commit, git_text

    folder = Path(url.removeprefix("file://"))
    try:
        remote, commit = git_text(folder, "remote", "get-url", "origin"), full_commit(folder, "HEAD")
    except GitError:
        return "", ""
    if "://" not in remote and (scp := SCP_ADDRESS.fullmatch(remote)):
        remote = f"https://{scp['host']}/{scp['path'].lstrip('/')}"
    remote = re.sub(r"^(?:ssh|https?)://(?:[^@/]*@)?", "https://", remote)
    return remote if remote.startswith("https://") else "", commit
