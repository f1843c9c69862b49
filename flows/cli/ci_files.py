"""The CI files that `passgate init` writes, and what they leave for you to do."""

import json
from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple

FIRST_RUNS: Final = 6
"""After so many the shipped policy has admitted each of the first tasks: of k = 3 it wants 17 passed trials."""
_UNPINNED: Final = "==0.0.0"
_MAIN: Final = "branches: [main]"
_INCLUDING: Final = Path(".gitlab-ci.yml")


class CiService(StrEnum):
    """A service whose CI runs the gates."""

    GITHUB = "github"
    GITLAB = "gitlab"


class CiFile(NamedTuple):
    """The file that runs the gates."""

    of: str
    """The service, as it writes its name."""
    file: Path
    scaffold: str
    """The name of its scaffold."""
    agent: str
    """The key that names the agent."""
    shown: str
    """The key as users are told of it."""
    first_runs: str
    """How the runs are started that make the first baseline."""


CI_FILES: Final = {
    CiService.GITHUB: CiFile(
        "GitHub",
        Path(".github", "workflows", "passgate.yaml"),
        "workflow.yaml",
        "AGENT",
        "env.AGENT",
        f"`gh workflow run passgate.yaml --field runs={FIRST_RUNS}`",
    ),
    CiService.GITLAB: CiFile(
        "GitLab",
        Path(".gitlab", "passgate.yml"),
        "gitlab.yml",
        "PASSGATE_AGENT",
        "PASSGATE_AGENT",
        f"`glab ci run --variables PASSGATE_RUNS:{FIRST_RUNS}`",
    ),
}


def service_of(folder: Path) -> CiService:
    """The service of a repository: GitLab where it has GitLab's file, else GitHub."""
    return CiService.GITLAB if (folder / _INCLUDING).exists() else CiService.GITHUB


def ci_contents(service: CiService, scaffold: Path, named: str | None, version: str, branch: str) -> dict[Path, bytes]:
    """The content of the files, by their paths in the repository. `version` follows the name of passgate where they
    install it; changes go into `branch`.

    `named` is the agent; `None` leaves its place empty.
    """
    ci = CI_FILES[service]
    text = (scaffold / ci.scaffold).read_text(encoding="utf-8").replace(_UNPINNED, version)
    text = text.replace(_MAIN, f"branches: [{branch if branch.isidentifier() else json.dumps(branch)}]")
    if named is not None:
        # JSON is valid YAML, even if the agent's command contains quotes.
        text = text.replace(f'{ci.agent}: ""', f"{ci.agent}: {json.dumps(named)}", 1)
    contents = {ci.file: text.encode()}
    if service is CiService.GITLAB:
        contents[_INCLUDING] = f"include:\n  - local: {ci.file.as_posix()}\n".encode()
    return contents


def left_to_do(
    service: CiService, folder: Path, written: set[Path], branch: str, *, named: bool, knows_passgate: bool
) -> list[str]:
    """What you have to do in files that were there before, where no agent is named, and on the service."""
    ci, left = CI_FILES[service], []
    if not knows_passgate and ci.file in written:
        left.append(f"put the address of passgate's repository in place of OWNER/passgate in {ci.file}")
    if not named:
        left.append(f"name your agent in {ci.file}, or the job fails: `{ci.shown}`")
    elif ci.file not in written:
        left.append(f"put it into {ci.shown} of {ci.file}")
    if above := _folder_in_repository(folder):
        left.append(f"{ci.of} reads {ci.file} at the top of the repository: move it there, and run it in {above}")
    if service is CiService.GITLAB and ci.file.as_posix() not in _text(folder / _INCLUDING):
        left.append(f"let {_INCLUDING} include the jobs: `include: [{{local: {ci.file.as_posix()}}}]`")
    left.append(
        f"commit the files to {branch}, and make the first {FIRST_RUNS} runs there, its baseline: {ci.first_runs}"
    )
    return left


def _folder_in_repository(folder: Path) -> str:
    """Where the folder is in its git repository; empty for its top folder, and where there is no repository."""
    here = folder.resolve()
    top = next((one for one in (here, *here.parents) if (one / ".git").exists()), here)
    return "" if here == top else here.relative_to(top).as_posix()


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
