"""`passgate init`: set up a gate in the user's repository."""

import json
import os
import shlex
from importlib.resources import as_file, files
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Annotated, Final

import typer

from passgate.flows.cli import options
from passgate.flows.cli.ci_files import CiService, ci_contents, find_service, remaining_steps

if TYPE_CHECKING:
    from passgate.tasks.agents.presets import Preset

_GATES: Final = Path("gates.yaml")
_RUNS_TOOLS: Final = "openai"
_KINDS: Final = frozenset({"cli", "python", "http", _RUNS_TOOLS})
_WITH_TOOLS: Final = "suites"
"""The first tasks of an agent whose tools passgate runs."""
_PLAIN: Final = "plain/suites"
"""The first tasks of any other: a prompt that holds all of it, and an answer that is a text."""
_UNTIL_A_JUDGE: Final = {
    "    suites: [golden, adversarial, open_ended, failure_replays]\n": (
        "    suites: [golden, adversarial, failure_replays]  # open_ended too, once `judge:` names a model\n"
    ),
    "adversarial: 0.8, open_ended: 0.5,": "adversarial: 0.8,",
    "      open_ended: 1.0\n": "",
    "# The shipped suites are marked": "# The first task of open_ended is marked",
}
"""What of the shipped policy waits for the first judge: without one, a gate with open_ended is INCONCLUSIVE."""
_AGENTS: Final = Path("agents.yaml")
_SCHEMAS: Final = Path("suites", "_shared", "schema")
_SCHEMA_NAMES: Final = ("agents", "gates", "sandbox", "task")
_NAME: Final = "my-agent"
_REQUIRED: Final = "isolation: required\n"
# GitLab's jobs run in containers, most of which forbid it.
_PREFERRED: Final = "isolation: preferred  # `required` needs runners whose containers allow user namespaces\n"
_DEPLOYMENTS: Final = Path("prefect.yaml")


def init(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder of your repository.")] = Path(),
    agent: Annotated[
        str | None,
        typer.Option(
            metavar="SPEC",
            help="Your agent, for the tasks, agents.yaml and the workflow: 'cli:COMMAND', python:MODULE:FUNCTION, "
            "http:URL, openai:MODEL, a name in your agents.yaml, the kind alone, as in http, or claude-code, codex, "
            "opencode, qwen-code, copilot.",
        ),
    ] = None,
    ci: Annotated[
        CiService | None,
        typer.Option(help="Whose CI runs the gates. Default: gitlab if .gitlab-ci.yml is there, else github."),
    ] = None,
    prefect: Annotated[
        bool, typer.Option("--prefect", help="Also write Prefect deployments of the gates, and automations.")
    ] = False,
    as_json: options.JsonOption = False,
    quiet: options.QuietOption = False,
) -> int:
    """Write one task for each suite, gates.yaml, agents.yaml, their schemas and the CI jobs. Keep every file that
    exists.
    """
    from passgate import __version__
    from passgate.flows.cli.output import answer
    from passgate.flows.cli.own_version import own_version
    from passgate.flows.repository_name import default_branch, repository_name
    from passgate.tasks.agents.presets import presets
    from passgate.tasks.errors import UsageError
    from passgate.tasks.planning.named_agents import load_agents

    preset = None if agent in load_agents(folder / _AGENTS) else presets().get(agent or "")
    is_new = preset is not None or agent is None or agent in _KINDS
    kind = agent if is_new else _kind(str(agent), folder)
    named = agent if preset is not None else None if is_new else _name(str(agent), folder)
    service = ci or find_service(folder)
    tasks = _WITH_TOOLS if kind == _RUNS_TOOLS else _PLAIN
    own, branch = own_version(__version__), default_branch(folder)
    wanted, written = _contents(agent, named, tasks, _policy(service, branch), preset), set[Path]()
    wanted |= _ci_files(service, named, own.suffix, branch, preset)
    repository = repository_name(folder)
    wanted |= _deployments(repository.text, named) if prefect else {}
    try:
        for name, content in wanted.items():
            if not (folder / name).exists():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_bytes(content)
                written.add(name)
    except OSError as error:
        raise UsageError(f"cannot write into {folder}: {error.strerror or error}") from error
    lines = [f"{'wrote' if name in written else 'kept '} {folder / name}" for name in wanted]
    lines.append("\nNext: passgate run ci_merge   # proves the graders with the reference solutions")
    if preset is not None:
        lines.append(f"      npm install --global {preset.package}, and set {preset.key}")
    if named is not None:
        lines.append(f"      passgate doctor {shlex.quote(named)} --try   # one trial of your agent")
    if preset is not None and _AGENTS not in written:
        lines.append(f"Then: add to the agents of {folder / _AGENTS}:\n{indent(preset.entry(str(named)), '  ')}")
    steps = remaining_steps(service, folder, written, branch, named=named is not None, knows_passgate=own.is_known)
    if _DEPLOYMENTS in written and not repository.is_of_remote:
        steps.append(_name_warning(repository.text))
    lines += [f"Then: {what}" for what in steps]
    made = [str(folder / name) for name in wanted if name in written]
    kept = [str(folder / name) for name in wanted if name not in written]
    answer(lambda: "\n".join(lines), lambda: {"wrote": made, "kept": kept}, as_json=as_json, quiet=quiet)
    return 0


def _kind(agent: str, folder: Path) -> str:
    """Find the kind of an agent. Raise `UsageError` for one that cannot be used, or that only proves graders."""
    from passgate.tasks.agents import make_agent
    from passgate.tasks.errors import UsageError
    from passgate.tasks.planning.named_agents import find_agent

    spec = find_agent(agent, folder / _GATES, folder / "suites")
    if spec.is_reference:
        raise UsageError(f"{agent} proves your graders and is not an agent: name the one that the gate is for")
    if folder.resolve() == Path.cwd():
        make_agent(spec, folder / "suites")
    return spec.kind


def _name(agent: str, folder: Path) -> str:
    """Return the name of an agent in the workflow: that in agents.yaml, or as given if agents.yaml exists already."""
    from passgate.tasks.formats.agents_file import looks_like_a_form

    is_there = (folder / _AGENTS).exists()
    return agent if is_there or not looks_like_a_form(agent) else _NAME


def _ci_files(
    service: CiService, named: str | None, version: str, branch: str, preset: "Preset | None"
) -> dict[Path, bytes]:
    with as_file(files("passgate").joinpath("flows", "cli", "scaffold")) as scaffold:
        return ci_contents(service, scaffold, named, version, branch, preset.package if preset else "")


def _contents(
    agent: str | None, named: str | None, tasks: str, policy: str, preset: "Preset | None"
) -> dict[Path, bytes]:
    """Return the content of the files of the gate, by their paths. `tasks` is the scaffold's folder."""
    package = files("passgate")
    with as_file(package.joinpath("flows", "cli", "scaffold")) as scaffold:
        first = scaffold / tasks
        starters = [path for path in sorted(first.rglob("*")) if path.is_file()]
        contents = {path.relative_to(first.parent): path.read_bytes() for path in starters if path.suffix != ".pyc"}
        contents[_GATES] = policy.encode()
        schemas = {name: package.joinpath("schema", f"{name}.schema.json").read_bytes() for name in _SCHEMA_NAMES}
    if preset is not None:
        contents[_AGENTS] = f"version: 1\nagents:\n{indent(preset.entry(str(named)), '  ')}".encode()
    elif named == _NAME:
        contents[_AGENTS] = f"version: 1\nagents:\n  {_NAME}:\n    agent: {json.dumps(agent)}\n".encode()
    named_schemas = {path: _add_schema_comment(path, content) for path, content in contents.items()}
    return named_schemas | {_SCHEMAS / f"{name}.schema.json": content for name, content in schemas.items()}


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


def _name_warning(repository: str) -> str:
    """Return what to check if the deployments have the name of a folder, which another repository may have too."""
    return (
        "no remote `origin` on a server names the deployments: if another repository on your Prefect server is called "
        f"{repository} too, replace {repository} in prefect.yaml and prefect-automations.yaml, or each `prefect "
        "deploy` replaces the deployments of the other"
    )


def _deployments(repository: str, agent: str | None) -> dict[Path, bytes]:
    """Return the files for Prefect, with the names of this repository and its agent."""
    from passgate.flows.repository_name import UNNAMED

    contents = {}
    with as_file(files("passgate").joinpath("flows", "cli", "scaffold", "prefect")) as scaffold:
        for file in sorted(scaffold.glob("*.yaml")):
            text = file.read_text(encoding="utf-8").replace(UNNAMED, repository)
            text = text.replace(UNNAMED.replace("-", "_"), repository.replace("-", "_"))
            if agent is not None:
                text = text.replace("agent: oracle", f"agent: {json.dumps(agent)}")
            contents[Path(file.name)] = text.encode()
    return contents


def _add_schema_comment(file: Path, content: bytes) -> bytes:
    """Add the comment by which an editor's YAML language server finds the schema of a file."""
    name = _schema_name(file)
    if name is None:
        return content
    schema = os.path.relpath(_SCHEMAS / f"{name}.schema.json", file.parent)
    return f"# yaml-language-server: $schema={schema}\n".encode() + content


def _schema_name(file: Path) -> str | None:
    if file in (_GATES, _AGENTS):
        return file.stem
    if file.name == "sandbox.yaml":
        return "sandbox"
    return "task" if file.suffix == ".yaml" and file.parts[0] == "suites" and file.parts[1] != "_shared" else None
