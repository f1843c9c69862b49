"""agents.yaml as a file: the agents that `--agent NAME` knows, with the place of every problem."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from passgate.tasks.errors import Problem, UsageError
from passgate.tasks.formats.document import Document, read_document
from passgate.tasks.formats.findings import Finding, is_address
from passgate.tasks.formats.schema_check import nearest, schema_validator, validated
from passgate.tasks.model.agent import KINDS, AgentEntry, AgentKind, AgentSettings, AgentsFile, AgentSpec, Endpoint
from passgate.tasks.providers.registry import PROVIDERS

AGENTS_FILE = "agents.yaml"
# What the values of `variables` may hold in braces.
PLACEHOLDERS = (*(provider.placeholder for provider in PROVIDERS.values()), "mcp_url", "api_key", "model")
LONGEST_NAME = 100

_OWN_NAMES = frozenset(kind for kind in AgentKind if KINDS[kind].stands_alone)
_SETTINGS = AgentSettings.model_fields.keys()
_PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

Parse = Callable[[str], AgentSpec]


def read_agents(file: Path, name: str, parse: Parse) -> dict[str, AgentSpec] | list[Problem]:
    """Return the agents of a file by their names, or everything that is wrong with it. `name` is what problems call the
    file.

    `parse` gives the agent that a text like `cli:COMMAND` means and raises `UsageError` for any other text.
    """
    document = read_document(file, name)
    if document.problems:
        return document.problems
    content = validated(AgentsFile, document, schema_validator("agents"))
    if isinstance(content, list):
        return content
    agents = {agent: _spec(document, agent, entry, parse) for agent, entry in content.agents.items()}
    problems = [problem for answer in agents.values() if isinstance(answer, list) for problem in answer]
    return problems or {agent: answer for agent, answer in agents.items() if isinstance(answer, AgentSpec)}


def looks_like_a_form(name: str) -> bool:
    """Whether `--agent` takes a text for an agent itself, so that it cannot be the name of one."""
    return ":" in name or name in _OWN_NAMES


def _spec(document: Document, name: str, entry: AgentEntry, parse: Parse) -> AgentSpec | list[Problem]:
    problems: list[Problem] = []
    if message := _name_problem(name):
        problems.append(document.problem(("agents", name), message, at_key=True))
    try:
        spec = parse(entry.agent)
    except UsageError as error:
        return [*problems, document.problem(("agents", name, "agent"), str(error))]
    if spec.is_reference:
        message = f"{spec.kind} has no settings and needs no name: write `--agent {spec}`"
        problems.append(document.problem(("agents", name, "agent"), message))
    for key in () if spec.is_reference else sorted(entry.model_fields_set & _SETTINGS - KINDS[spec.kind].settings):
        kinds = ", ".join(sorted(kind for kind in AgentKind if key in KINDS[kind].settings))
        message = f"means nothing to an agent of kind {spec.kind}; it is for: {kinds}"
        problems.append(document.problem(("agents", name, key), message))
    problems += [document.problem(("agents", name, *path), message) for path, message in _settings_findings(entry)]
    settings = {key: getattr(entry, key) for key in _SETTINGS if key in entry.model_fields_set}
    return problems or spec.model_copy(update={"name": name, **settings})


def _name_problem(name: str) -> str | None:
    if looks_like_a_form(name):
        own = ", ".join(sorted(_OWN_NAMES))
        return f"not a name: `--agent` takes texts with a colon, and {own}, for agents themselves"
    if not name or name != name.strip() or not name.isprintable():
        return "a name is a text that can be seen, without spaces around it"
    return f"a name has at most {LONGEST_NAME} characters" if len(name) > LONGEST_NAME else None


def _settings_findings(entry: AgentEntry) -> Iterator[Finding]:
    for provider, endpoint in entry.upstreams.items():
        for path, message in endpoint_findings(endpoint):
            yield ("upstreams", provider, *path), message
    for variable, value in entry.variables.items():
        if not _VARIABLE.fullmatch(variable):
            yield ("variables", variable), "not a name of an environment variable: letters, digits and underscores"
        for name in _PLACEHOLDER.findall(value):
            if name not in PLACEHOLDERS:
                yield ("variables", variable), f"unknown placeholder {{{name}}}{nearest(name, PLACEHOLDERS)}"
            elif name == "model" and entry.model is None:
                yield ("variables", variable), "{model} needs a `model:` of this agent"


def endpoint_findings(endpoint: Endpoint) -> Iterator[Finding]:
    """Yield what is wrong with the address and the key variable of an endpoint. No message repeats them: they may be
    keys.
    """
    if endpoint.base_url is not None and not is_address(endpoint.base_url):
        yield ("base_url",), "not an address as in https://host/v1, without a user and a password in it"
    if endpoint.api_key_variable is not None and not _VARIABLE.fullmatch(endpoint.api_key_variable):
        yield ("api_key_variable",), "not the name of an environment variable; the key itself never stands here"
