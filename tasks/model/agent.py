"""The system under test: what it is, which models it may call and where those calls go."""

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Annotated, Any, Final, Literal, NamedTuple
from urllib.parse import urlsplit

from pydantic import Field

from passgate.tasks.model.base import Frozen, Seconds, Text


class AgentKind(StrEnum):
    ORACLE = "oracle"
    NOP = "nop"
    CLI = "cli"
    PYTHON = "python"
    HTTP = "http"
    OPENAI = "openai"
    REPLAY = "replay"


class Endpoint(Frozen):
    """Where the calls of one provider's API go."""

    base_url: Text | None = None
    """As in `https://host/v1`. When not given: the provider's usual variable, else its public address."""
    api_key_variable: Text | None = None
    """The environment variable that holds the key; the provider's usual one when not given."""


class HttpOptions(Frozen):
    """How an `http` agent is asked and answers. Templates hold `{{ prompt }}`, `{{ session }}` and the like."""

    method: Literal["POST", "PUT"] = "POST"
    headers: dict[str, str] = {}
    """Values may hold `${{ NAME }}`: the value of an environment variable."""
    request: Any = {"prompt": "{{ prompt }}", "session": "{{ session }}"}
    """The JSON body, a template."""
    output: Text = "output"
    """Where the answer's text stands in the reply: keys and list indices with dots."""
    tool_calls: Text | None = None
    """Where the reply lists its tool calls, each with `tool` or `name`, `arguments` or `input`, and `result`."""
    tokens_in: Text | None = None
    """Where the reply holds the number of tokens into the model."""
    tokens_out: Text | None = None
    """Where the reply holds the number of tokens out of the model."""
    cost_usd: Text | None = None
    """Where the reply holds the cost in US dollars."""
    complete: bool = False
    """Whether `tool_calls` lists every tool call that the agent makes."""


class CompletionOptions(Frozen):
    """What passgate's own tool loop (`openai`) says to the model beside the conversation."""

    system: str | None = None
    """The system message."""
    parameters: dict[str, Any] = {}
    """Further keys of the request, as in `temperature: 0.7` or `max_completion_tokens: 2000`."""


class AgentSettings(Frozen):
    """The settings of an agent of any kind in agents.yaml."""

    model: Text | None = None
    """The model that every call is made with, whatever the agent asks for."""
    upstreams: dict[str, Endpoint] = {}
    """Where the calls go, by the provider whose API the agent speaks, as in `openai`."""
    variables: dict[str, str] = {}
    """Environment variables that the agent gets. Values may hold `{openai_base_url}` and those of other providers,
    `{api_key}` and `{model}`."""
    timeout_seconds: Seconds = 300
    """How long a provider, or an `http` agent, may be silent."""
    concurrency_limit: Text | None = None
    """The global concurrency limit of Prefect that several runs share: each trial holds one of its slots."""
    http: HttpOptions = HttpOptions()
    completion: CompletionOptions = CompletionOptions()
    cwd: Text | None = None
    """The folder that a command starts in, relative to the repository; the trial's workspace when not given."""
    files_format: str = "{path}"
    """How each file of a task is named in the placeholder `{FILES}` of a command."""


class KindOfAgent(NamedTuple):
    """What is known of all agents of a kind."""

    forms: tuple[str, ...]
    """How `--agent` writes them: the kind by itself, the kind with what follows its colon, or both."""
    settings: frozenset[str] = frozenset()  # What of `AgentSettings` means anything to them

    @property
    def stands_alone(self) -> bool:
        """Whether the kind by itself names an agent."""
        return any(":" not in form for form in self.forms)

    @property
    def takes_target(self) -> bool:
        """Whether anything may follow a colon."""
        return any(":" in form for form in self.forms)


_CALLS: Final = frozenset({"model", "upstreams", "timeout_seconds", "concurrency_limit"})
"""The settings of whatever calls models."""
KINDS: Final[Mapping[AgentKind, KindOfAgent]] = {
    AgentKind.ORACLE: KindOfAgent(("oracle", "oracle:COUNTEREXAMPLE")),
    AgentKind.NOP: KindOfAgent(("nop",)),
    AgentKind.CLI: KindOfAgent(("'cli:COMMAND'",), _CALLS | {"variables", "cwd", "files_format"}),
    AgentKind.PYTHON: KindOfAgent(("python:MODULE:FUNCTION",), _CALLS | {"variables"}),
    AgentKind.HTTP: KindOfAgent(("http:URL",), _CALLS | {"http"}),
    AgentKind.OPENAI: KindOfAgent(("openai:MODEL",), _CALLS | {"completion"}),
    AgentKind.REPLAY: KindOfAgent(("replay", "replay:FOLDER")),
}
STANDING_ALONE: Final = frozenset(kind for kind, known in KINDS.items() if known.stands_alone)


def looks_like_a_form(name: str) -> bool:
    """Return whether `--agent` takes a text for an agent itself, so that it cannot be the name of one."""
    return ":" in name or name in STANDING_ALONE


class AgentSpec(AgentSettings):
    """The system under test, as in `cli:COMMAND` (kind `cli`, target `COMMAND`), or by its name in agents.yaml."""

    kind: AgentKind
    target: str = ""
    name: str = ""

    @property
    def is_reference(self) -> bool:
        """Whether it proves graders rather than being measured: its time and cost say nothing."""
        return self.kind in {AgentKind.ORACLE, AgentKind.NOP}

    @property
    def calls_models(self) -> bool:
        """Whether a meter has to stand between it and the models."""
        return self.kind not in {AgentKind.ORACLE, AgentKind.NOP, AgentKind.REPLAY}

    @property
    def asks_in_process(self) -> bool:
        """Whether it runs in passgate's own process and asks the meter there, without its server."""
        return self.kind is AgentKind.OPENAI

    @property
    def names_mcp(self) -> bool:
        """Whether its command, request or variables contain the address of the trial's MCP server."""
        texts = f"{self.target} {self.http.request} {' '.join(self.variables.values())}".replace("{ ", "{")
        return "{mcp_" in texts or "PASSGATE_MCP_URL" in texts

    @property
    def fixed_model(self) -> str | None:
        """The model of every call, where that is known before the agent runs."""
        return self.model or (self.target if self.kind is AgentKind.OPENAI else None)

    @property
    def own_endpoints(self) -> list[tuple[str, Endpoint]]:
        """The providers that it plainly calls and the endpoints that it names: passgate's own loop speaks OpenAI's."""
        if not self.calls_models:
            return []
        if self.kind is AgentKind.OPENAI:
            return [(self.kind, self.upstreams.get(self.kind, Endpoint()))]
        return [(name, endpoint) for name, endpoint in self.upstreams.items() if endpoint != Endpoint()]

    def __str__(self) -> str:
        if self.name:
            return self.name
        return f"{self.kind}:{self.target}" if self.target else str(self.kind)


class AgentEntry(AgentSettings):
    """One agent of agents.yaml."""

    agent: Text
    """What it is, as `--agent` takes it: `cli:COMMAND`, `python:MODULE:FUNCTION`, `http:URL`, `openai:MODEL` or
    `replay:FOLDER`."""


class AgentsFile(Frozen):
    """agents.yaml: the agents that `--agent NAME` knows."""

    version: Annotated[int, Field(ge=1, le=1)] = 1
    agents: dict[str, AgentEntry]


_OWN = tuple(name for name in AgentSettings.model_fields if name != "upstreams")  # Settings of the agent itself


class AgentChange(Frozen):
    """How a change's definition of an agent differs from that of the merge base."""

    name: str
    judging: tuple[str, ...] = ()
    """What differs of what says how the agent is measured. Where there is any, the merge base's definition is run."""
    own: tuple[str, ...] = ()
    """What differs of the agent itself, which is what the change is about."""

    @property
    def by_base(self) -> bool:
        """Whether the merge base's definition is run."""
        return bool(self.judging)

    @property
    def note(self) -> str:
        """Which definition of the agent is run, and why, in a line."""
        if self.by_base:
            judging = f"settings by which the agent {self.name!r} is judged ({', '.join(self.judging)})"
            return f"this change edits {judging}: the merge base's definition is run"
        differ = "differ" if len(self.own) > 1 else "differs"
        return f"the agent {self.name!r} is run as this change defines it: its {', '.join(self.own)} {differ}"


# These make any program run the code of their author: what the dynamic linker, a shell, git or an interpreter loads.
_CHANGES_PROGRAMS: Final = re.compile(
    r"LD_\w+|DYLD_\w+|GCONV_PATH|GLIBC_TUNABLES|(BASH_)?ENV|PYTHON(PATH|HOME|STARTUP|USERBASE|WARNINGS|BREAKPOINT)"
    r"|NODE_(OPTIONS|PATH)|BUN_OPTIONS|GIT_(?!AUTHOR|COMMITTER)\w+|PERL5?(LIB|OPT)|RUBY(LIB|OPT)|\w*JAVA\w*_OPTIONS"
).fullmatch


def agent_change(name: str, before: AgentSpec, now: AgentSpec) -> AgentChange | None:
    """Return the differences between two definitions of the agent `name`, or `None` if they are equal."""
    if before == now:
        return None
    judging = tuple(_judging(before, now))
    own = [key for key in _OWN if getattr(before, key) != getattr(now, key)]
    # Recordings and another host are not the work of the author of the change on the agent.
    if before.target != now.target and not {"recordings", "address"} & {*judging}:
        own.insert(0, "agent")
    return AgentChange(name=name, judging=judging, own=tuple(own))


def _judging(before: AgentSpec, now: AgentSpec) -> Iterator[str]:
    """Return the settings that decide who is measured, by whom and under which name, without possible keys."""
    if before.kind is not now.kind:
        yield f"kind ({before.kind} at the merge base, {now.kind} here)"
    if str(before) != str(now):  # by which its history goes
        yield "name"
    if before.upstreams != now.upstreams:
        yield "upstreams"
    names = sorted({name for name, _ in before.variables.items() ^ now.variables.items() if _CHANGES_PROGRAMS(name)})
    if names:
        yield f"variables {', '.join(names)}"
    if before.kind is now.kind and before.target != now.target:
        origins = {(parts.scheme.lower(), parts.netloc.lower()) for parts in map(urlsplit, (before.target, now.target))}
        if now.kind is AgentKind.REPLAY:
            yield "recordings"
        elif now.kind is AgentKind.HTTP and len(origins) > 1:
            yield "address"
