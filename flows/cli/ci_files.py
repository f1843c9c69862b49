"""The CI files that `passgate init` writes, and what remains for you to do."""

import json
from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple

FIRST_RUNS: Final = 6
"""After 6 runs, the shipped policy has admitted every new task: with k = 3 it needs 17 passed trials."""
_INDENT: Final = {"github": 10 * " ", "gitlab": 6 * " "}  # Of the commands that install the agent
_UNPINNED: Final = "==0.0.0"
_MAIN: Final = "branches: [main]"
_INCLUDING: Final = Path(".gitlab-ci.yml")


class CiService(StrEnum):
    """A CI service."""

    GITHUB = "github"
    GITLAB = "gitlab"


class CiFile(NamedTuple):
    """The CI file of a service."""

    of: str
    """The name of the service."""
    file: Path
    scaffold: str
    """The name of its template."""
    agent: str
    """The key that names the agent."""
    shown: str
    """The key as messages show it."""
    first_runs: str
    """The command that starts the runs of the first baseline."""


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


def find_service(folder: Path) -> CiService:
    """Return the CI service of a repository: GitLab if it has GitLab's file, else GitHub."""
    return CiService.GITLAB if (folder / _INCLUDING).exists() else CiService.GITHUB


def ci_contents(
    service: CiService, scaffold: Path, named: str | None, version: str, branch: str, package: str
) -> dict[Path, bytes]:
    """Return the contents of the CI files by their paths in the repository.

    The files install `passgate` followed by `version`, run for changes into `branch`, and run the agent `named`; `None`
    leaves its place empty. `package` of npm, if there is one, is the agent's program.
    """
    ci = CI_FILES[service]
    text = (scaffold / ci.scaffold).read_text(encoding="utf-8").replace(_UNPINNED, version)
    text = text.replace(_MAIN, f"branches: [{branch if branch.isidentifier() else json.dumps(branch)}]")
    if named is not None:
        # JSON is valid YAML, even if the agent's command contains quotes.
        text = text.replace(f'{ci.agent}: ""', f"{ci.agent}: {json.dumps(named)}", 1)
    if package:
        text = text.replace("passgate[graders", "passgate[graders,mcp")
        text = text.replace(
            "if [ -f requirements.txt ];",
            f"npm install --global {package}\n{_INDENT[service]}if [ -f requirements.txt ];",
        )
    contents = {ci.file: text.encode()}
    if service is CiService.GITLAB:
        contents[_INCLUDING] = f"include:\n  - local: {ci.file.as_posix()}\n".encode()
    return contents


def remaining_steps(
    service: CiService, folder: Path, written: set[Path], branch: str, *, named: bool, knows_passgate: bool
) -> list[str]:
    """Return what the user has to do: in files that existed before, for a missing agent, and at the service."""
    ci, steps = CI_FILES[service], []
    if not knows_passgate and ci.file in written:
        steps.append(f"put the address of passgate's repository in place of OWNER/passgate in {ci.file}")
    if not named:
        steps.append(f"name your agent in {ci.file}, or the job fails: `{ci.shown}`")
    elif ci.file not in written:
        steps.append(f"put it into {ci.shown} of {ci.file}")
    if above := _folder_in_repository(folder):
        steps.append(f"{ci.of} reads {ci.file} at the top of the repository: move it there, and run it in {above}")
    if service is CiService.GITLAB and ci.file.as_posix() not in _text(folder / _INCLUDING):
        steps.append(f"let {_INCLUDING} include the jobs: `include: [{{local: {ci.file.as_posix()}}}]`")
    steps.append(
        f"commit the files to {branch}, and make the first {FIRST_RUNS} runs there, its baseline: {ci.first_runs}"
    )
    return steps


def _folder_in_repository(folder: Path) -> str:
    """Return the path of a folder in its git repository, or an empty text for the top folder."""
    here = folder.resolve()
    top = next((one for one in (here, *here.parents) if (one / ".git").exists()), here)
    return "" if here == top else here.relative_to(top).as_posix()


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
