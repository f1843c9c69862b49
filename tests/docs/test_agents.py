"""What docs/agents.md says of each kind of agent."""

import json
import re

import pytest

from passgate.tasks.agents import agent_class, http, http_templates, openai
from passgate.tasks.agents.cli import _ANNOUNCED
from passgate.tasks.agents.commands import AGENTV_PLACEHOLDERS, PLACEHOLDERS, agentv_transcript
from passgate.tasks.agents.presets import presets
from passgate.tasks.agents.tools import RecordedTools
from passgate.tasks.formats.loading import load_prices
from passgate.tasks.model.agent import AgentKind, AgentSpec, Endpoint
from passgate.tasks.model.transcript import EndReason, Message, ToolCall, Transcript
from passgate.tasks.planning.diagnosis import diagnose
from passgate.tasks.providers.retries import TRY_AGAIN
from passgate.tasks.reports.checks import doctor_report
from tests.answering import answering
from tests.docs.pages import PAGES, code_in, entries, listing, rows, section, table, terms
from tests.project import REPOSITORY

PAGE = "docs/agents.md"


def test_every_kind() -> None:
    for kind, forms, _ in rows(section(PAGE, "Agents"))[2:]:
        assert all(form == kind.strip("`") or form.startswith(f"{kind.strip('`')}:") for form in code_in(forms))


def test_the_placeholders_of_a_command_and_their_variables() -> None:
    placeholders = entries(listing(section(PAGE, "cli"), "replaces each placeholder"))
    assert {entry.note.strip("`"): entry.name.strip("{}") for entry in placeholders if entry.note} == _ANNOUNCED


def test_the_placeholders_and_the_output_of_agentv() -> None:
    text = section(PAGE, "AgentV's commands")
    placeholders = {entry.name.strip("{}"): entry.meaning for entry in entries(listing(text))}
    assert list(placeholders) == list(AGENTV_PLACEHOLDERS)
    for name, ours in AGENTV_PLACEHOLDERS.items():
        assert ours not in PLACEHOLDERS or placeholders[name] == f"as `{{{ours}}}`"
    call = {"tool": "a", "input": {}, "output": "b", "status": "error", "duration_ms": 1}
    output = [{"role": "assistant", "content": "c", "tool_calls": [call]}]
    examples = {
        "output": output,
        "output_messages": output,
        "text": "c",
        "token_usage": {"input": 1, "output": 2, "cached": 1},
        "cost_usd": 0.5,
        "error": "no",
    }
    assert terms(listing(text, "AgentV's JSON")) == list(examples)
    for left_out in ("output", "output_messages"):
        document = {key: value for key, value in examples.items() if key not in {left_out, "text"}}
        transcript = agentv_transcript(json.dumps(document))
        assert (transcript.end, transcript.output) == (EndReason.CRASHED, "c")
        assert (transcript.usage.tokens_cached, transcript.usage.cost_usd) == (1, 0.5)
        assert set(call) <= code_in(text)


def test_the_placeholders_of_requests_and_headers() -> None:
    placeholders = entries(listing(section(PAGE, "http"), "A placeholder"))
    in_headers = {entry.name.strip("{} ") for entry in placeholders if entry.note == "in headers too"}
    assert in_headers == set(http_templates.HEADER_PLACEHOLDERS)


def test_whose_fault_an_answer_is() -> None:
    happened = {row[0]: row[1] for row in rows(table(section(PAGE, "http"), "what happened"))[2:]}
    errors = {int(code): outcome for what, outcome in happened.items() for code in re.findall(r"\b4\d\d\b", what)}
    assert {code for code, outcome in errors.items() if outcome.startswith("is an error")} == http._NOT_THE_AGENTS_FAULT
    assert {code for code, outcome in errors.items() if "tried again" in outcome} == TRY_AGAIN


def test_what_passgate_says_itself_in_a_request() -> None:
    parameters = section(PAGE, "openai").partition("**Parameters**")[2].partition("itself")[0]
    assert code_in(parameters) - {"completion.parameters"} == set(openai.OWN_KEYS)


def test_a_call_that_did_not_come_is_shown_as_it_says() -> None:
    order, refund = (
        ToolCall(tool="get_order", arguments={"order": 17}),
        ToolCall(tool="refund", arguments={"order": 17, "amount": 49.0}),
    )
    recording = Transcript(messages=(Message(role="assistant", tool_calls=(order, refund)),))
    assert RecordedTools(recording, "strict", [order]).missing in PAGES[PAGE]


def test_which_agents_have_conversations() -> None:
    text = section(PAGE, "Conversations")
    alone = {kind for kind in AgentKind if not agent_class(kind).has_conversations}
    assert set(terms(text)) == set(AgentKind) - alone
    assert alone <= code_in(text)


async def test_doctor_finds_what_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with answering(401) as server:
        upstreams = {"openai": Endpoint(base_url=f"{server.url}/v1")}
        agent = AgentSpec(kind=AgentKind.OPENAI, target="gpt-5-mini", name="desk-loop", upstreams=upstreams)
        symptoms = await diagnose(agent, REPOSITORY / "suites", load_prices(REPOSITORY / "gates.yaml"), None)
        report = doctor_report(symptoms, width=100, color=False).replace(server.url, "https://models.example")
    assert report.rpartition("\n\n")[0] in PAGES[PAGE]


def test_the_presets() -> None:
    listed = {row[0].strip("`"): row[1:3] for row in rows(section(PAGE, "Presets"))[2:]}
    assert listed == {
        name: [f"`{preset.program}` of `{preset.package}`", f"`{preset.key}`"] for name, preset in presets().items()
    }


PRESETS, OWN, SDKS = "tests/flows/test_presets.py", "tests/flows/test_tools_of_agents.py", "tests/cli/test_sdks.py"
SHOWN = {
    PRESETS: {
        "tools": "test_an_incident_is_replayed_to_the_agent_that_has_learnt",
        "replay": "test_a_call_that_was_not_recorded_fails",
        "budgets": "test_budgets_hold_exactly",
        "fixed model": "test_a_task_without_tools_runs_too",
        "no tools of GitHub": "test_a_task_without_tools_runs_too",
        "newer models call tools from code": "test_newer_models_of_codex_call_tools_from_code",
    },
    OWN: {
        "tools": "test_the_mcp_servers_of_the_task",
        "replay": "test_a_recording_passes_its_own_behaviour_and_no_other",
        "budgets": "test_a_budget_ends_the_trial_before_the_tool_runs",
        "no isolation": "test_only_a_python_function_is_not_isolated",
    },
    SDKS: dict.fromkeys(("tools", "replay", "budgets"), "test_an_agent_has_its_tools_budgets_and_recordings"),
}
"""The tests that show what a cell says, by the file, and by the column or the limit."""


def test_each_cell_of_the_support_has_a_test_that_shows_it() -> None:
    head, _, *lines = rows(section(PAGE, "Support"))
    listed = [name for agents, *_ in lines for name in code_in(agents)]
    own = {AgentKind.CLI, AgentKind.PYTHON, AgentKind.HTTP, AgentKind.OPENAI}
    assert {*presets(), *own} < set(listed)
    assert len(listed) == len(set(listed))
    for agents, tools, replay, budgets, limits in lines:
        assert (tools, replay, budgets) == ("in process" if "`openai`" in agents else "MCP", "yes", "exact")
        for name in code_in(agents):
            file = PRESETS if name in presets() else OWN if name in own else SDKS
            source = (REPOSITORY / file).read_text()
            for said in [*head[1:4], *filter(None, limits.split(", "))]:
                test = re.search(rf"((?:^@.*\n)*)^(?:async )?def {SHOWN[file][said]}\(", source, re.MULTILINE)
                assert test, (name, said)
                assert file != OWN or said == "no isolation" or "@each_kind" in test[1]
                assert file != SDKS or f'"{name}": lambda' in source
