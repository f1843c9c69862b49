"""The agents that files name: agents.yaml, and AgentV's `.agentv/targets.yaml`, with the place of every problem.

What is wrong with a target is reported when that target is asked for, so that it does not spoil the others.
"""

import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from passgate.tasks.errors import Problem, UsageError
from passgate.tasks.formats.document import Document, read_document
from passgate.tasks.formats.findings import Finding, is_address
from passgate.tasks.formats.schema_check import check_schema, nearest, schema_validator, validate
from passgate.tasks.model.agent import (
    KINDS,
    STANDING_ALONE,
    AgentEntry,
    AgentKind,
    AgentSettings,
    AgentsFile,
    AgentSpec,
    CompletionOptions,
    Endpoint,
    looks_like_a_form,
)
from passgate.tasks.providers.registry import PROVIDERS

# What the values of `variables` may hold in braces.
PLACEHOLDERS = (*(provider.placeholder for provider in PROVIDERS.values()), "mcp_url", "api_key", "model")
LONGEST_NAME = 100

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
    content = document.problems or validate(AgentsFile, document, schema_validator("agents"))
    if isinstance(content, list):
        return content
    agents = {agent: _spec(document, agent, entry, parse) for agent, entry in content.agents.items()}
    problems = [problem for answer in agents.values() if isinstance(answer, list) for problem in answer]
    return problems or {agent: answer for agent, answer in agents.items() if isinstance(answer, AgentSpec)}


def _spec(document: Document, name: str, entry: AgentEntry, parse: Parse) -> AgentSpec | list[Problem]:
    problems: list[Problem] = []
    if looks_like_a_form(name):
        own = ", ".join(sorted(STANDING_ALONE))
        message = f"not a name: `--agent` takes texts with a colon, and {own}, for agents themselves"
        problems.append(document.problem(("agents", name), message, at_key=True))
    elif not name or name != name.strip() or not name.isprintable():
        message = "a name is a text that can be seen, without spaces around it"
        problems.append(document.problem(("agents", name), message, at_key=True))
    elif len(name) > LONGEST_NAME:
        problems.append(
            document.problem(("agents", name), f"a name has at most {LONGEST_NAME} characters", at_key=True)
        )
    try:
        spec = parse(entry.agent)
    except UsageError as error:
        return [*problems, document.problem(("agents", name, "agent"), str(error))]
    findings = _settings_findings(entry, spec)
    problems += [document.problem(("agents", name, *path), message) for path, message in findings]
    settings = {key: getattr(entry, key) for key in _SETTINGS if key in entry.model_fields_set}
    return problems or spec.model_copy(update={"name": name, **settings})


def _settings_findings(entry: AgentEntry, spec: AgentSpec) -> Iterator[Finding]:
    if spec.is_reference:
        yield ("agent",), f"{spec.kind} has no settings and needs no name: write `--agent {spec}`"
    for key in () if spec.is_reference else sorted(entry.model_fields_set & _SETTINGS - KINDS[spec.kind].settings):
        kinds = ", ".join(sorted(kind for kind in AgentKind if key in KINDS[kind].settings))
        yield (key,), f"means nothing to an agent of kind {spec.kind}; it is for: {kinds}"
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
    """Yield what is wrong with an endpoint. No message repeats its values: they may be keys."""
    if endpoint.base_url is not None and not is_address(endpoint.base_url):
        yield ("base_url",), "not an address as in https://host/v1, without a user and a password in it"
    if endpoint.api_key_variable is not None and not _VARIABLE.fullmatch(endpoint.api_key_variable):
        yield ("api_key_variable",), "not the name of an environment variable; the key itself never stands here"


_REFERENCE = re.compile(r"\$\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")
_AGENTV_PLACEHOLDER = re.compile(r"(?<!\$)\{[A-Z_]+\}")
_TEXT = {"type": "string", "minLength": 1}
_SECONDS = {"type": "number", "exclusiveMinimum": 0}
_READ_OVER = (
    *("grader_target", "judge_target", "workers", "verbose", "keep_temp_files", "stream_log", "log_dir"),
    *("fallback_targets", "max_retries", "retry_initial_delay_ms", "retry_max_delay_ms", "retry_backoff_factor"),
    *("retry_status_codes", "healthcheck", "version", "api_version"),
)  # keys without a meaning here: passgate has its own judge, concurrency, retries, logs and `passgate doctor`
_COMMON = {"name": _TEXT, "provider": _TEXT, "timeout_seconds": _SECONDS, **dict.fromkeys(_READ_OVER, True)}
_COMMAND = ("command", "command_template")
_FILES = ("files_format", "attachments_format")
_MODEL = ("model", "deployment")
_ADDRESS = ("base_url", "endpoint")
_CLI_KEYS = {**dict.fromkeys((*_COMMAND, *_FILES, "cwd"), _TEXT), "provider_batching": {"type": "boolean"}}
_CHAT_KEYS = {
    **dict.fromkeys((*_MODEL, *_ADDRESS, "api_key"), _TEXT),
    "api_format": {"enum": ["chat", "responses"]},
    "temperature": {"type": "number", "minimum": 0},
    "max_output_tokens": {"type": "integer", "minimum": 1},
}


@dataclass(frozen=True)
class _ChatProvider:
    """A provider whose models are reached by chat completions as OpenAI's are."""

    base_url: str | None  # `None` for OpenAI's own, and where the target has to say it
    api_key_variable: str
    limit: str = "max_tokens"  # what its requests call the most tokens of a reply


_CHAT_PROVIDERS = {
    "openai": _ChatProvider(None, "OPENAI_API_KEY", "max_completion_tokens"),
    "azure": _ChatProvider(None, "AZURE_OPENAI_API_KEY", "max_completion_tokens"),
    "openrouter": _ChatProvider("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "gemini": _ChatProvider("https://generativelanguage.googleapis.com/v1beta/openai", "GOOGLE_GENERATIVE_AI_API_KEY"),
}
_REMEDIES = {
    "anthropic": "give the command of an agent that calls it as provider `cli`, or name provider `openai` with the "
    "base_url of an OpenAI-compatible endpoint",
    "mock": "write a function that returns the text and name it in agents.yaml as `python:MODULE:FUNCTION`",
}
_REMEDY = "give the command that starts it as provider `cli`"
SUPPORTED = ("cli", *_CHAT_PROVIDERS)  # the providers whose targets can be agents


@dataclass(frozen=True)
class AgentVTarget:
    """One target of a file and what its texts stand for."""

    document: Document
    position: int  # in the list of targets
    entry: dict[str, Any]  # what the file says of it
    folder: Path  # what relative paths start from
    environment: Mapping[str, str]

    def problem(self, message: str, key: str | None = None) -> Problem:
        """Return a problem of the target, at one of its keys."""
        return self.document.problem(("targets", self.position, *([key] if key else [])), message)

    def key(self, *names: str) -> str | None:
        """Return which of several names of one thing the target uses."""
        return next((name for name in names if name in self.entry), None)

    def text(self, key: str | None) -> str | None:
        """Return the text at a key, with what its variables stand for."""
        return None if key is None else _fill_references(self.entry[key], self.environment) or None

    def shape_problems(self, keys: Mapping[str, Any]) -> list[Problem]:
        """Return how the target differs from what its provider takes, and which of its variables are not set."""
        schema = {"properties": {**_COMMON, **keys}, "additionalProperties": False}
        whole = {"properties": {"targets": {"prefixItems": [*[True] * self.position, schema]}}}
        problems = check_schema(self.document, Draft202012Validator(whole))
        texts = {key: value for key, value in self.entry.items() if key in keys and isinstance(value, str)}
        for key, text in texts.items() if not problems else ():
            if key != "api_key" and (missing := _missing_variables(text, self.environment)):
                problems.append(self.problem(missing, key))
            if "\0" in text:
                problems.append(self.problem("holds a NUL character, which no command and no address can", key))
        return problems


def _missing_variables(text: str, environment: Mapping[str, str]) -> str | None:
    missing = [name for name in _REFERENCE.findall(text) if not environment.get(name, "").strip()]
    return f"not set in the environment: {', '.join(dict.fromkeys(missing))}" if missing else None


def _fill_references(text: str, environment: Mapping[str, str]) -> str:
    return _REFERENCE.sub(lambda found: environment[found[1]], text).strip()


def target_agent(target: AgentVTarget) -> AgentSpec | list[Problem]:
    """Return the agent that a target without an alias is, or everything that keeps it from being one."""
    provider = target.entry.get("provider")
    if not isinstance(provider, str):
        return [target.problem("expected a text `provider`", "provider")]
    if provider.lower() == "cli":
        return _cli_agent(target)
    if provider.lower() in _CHAT_PROVIDERS:
        return _chat_agent(target, provider.lower())
    remedy = _REMEDIES.get(provider.lower(), _REMEDY)
    known = ", ".join(SUPPORTED)
    return [target.problem(f"the provider {provider!r} cannot be an agent ({known} can): {remedy}", "provider")]


def _cli_agent(target: AgentVTarget) -> AgentSpec | list[Problem]:
    problems = target.shape_problems(_CLI_KEYS)
    if problems:
        return problems
    line = target.text(target.key(*_COMMAND))
    if line is None:
        problems.append(target.problem("the key 'command' is missing"))
    if target.entry.get("provider_batching") is True:
        problems.append(target.problem("every trial starts a command of its own: no batches", "provider_batching"))
    # A placeholder of AgentV's in it makes a command a line for a shell, as AgentV's are.
    if not _AGENTV_PLACEHOLDER.search(line or ""):
        line = f": {{EVAL_ID}}; {line}"
    folder = target.text(target.key("cwd"))
    if folder is not None:
        # As AgentV has it: a workspace goes before the folder that the target names.
        path = shlex.quote(os.path.normpath(target.folder / folder))
        line = f'[ -n "$(ls -A)" ] || cd {path} || exit; {line}'
    return problems or _target_spec(
        target, AgentKind.CLI, line or "", {"files_format": target.text(target.key(*_FILES))}
    )


def _chat_agent(target: AgentVTarget, provider: str) -> AgentSpec | list[Problem]:
    problems = target.shape_problems(_CHAT_KEYS)
    if problems:
        return problems
    usual, address = _CHAT_PROVIDERS[provider], target.key(*_ADDRESS)
    model, base_url, variable = target.text(target.key(*_MODEL)), target.text(address), usual.api_key_variable
    if model is None:
        problems.append(target.problem("the key 'model' is missing"))
    if provider == "azure" and base_url is None:
        problems.append(target.problem("the key 'endpoint' is missing"))
    if "api_key" in target.entry:
        if reference := _REFERENCE.fullmatch(target.entry["api_key"].strip()):
            variable = reference[1]
        else:
            message = "keys do not stand in files: write ${{ NAME }}, the variable that holds it"
            problems.append(target.problem(message, "api_key"))
    if problems:
        return problems
    if provider == "azure" and base_url is not None:  # the name or the address of a resource
        base_url = base_url.rstrip("/") if "://" in base_url else f"https://{base_url}.openai.azure.com"
        base_url = f"{base_url.removesuffix('/v1').removesuffix('/openai')}/openai/v1"
    endpoint = Endpoint(base_url=base_url or usual.base_url, api_key_variable=variable)
    wrong = [target.problem(message, address) for _, message in endpoint_findings(endpoint)]
    names = {"temperature": "temperature", "max_output_tokens": usual.limit}
    parameters = {names[key]: target.entry[key] for key in names if key in target.entry}
    settings = {"upstreams": {"openai": endpoint}, "completion": CompletionOptions(parameters=parameters)}
    return wrong or _target_spec(target, AgentKind.OPENAI, model or "", settings)


def _target_spec(target: AgentVTarget, kind: AgentKind, what: str, settings: Mapping[str, Any]) -> AgentSpec:
    given = {key: value for key, value in settings.items() if value is not None}
    if "timeout_seconds" in target.entry:
        given["timeout_seconds"] = target.entry["timeout_seconds"]
    return AgentSpec(kind=kind, target=what, name=target.entry["name"], **given)


@dataclass(frozen=True)
class TargetsFile:
    """The targets of one file, not yet looked into."""

    document: Document
    folder: Path  # what relative paths of the file start from
    positions: Mapping[str, int]  # where each target stands in the list


def read_targets(file: Path, name: str) -> TargetsFile | list[Problem]:
    """Return the targets of a file, or why it is not a file of targets. `name` is what problems call the file."""
    document = read_document(file, name)
    if document.problems:
        return document.problems
    entries = document.data.get("targets") if isinstance(document.data, dict) else None
    if not isinstance(entries, list):
        return [document.problem((), "expected a mapping with a list `targets`")]
    positions: dict[str, int] = {}
    problems: list[Problem] = []
    for position, entry in enumerate(entries):
        target = entry.get("name") if isinstance(entry, dict) else None
        if not isinstance(target, str) or not target:
            problems.append(document.problem(("targets", position), "expected a mapping with a `name`"))
        elif target in positions:
            problems.append(document.problem(("targets", position, "name"), f"duplicate name {target!r}"))
        else:
            positions[target] = position
    return problems or TargetsFile(document, file.absolute().parent, positions)


def find_target_agent(
    files: Sequence[TargetsFile], name: str, environment: Mapping[str, str]
) -> AgentSpec | list[Problem]:
    """Return the agent that a target is, or why it cannot be one. Of a name in several files the first file's counts.

    `${{ NAME }}` stands for a variable of `environment`. Keys are left where they are: only their variables are named.
    """
    seen: list[str] = []
    known = sorted({target for file in files for target in file.positions})
    while True:
        seen.append(name)
        file = next(file for file in files if name in file.positions)
        position = file.positions[name]
        entry = file.document.data["targets"][position]
        target = AgentVTarget(file.document, position, entry, file.folder, environment)
        if "use_target" not in entry:
            return target_agent(target)
        if not isinstance(entry["use_target"], str):
            return [target.problem("expected the name of a target", "use_target")]
        if missing := _missing_variables(entry["use_target"], environment):
            return [target.problem(missing, "use_target")]
        name = _fill_references(entry["use_target"], environment)
        if name in seen:
            others = ", ".join([*seen, name])
            return [target.problem(f"the targets refer to each other: {others}", "use_target")]
        if name not in known:
            return [target.problem(f"no target {name!r}{nearest(name, known)}", "use_target")]
