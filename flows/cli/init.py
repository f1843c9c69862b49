"""`passgate init`: set up a gate in the user's repository."""

import json
import os
import shlex
from enum import StrEnum
from importlib.resources import files
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

import typer

from passgate import __version__
from passgate.flows.cli.output import answer
from passgate.tasks.errors import UsageError

if TYPE_CHECKING:
    from passgate.tasks.agents.presets import Preset

_GATES: Final = Path("gates.yaml")
_AGENTS: Final = Path("agents.yaml")
_DEPLOYMENTS: Final = Path("prefect.yaml")
_SCHEMAS: Final = Path("suites", "_shared", "schema")
_SCHEMA_FILES: Final = tuple(f"{name}.schema.json" for name in ("agents", "gates", "sandbox", "task"))
_GITLAB: Final = Path(".gitlab-ci.yml")
_NAME: Final = "my-agent"
_RUNS_TOOLS: Final = "openai"
_KINDS: Final = frozenset({"cli", "python", "http", _RUNS_TOOLS})
_FIRST_RUNS: Final = 6
"""After 6 runs, the shipped policy has admitted every new task: with k = 3 it needs 17 passed trials."""
_UNTIL_A_JUDGE: Final = {
    "    suites: [golden, adversarial, open_ended, failure_replays]\n": (
        "    suites: [golden, adversarial, failure_replays]  # open_ended too, once `judge:` names a model\n"
    ),
    "adversarial: 0.8, open_ended: 0.5,": "adversarial: 0.8,",
    "      open_ended: 1.0\n": "",
    "# The shipped suites are marked": "# The first task of open_ended is marked",
}
"""What of the shipped policy waits for the first judge: without one, a gate with open_ended is INCONCLUSIVE."""
_REQUIRED: Final = "isolation: required\n"
# GitLab's jobs run in containers, most of which forbid it.
_PREFERRED: Final = "isolation: preferred  # `required` needs runners whose containers allow user namespaces\n"


class CiService(StrEnum):
    """A CI service."""

    GITHUB = "github"
    GITLAB = "gitlab"


class _CiFile(NamedTuple):
    """The CI file of a service."""

    service: str
    file: Path
    scaffold: str  # The name of its template
    agent: str  # The key that names the agent
    shown: str  # The key as messages show it
    first_runs: str  # The command that starts the runs of the first baseline
    indent: str  # The indent of the commands that install the agent


_CI_FILES: Final = {
    CiService.GITHUB: _CiFile(
        "GitHub",
        Path(".github", "workflows", "passgate.yaml"),
        "workflow.yaml",
        "AGENT",
        "env.AGENT",
        f"`gh workflow run passgate.yaml --field runs={_FIRST_RUNS}`",
        10 * " ",
    ),
    CiService.GITLAB: _CiFile(
        "GitLab",
        Path(".gitlab", "passgate.yml"),
        "gitlab.yml",
        "PASSGATE_AGENT",
        "PASSGATE_AGENT",
        f"`glab ci run --variables PASSGATE_RUNS:{_FIRST_RUNS}`",
        6 * " ",
    ),
}


def init(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder of your repository.")] = Path(),
    agent: Annotated[
        str | None,
        typer.Option(
            metavar="SPEC",
            help="Your agent, for the tasks, agents.yaml and the workflow: 'cli:COMMAND', python:MODULE:FUNCTION, "
            "http:URL, openai:MODEL, a name in your agents.yaml, the kind alone, as in http, or claude-code, codex, "
            "gemini-cli, opencode, qwen-code, copilot.",
        ),
    ] = None,
    ci: Annotated[
        CiService | None,
        typer.Option(help="Whose CI runs the gates. Default: gitlab if .gitlab-ci.yml is there, else github."),
    ] = None,
    prefect: Annotated[
        bool, typer.Option("--prefect", help="Also write Prefect deployments of the gates, and automations.")
    ] = False,
) -> None:
    """Write one task for each suite, gates.yaml, agents.yaml, their schemas and the CI jobs. Keep every file that
    exists.
    """
    from passgate.flows.cli.repository import default_branch, own_version, repository_name

    kind, named, preset = _find_agent(agent, folder)
    service = ci or (CiService.GITLAB if (folder / _GITLAB).exists() else CiService.GITHUB)
    own, branch, repository = own_version(__version__), default_branch(folder), repository_name(folder)
    entry = f"  {_NAME}:\n    agent: {json.dumps(agent)}\n" if named == _NAME else ""
    if preset is not None:
        entry = indent(preset.entry(str(named)), "  ")
    wanted = _starter_files("suites" if kind == _RUNS_TOOLS else "plain/suites", _policy(service, branch), entry)
    wanted |= _ci_files(service, named, own.suffix, branch, preset.package if preset else "")
    if prefect:
        wanted |= _deployments(repository.text, named)
    written = _write_missing_files(folder, wanted)
    lines = [f"{'wrote' if name in written else 'kept '} {folder / name}" for name in wanted]
    lines.append("\nNext: passgate run ci_merge   # proves the graders with the reference solutions")
    if preset is not None:
        lines.append(f"      npm install --global {preset.package}, and set {preset.key}")
    if named is not None:
        lines.append(f"      passgate doctor {shlex.quote(named)} --try   # one trial of your agent")
    if preset is not None and _AGENTS not in written:
        lines.append(f"Then: add to the agents of {folder / _AGENTS}:\n{entry}")
    steps = _remaining_steps(service, folder, written, branch, named=named is not None, knows_passgate=own.is_known)
    if _DEPLOYMENTS in written and not repository.is_of_remote:
        steps.append(
            "no remote `origin` on a server names the deployments: if another repository on your Prefect server is "
            f"called {repository.text} too, replace {repository.text} in prefect.yaml and prefect-automations.yaml, or "
            "each `prefect deploy` replaces the deployments of the other"
        )
    lines += [f"Then: {what}" for what in steps]
    wrote, kept = ([str(folder / name) for name in wanted if (name in written) is new] for new in (True, False))
    answer(lambda: "\n".join(lines), {"wrote": wrote, "kept": kept})


def _find_agent(agent: str | None, folder: Path) -> "tuple[str | None, str | None, Preset | None]":
    """Find an agent's kind, name in the workflow, and preset; `None` for what it has not. Raise `UsageError`."""
    from passgate.tasks.agents import make_agent
    from passgate.tasks.agents.presets import presets
    from passgate.tasks.model.agent import looks_like_a_form
    from passgate.tasks.planning.named_agents import find_agent, load_agents

    preset = None if agent in load_agents(folder / _AGENTS) else presets().get(agent or "")
    if preset is not None:
        return agent, agent, preset
    if agent is None or agent in _KINDS:
        return agent, None, None
    spec = find_agent(agent, folder / _GATES, folder / "suites")
    if spec.is_reference:
        raise UsageError(f"{agent} proves your graders and is not an agent: name the one that the gate is for")
    if folder.resolve() == Path.cwd():
        make_agent(spec, folder / "suites")
    # The workflow names the agent as agents.yaml does, which may exist already.
    return spec.kind, _NAME if looks_like_a_form(agent) and not (folder / _AGENTS).exists() else agent, None


def _scaffold(*names: str) -> Path:
    return Path(__file__).parent.joinpath("scaffold", *names)


def _starter_files(tasks: str, policy: str, agents: str) -> dict[Path, bytes]:
    """Return the first tasks, with tools that passgate runs or without, the policy, the agents, their schemas."""
    folder = _scaffold(tasks)
    found = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.suffix != ".pyc"]
    contents = {path.relative_to(folder.parent): path.read_bytes() for path in found} | {_GATES: policy.encode()}
    if agents:
        contents[_AGENTS] = f"version: 1\nagents:\n{agents}".encode()
    contents = {path: _add_schema_comment(path, content) for path, content in contents.items()}
    schemas = files("passgate").joinpath("schema")
    return contents | {_SCHEMAS / name: schemas.joinpath(name).read_bytes() for name in _SCHEMA_FILES}


def _write_missing_files(folder: Path, wanted: dict[Path, bytes]) -> set[Path]:
    """Write the files that do not exist yet, and return them. Raise `UsageError`."""
    missing = [name for name in wanted if not (folder / name).exists()]
    try:
        for name in missing:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(wanted[name])
    except OSError as error:
        raise UsageError(f"cannot write into {folder}: {error.strerror or error}") from error
    return set(missing)


def _policy(service: CiService, branch: str) -> str:
    """Return the shipped policy as it is until a judge is named, for changes into this branch on these runners."""
    from passgate.tasks.integrity.checkout import USUAL_BRANCHES

    policy = files("passgate").joinpath("gates.yaml").read_text(encoding="utf-8")
    if branch not in USUAL_BRANCHES:
        policy = policy.replace("\nbaseline:\n", f"\nbaseline:\n  branch: {json.dumps(branch)}\n")
    if service is CiService.GITLAB:
        policy = policy.replace(_REQUIRED, _PREFERRED)
    for with_judge, without in _UNTIL_A_JUDGE.items():
        policy = policy.replace(with_judge, without)
    return policy


def _ci_files(service: CiService, named: str | None, version: str, branch: str, package: str) -> dict[Path, bytes]:
    """Return the CI files for changes into `branch`, with passgate's `version`, the agent and its npm `package`."""
    ci = _CI_FILES[service]
    text = _scaffold(ci.scaffold).read_text(encoding="utf-8").replace("==0.0.0", version)
    branches = branch if branch.isidentifier() else json.dumps(branch)
    text = text.replace("branches: [main]", f"branches: [{branches}]")
    if named is not None:
        # JSON is valid YAML, even if the agent's command contains quotes.
        text = text.replace(f'{ci.agent}: ""', f"{ci.agent}: {json.dumps(named)}", 1)
    if package:
        text = text.replace("passgate[graders", "passgate[graders,mcp")
        text = text.replace(
            "if [ -f requirements.txt ];",
            f"npm install --global {package}\n{ci.indent}if [ -f requirements.txt ];",
        )
    contents = {ci.file: text.encode()}
    if service is CiService.GITLAB:
        contents[_GITLAB] = f"include:\n  - local: {ci.file.as_posix()}\n".encode()
    return contents


def _remaining_steps(
    service: CiService, folder: Path, written: set[Path], branch: str, *, named: bool, knows_passgate: bool
) -> list[str]:
    """Return what the user has to do: in files that existed before, for a missing agent, and at the service."""
    ci, steps = _CI_FILES[service], []
    if not knows_passgate and ci.file in written:
        steps.append(f"put the address of passgate's repository in place of OWNER/passgate in {ci.file}")
    if not named:
        steps.append(f"name your agent in {ci.file}, or the job fails: `{ci.shown}`")
    elif ci.file not in written:
        steps.append(f"put it into {ci.shown} of {ci.file}")
    here = folder.resolve()
    top = next((one for one in (here, *here.parents) if (one / ".git").exists()), here)
    if here != top:
        below = here.relative_to(top).as_posix()
        steps.append(f"{ci.service} reads {ci.file} at the top of the repository: move it there, and run it in {below}")
    if service is CiService.GITLAB:
        try:
            includes = (folder / _GITLAB).read_text(encoding="utf-8", errors="replace")
        except OSError:
            includes = ""
        if ci.file.as_posix() not in includes:
            steps.append(f"let {_GITLAB} include the jobs: `include: [{{local: {ci.file.as_posix()}}}]`")
    steps.append(
        f"commit the files to {branch}, and make the first {_FIRST_RUNS} runs there, its baseline: {ci.first_runs}"
    )
    return steps


def _deployments(repository: str, agent: str | None) -> dict[Path, bytes]:
    """Return the files for Prefect, with the names of this repository and its agent."""
    from passgate.flows.cli.repository import UNNAMED

    contents = {}
    for file in sorted(_scaffold("prefect").glob("*.yaml")):
        text = file.read_text(encoding="utf-8").replace(UNNAMED, repository)
        text = text.replace(UNNAMED.replace("-", "_"), repository.replace("-", "_"))
        if agent is not None:
            text = text.replace("agent: oracle", f"agent: {json.dumps(agent)}")
        contents[Path(file.name)] = text.encode()
    return contents


def _add_schema_comment(file: Path, content: bytes) -> bytes:
    """Add the comment by which an editor's YAML language server finds the schema of a file, if it has one."""
    if file in (_GATES, _AGENTS):
        name = file.stem
    elif file.name == "sandbox.yaml":
        name = "sandbox"
    elif file.suffix == ".yaml" and file.parts[0] == "suites" and file.parts[1] != "_shared":
        name = "task"
    else:
        return content
    schema = os.path.relpath(_SCHEMAS / f"{name}.schema.json", file.parent)
    return f"# yaml-language-server: $schema={schema}\n".encode() + content
