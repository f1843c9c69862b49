"""Find the pip requirement that installs this passgate in a CI job: its release, or a commit of its repository."""

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
    """The part of a pip requirement after the name and the extras."""
    is_known: bool
    """Whether it contains the address of passgate, which a checkout without a remote does not know."""


def own_version(version: str) -> OwnVersion:
    """Return the version of the installed passgate, which certainly exists."""
    direct = _direct_url()
    if direct is None:
        return OwnVersion(f"=={version}", is_known=True)
    is_of_vcs = "vcs_info" in direct
    url, commit = (direct["url"], direct["vcs_info"]["commit_id"]) if is_of_vcs else _checkout_source(direct["url"])
    return OwnVersion(f" @ git+{url or f'https://github.com/{_OWNER}/passgate'}@{commit or 'main'}", is_known=bool(url))


def _direct_url() -> Any:
    """Return the source of pip's installation as PEP 610 describes it, or `None` for an index."""
    try:
        text = distribution("passgate").read_text("direct_url.json")
    except PackageNotFoundError:
        return None
    return json.loads(text) if text else None


def _checkout_source(url: str) -> tuple[str, str]:
    """Return the address and the commit of a checkout, with an empty text for what is unknown."""
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
