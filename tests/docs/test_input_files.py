"""The files that people write: every key is in a table, and every key of a table is one."""

import re
from collections.abc import Iterable
from dataclasses import fields
from typing import get_args

import pytest
import yaml
from pydantic import BaseModel

from passgate.flows.cli.engine import _SETTINGS as SETTINGS
from passgate.tasks.agents import http_templates
from passgate.tasks.agents.commands import PLACEHOLDERS
from passgate.tasks.agents.interface import Attempt
from passgate.tasks.agents.replay import RECORDINGS
from passgate.tasks.formats import agents_file
from passgate.tasks.graders.probes import mutants
from passgate.tasks.model.agent import KINDS, AgentKind, AgentsFile
from passgate.tasks.model.baseline import BaselineState, Pins
from passgate.tasks.model.checks import Fault
from passgate.tasks.model.grader_options import AssertionOptions, GraderOptions
from passgate.tasks.model.graders import GRADER_TYPES, Aggregator
from passgate.tasks.model.policy import Policy, QuarantineFile, Rule
from passgate.tasks.model.price import PriceTable
from passgate.tasks.model.run import RunRequest
from passgate.tasks.model.sandbox import SandboxFile
from passgate.tasks.model.task import Budgets, GateName, SimulatedUser, TaskFile, Tool
from passgate.tasks.model.transcript import Message, ToolCall, Transcript
from passgate.tasks.model.verdict import Verdict
from tests.docs.keys import defaults, own_names, paths
from tests.docs.pages import PAGES, blocks, code_in, entries, listing, meanings, rows, section, table, terms
from tests.project import REPOSITORY

MODELS: dict[str, type[BaseModel]] = {
    get_args(model.model_fields["type"].annotation)[0]: model
    for model in GraderOptions.__subclasses__()
    if model is not AssertionOptions
}
"""passgate's own graders."""
COMMON = set(GraderOptions.model_fields) | {"type"}
ACTED = Transcript(
    messages=(
        Message(role="assistant", tool_calls=(ToolCall(tool="find"), ToolCall(tool="send"))),
        Message(role="assistant", content="Sent."),
    ),
    output="Sent.",
)
MUTANTS = [mutant.what for mutant in mutants(ACTED)]
WAYS = {"suites.*": "suites.SUITE", "gates.*": "gates.GATE", "agents.*": "agents.NAME", "models.*": "models.PATTERN"}


def as_written(path: str) -> str:
    """A key as the tables name it: with a word for what users name themselves."""
    named = path.replace("upstreams.*", "upstreams.PROVIDER").replace("mcp_servers.*", "mcp_servers.NAME")
    return re.sub(r"^\w+\.\*", lambda match: WAYS[match[0]], named)


@pytest.mark.parametrize(
    ("page", "heading", "names"),
    [
        ("docs/tasks.md", "Every key", map(as_written, paths(TaskFile))),
        ("docs/tasks.md", "Sandboxes", SandboxFile.model_fields),
        ("docs/gates.md", "Every key", map(as_written, paths(Policy))),
        ("docs/gates.md", "Rules", (*Rule, *GateName)),
        ("docs/gates.md", "verdict.json", Verdict.model_fields),
        ("docs/agents.md", "agents.yaml", map(as_written, paths(AgentsFile))),
        ("docs/agents.md", "python", [field.name for field in fields(Attempt)]),
        ("docs/meter.md", "Prices", map(as_written, paths(PriceTable))),
        ("docs/meter.md", "Budgets", Budgets.model_fields),
        ("docs/baseline.md", "Pins", paths(Pins)),
        ("docs/baseline.md", "Quarantine", paths(QuarantineFile)),
        ("docs/graders.md", "Graders", COMMON),
        ("docs/grader-checks.md", "Faults", Fault),
        ("docs/prefect.md", "A server of your own", SETTINGS),
        ("docs/prefect.md", "Parameters", RunRequest.model_fields),
    ],
)
def test_a_table_has_every_name_and_no_other(page: str, heading: str, names: Iterable[str]) -> None:
    assert set(terms(section(page, heading))) == set(map(str, names))


@pytest.mark.parametrize(
    ("page", "heading", "begin", "names"),
    [
        ("docs/agents.md", "Agents", "", AgentKind),
        ("docs/agents.md", "cli", "replaces each placeholder", [f"{{{name}}}" for name in PLACEHOLDERS]),
        ("docs/agents.md", "http", "A placeholder", [f"{{{{ {name} }}}}" for name in http_templates.PLACEHOLDERS]),
        ("docs/agents.md", "replay", "", [one.format(task_id="TASK_ID", trial="TRIAL") for one in RECORDINGS]),
        ("docs/agents.md", "Targets of AgentV", "", agents_file.SUPPORTED),
        ("docs/baseline.md", "States", "", BaselineState),
        ("docs/eval-graders.md", "composite", "by the type", get_args(Aggregator.model_fields["type"].annotation)),
        ("docs/grader-checks.md", "What is tried", "The mutants", MUTANTS),
    ],
)
def test_a_list_has_the_names_in_their_order(page: str, heading: str, begin: str, names: Iterable[str]) -> None:
    assert terms(listing(section(page, heading), begin)) == list(map(str, names))


def test_the_keys_that_every_task_must_have() -> None:
    assert set(terms(listing(section("docs/tasks.md", "Every key"), "Required keys:"))) == _needed()


def _needed() -> set[str]:
    """The keys that every task must have."""
    return {name for name, field in TaskFile.model_fields.items() if field.is_required()}


def test_the_everyday_keys_are_five_and_the_example_has_them() -> None:
    everyday = terms(section("docs/tasks.md", "The keys you write every day"))
    assert len(everyday) == 5
    of_inputs = {f"inputs.{name}" for name in terms(section("docs/tasks.md", "Inputs"))}
    assert set(everyday) <= set(paths(TaskFile)) | of_inputs
    minimal, example = (block.values[0] for block in blocks("yaml", page="docs/tasks.md")[:2])
    assert set(yaml.safe_load(minimal.text)) == _needed()
    document = yaml.safe_load(example.text)
    for path in everyday:
        value = document
        for key in path.split("."):
            value = value[key]
        assert value, path


def test_inputs_that_passgate_reads() -> None:
    sources = "".join(file.read_text() for file in (REPOSITORY / "tasks").rglob("*.py"))
    assert set(terms(section("docs/tasks.md", "Inputs"))) == set(re.findall(r'inputs\.get\("(\w+)"', sources))


def test_which_agents_the_keys_are_for() -> None:
    for kinds, keys in re.findall(
        r"^For (.*) agents:\n\n((?:.+\n)+)", section("docs/agents.md", "agents.yaml"), re.MULTILINE
    ):
        for setting in {key.removeprefix("agents.NAME.").partition(".")[0] for key in terms(keys)}:
            assert code_in(kinds) == {str(kind) for kind in AgentKind if setting in KINDS[kind].settings}, setting


def test_placeholders_of_an_agents_variables() -> None:
    said = meanings("docs/agents.md", "agents.yaml")["agents.NAME.variables"]
    assert code_in(said) == {f"{{{name}}}" for name in agents_file.PLACEHOLDERS}


def test_targets_of_agentv() -> None:
    text = section("docs/agents.md", "Targets of AgentV")
    common = {*agents_file._COMMON, "use_target"} - set(agents_file._READ_OVER)
    assert set(terms(listing(text, "Keys of all targets"))) == common
    assert set(terms(listing(text, "Keys of `cli` targets"))) == set(agents_file._CLI_KEYS)
    assert set(terms(listing(text, "Keys of the others"))) == set(agents_file._CHAT_KEYS)
    ignored = text.partition("These keys are ignored")[2].partition(": ")[2].partition(". ")[0]
    assert code_in(ignored) == set(agents_file._READ_OVER)


def test_addresses_and_keys_of_the_providers_of_agentv() -> None:
    for provider, _, base_url, key in rows(table(section("docs/agents.md", "Targets of AgentV"), "provider"))[3:]:
        known = agents_file._CHAT_PROVIDERS[provider.strip("`")]
        assert key.strip("`") == known.api_key_variable
        assert not re.fullmatch(r"`[\w./]+`", base_url) or known.base_url == f"https://{base_url.strip('`')}"


def test_grader_types() -> None:
    assert set(MODELS) <= set(GRADER_TYPES)
    assert set(re.findall(r"^- \[`(\w+)`\]", section("docs/graders.md", "Graders"), re.MULTILINE)) == set(MODELS)


@pytest.mark.parametrize("kind", MODELS)
def test_grader_options(kind: str) -> None:
    text = section("docs/graders.md", kind)
    assert set(terms(text)) == own_names(MODELS[kind], without=COMMON)
    assert "- Failed:" in text
    assert "- Error:" in text
    assert f"type: {kind}\n" in PAGES["docs/graders.md"], "an example"


@pytest.mark.parametrize(
    ("page", "heading", "model"),
    [
        ("docs/tasks.md", "Every key", TaskFile),
        ("docs/tasks.md", "Sandboxes", SandboxFile),
        ("docs/gates.md", "Every key", Policy),
        ("docs/agents.md", "agents.yaml", AgentsFile),
        ("docs/meter.md", "Prices", PriceTable),
        ("docs/baseline.md", "Pins", Pins),
        ("docs/baseline.md", "Quarantine", QuarantineFile),
    ],
)
def test_defaults_stand_with_their_keys(page: str, heading: str, model: type[BaseModel]) -> None:
    notes = {entry.name: entry.note for entry in entries(section(page, heading))}
    for path, default in defaults(model):
        assert default in re.split(r"[ ;]+", notes[as_written(path)]), f"{path}: {default}"


def test_what_is_wrong_is_noticed() -> None:
    assert "reference.counterexamples[].name" in set(paths(TaskFile))
    assert "agents.NAME.upstreams.PROVIDER.base_url" in set(map(as_written, paths(AgentsFile)))
    assert ("max_turns", "8") in set(defaults(SimulatedUser))
    assert ("timeout_seconds", "30") in set(defaults(Tool))
