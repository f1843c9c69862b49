"""Commands as AgentV has them, really run, and what agents made for AgentV answer."""

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.builders import a_task
from tests.unit.agents.cli.programs import cli_agent
from tests.unit.agents.conftest import one_turn

from passgate.tasks.agents.commands import agentv_transcript
from passgate.tasks.agents.transcripts import LONGEST_DETAIL
from passgate.tasks.errors import MeasurementError, UsageError
from passgate.tasks.model.transcript import EndReason, Message, ToolCall, Usage

NASTY = 'Say "yes";\n$(touch pwned) `touch pwned` {TASK} {EVAL_ID} \\ \' * && é'
OURS = '["say-yes", "1", "a b", "home", "{print}"]'
SHOW = f"{shlex.quote(sys.executable)} -c 'import json, sys; print(json.dumps(sys.argv[1:]))'"


async def test_placeholders_are_words_of_a_shell(sandbox_of) -> None:
    task = a_task(inputs={"prompt": NASTY, "files": ["a.md", "b c/it's.md", "a.md"]})
    agent = cli_agent(f"{SHOW} {{PROMPT}} {{EVAL_ID}} --at={{ATTEMPT}} {{FILES}} && echo done")
    async with sandbox_of(task) as sandbox:
        transcript = await one_turn(agent, task, sandbox, trial=2)
        assert list(sandbox.workspace.iterdir()) == []
    words, done = transcript.output.splitlines()
    files = [str(sandbox.workspace / "a.md"), str(sandbox.workspace / "b c/it's.md")]
    assert json.loads(words) == [NASTY, "say-yes", "--at=2", *files]
    assert done == "done"


@pytest.mark.parametrize(
    ("files_format", "files", "words"),
    [
        ("--file {path}", ["a.md", "b c.md"], ["--file", "W/a.md", "--file", "W/b c.md"]),
        ("{basename}={path}", ["in/b c.md"], ["b c.md=W/in/b c.md"]),
        ("{basename}", ["{path}.md"], ["{path}.md"]),
        ("--no-file", ["a.md"], ["--no-file"]),
        ("{path}", [], []),
        ("{path}", None, []),
        ("{path}", "a.md", []),
    ],
)
async def test_files_are_named_as_the_agent_wants_them(sandbox_of, files_format: str, files, words: list[str]) -> None:
    task = a_task(inputs={"prompt": "Read.", "files": files})
    agent = cli_agent(f"{SHOW} {{FILES}}", files_format=files_format)
    async with sandbox_of(task) as sandbox:
        transcript = await one_turn(agent, task, sandbox)
    assert json.loads(transcript.output) == [word.replace("W/", f"{sandbox.workspace}/") for word in words]


async def test_files_of_the_tasks_messages_can_be_read(sandbox_of, suites: Path) -> None:
    (suites / "docs").mkdir()
    (suites / "docs/a b.md").write_text("of the suites")
    (suites / "b.png").write_bytes(b"image")
    blocks = [{"type": "file", "value": "docs/a b.md", "text": "..."}, {"type": "image", "value": "b.png"}]
    task = a_task(inputs={"files": ["c.md"]}, messages=[{"role": "user", "content": [*blocks, blocks[0]]}])
    async with sandbox_of(task) as sandbox:
        given = {"messages": task.messages, "files": sandbox.files}
        named = await one_turn(cli_agent(f"{SHOW} {{FILES}}"), task, sandbox, **given)
        (sandbox.workspace / "c.md").write_text("of the workspace, ")
        read = await one_turn(cli_agent("cat {FILES}"), task, sandbox, **given)
    assert json.loads(named.output) == [str(sandbox.workspace / "c.md"), str(sandbox.files["docs/a b.md"])]
    assert read.output == "of the workspace, of the suites"


PROGRAM = """
    bash -c '
    mkdir -p app && printf "%s\\n" one > app/made &&
    cat app/made > {OUTPUT_FILE} && echo "said by {EVAL_ID}" >> {OUTPUT_FILE}
    '
"""


@pytest.mark.parametrize(
    ("line", "prompt", "output"),
    [
        ("cat {PROMPT_FILE} > {OUTPUT_FILE}; echo not the answer", NASTY, NASTY),
        (f"{SHOW} {{EVAL_ID}} {{turn}} {{session}} ${{HOME:+home}} '{{print}}'", "", OURS),
        (PROGRAM, "", "one\nsaid by say-yes"),
        (f"{SHOW} {{PROMPT}}", "", '[""]'),
    ],
    ids=["prompt in a file", "our placeholders and the shell's", "program for a shell", "no prompt"],
)
async def test_what_stands_in_a_line(attempt, line: str, prompt: str, output: str) -> None:
    task = a_task(inputs={"prompt": prompt} if prompt else {})
    assert (await attempt(cli_agent(line), task, turn=1, session="a b")).output == output


FINDS = {"role": "assistant", "tool_calls": [{"tool": "find", "input": {"q": 1}, "output": "found"}]}
MESSAGES = [FINDS, {"role": "assistant", "content": "yes"}]
OUTPUT = {"output": MESSAGES, "token_usage": {"input": 5, "output": 2, "cached": 1}, "cost_usd": 0.5}


@pytest.mark.parametrize("command", ["echo {PROMPT} > {OUTPUT_FILE}", "echo {PROMPT}"])
async def test_what_it_writes_is_read_as_agentv_does(attempt, command: str) -> None:
    task = a_task(inputs={"prompt": json.dumps(OUTPUT)})
    transcript = await attempt(cli_agent(command), task)
    assert transcript.output == "yes"
    assert transcript.tool_calls == (ToolCall(tool="find", arguments={"q": 1}, result="found"),)
    assert transcript.usage == Usage(tokens_in=5, tokens_cached=1, tokens_out=2, cost_usd=0.5)
    assert (await attempt(cli_agent("echo {prompt}"), task)).output == json.dumps(OUTPUT), "passgate's own commands"


async def test_a_transcript_of_ours_goes_before_the_output(attempt) -> None:
    agent = cli_agent("""echo '{"output": "ours"}' > "$PASSGATE_TRANSCRIPT"; echo theirs > {OUTPUT_FILE}""")
    assert (await attempt(agent)).output == "ours"


@pytest.mark.parametrize(
    ("command", "end", "detail"),
    [
        ("echo half > {OUTPUT_FILE}; echo why >&2; exit 3", EndReason.CRASHED, "exit code 3: why"),
        ("true {OUTPUT_FILE}", EndReason.CRASHED, "it left nothing at {OUTPUT_FILE}"),
        ("mkfifo {OUTPUT_FILE}", EndReason.CRASHED, "it left nothing at {OUTPUT_FILE}"),
        ("ln -s /etc/passwd {OUTPUT_FILE}", EndReason.CRASHED, "it left nothing at {OUTPUT_FILE}"),
        ("""echo '{"text": "", "error": "no key"}' > {OUTPUT_FILE}""", EndReason.CRASHED, "no key"),
        ("if {PROMPT}", EndReason.CRASHED, "exit code 2: "),
        ("no-such-program {PROMPT}", EndReason.NOT_STARTED, "exit code 127: "),
        ("truncate -s 33M {OUTPUT_FILE}", EndReason.UNREADABLE, "output.json cannot be read: larger than 32 MiB"),
    ],
)
async def test_how_a_line_has_failed(attempt, command: str, end: EndReason, detail: str) -> None:
    transcript = await attempt(cli_agent(command))
    assert (transcript.end, transcript.output) == (end, "half" if "half" in command else "")
    assert transcript.detail.startswith(detail)


@pytest.mark.parametrize("files_format", ["{file}", "{path} {name}", "{PATH}"])
def test_an_unknown_placeholder_for_files_is_refused(files_format: str) -> None:
    with pytest.raises(UsageError, match=r"unknown placeholder \{\w+\} in files_format; known: \{path\}, \{basename\}"):
        cli_agent("cat {FILES}", files_format=files_format)


def read(**document: Any):
    return agentv_transcript(json.dumps(document))


def says(content: Any, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **more}


NO_MESSAGES = [
    *("yes", '"yes"', "3", "null", '["yes"]', "{", "NaN", "[" * 100_000),
    *('{"answer": 42}', '{"output": "42"}', '{"output": [1, 2]}', '{"output": []}'),
    *('{"output": [{"name": "no role"}]}', '{"cost_usd": 0.1}', '{"error": "of the answer"}'),
]


@pytest.mark.parametrize("content", NO_MESSAGES, ids=lambda content: content[:40])
def test_everything_else_is_the_answer_itself(content: str) -> None:
    transcript = agentv_transcript(f"\n{content}\n")
    assert transcript.output == content
    assert (transcript.complete, transcript.end, transcript.usage) == (False, EndReason.COMPLETED, Usage())


@pytest.mark.parametrize("key", ["output", "output_messages"])
def test_messages_are_a_complete_transcript(key: str) -> None:
    times = {"start_time": "2026-01-31T12:00:00Z", "end_time": "2026-01-31T12:00:01Z", "duration_ms": 12.5}
    call = {"tool": "find", "input": {"q": 1}, "output": ["found"], "id": "c1", "status": "ok", **times}
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Say yes."},
        says("I look.", tool_calls=[call], duration_ms=840, name="me", metadata={"a": 1}),
        {"role": "tool", "content": "found", "tool_call_id": "c1"},
        says("yes"),
    ]
    transcript = read(**{key: messages})
    assert transcript.messages == (
        Message(role="system", content="Be brief."),
        Message(role="user", content="Say yes."),
        Message(
            role="assistant",
            content="I look.",
            tool_calls=(ToolCall(tool="find", arguments={"q": 1}, result=["found"], duration_ms=12.5),),
            latency_ms=840,
        ),
        Message(role="assistant", content="yes"),
    )
    assert (transcript.output, transcript.complete) == ("yes", True)


@pytest.mark.parametrize(
    ("reported", "call"),
    [
        *(({"status": status}, {}) for status in ("ok", "unknown", None)),
        *(({"status": status}, {"is_error": True}) for status in ("error", "timeout", "cancelled")),
        ({"input": "ls"}, {"arguments": {"unparsed": "ls"}}),
        ({"input": [1]}, {"arguments": {"unparsed": [1]}}),
        ({"input": None}, {}),
    ],
)
def test_the_status_and_the_input_of_a_call(reported: dict[str, Any], call: dict[str, Any]) -> None:
    transcript = read(output=[says("", tool_calls=[{"tool": "find", **reported}])])
    assert transcript.tool_calls == (ToolCall(tool="find", **call),)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("yes", "yes"),
        (None, ""),
        ([{"type": "text", "text": "a"}, {"path": "x"}, {"type": "text", "value": "b"}, "c"], "a\nb\nc"),
        ({"answer": 42}, '{"answer": 42}'),
        (42, "42"),
    ],
)
def test_the_content_of_a_message(content: Any, text: str) -> None:
    assert read(output=[says(content)]).messages[0].content == text


@pytest.mark.parametrize(("text", "output"), [("yes", "yes"), ("", ""), ({"a": 1}, '{"a": 1}')])
def test_a_text_alone_says_nothing_of_calls(text: Any, output: str) -> None:
    transcript = read(text=text, output=[], token_usage={"input": 3, "output": 1}, cost_usd=0.1, duration_ms=5)
    assert (transcript.output, transcript.complete) == (output, False)
    assert transcript.usage == Usage(tokens_in=3, tokens_out=1, cost_usd=0.1)


def test_messages_go_before_the_text() -> None:
    assert read(text="no", output=[says("yes")]).output == "yes"
    assert read(text="no", output_messages=[says("yes")]).output == "yes"
    assert read(output=[says("new")], output_messages=[says("old")]).output == "new"


def test_what_is_not_said_is_unknown() -> None:
    assert read(output=[says("yes")]).usage == Usage()
    assert read(output=[says("yes")], cost_usd=-1, duration_ms=-1).usage == Usage()
    assert read(output=[says("yes", duration_ms=-1)]).messages[0].latency_ms is None


def test_an_error_that_the_agent_reports_is_a_crash() -> None:
    transcript = read(text="half", error="no key " + "x" * 50_000)
    assert transcript.end is EndReason.CRASHED
    assert transcript.detail.startswith("no key")
    assert len(transcript.detail) == LONGEST_DETAIL
    assert transcript.output == "half"
    assert read(output=[says("yes")], error=None).end is EndReason.COMPLETED


@pytest.mark.parametrize(
    ("document", "where"),
    [
        ({"output": [says("yes"), "no"]}, r"messages\.1: "),
        ({"output": [{"role": 3}]}, r"messages\.0\.role: "),
        ({"output": [says("yes", tool_calls=[{"name": "find"}])]}, r"messages\.0\.tool_calls\.0\.tool: "),
        ({"output": [says("yes", tool_calls=[{"tool": "a", "status": "odd"}])]}, r"tool_calls\.0\.status: "),
        ({"text": "yes", "token_usage": {"input": -1, "output": 0}}, r"token_usage\.input: "),
        ({"text": "yes", "token_usage": {"input": 1}}, r"token_usage\.output: "),
        ({"text": "yes", "cost_usd": "cheap"}, r"cost_usd: "),
        ({"text": "yes", "cost_usd": 10**12 + 1}, r"cost_usd: "),
        ({"output": [says("yes", duration_ms=10**13)]}, r"messages\.0\.duration_ms: "),
        ({"output": [says("yes", tool_calls=[{"tool": "a", "duration_ms": 10**13}])]}, r"tool_calls\.0\.duration_ms: "),
    ],
)
def test_what_is_meant_for_agentv_and_wrong_cannot_be_measured(document: dict[str, Any], where: str) -> None:
    with pytest.raises(MeasurementError, match=f"not an output of AgentV: .*{where}"):
        read(**document)


leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
values = st.recursive(leaves, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=5)
calls = st.fixed_dictionaries({}, optional=dict.fromkeys(("tool", "input", "output", "status", "duration_ms"), values))
messages = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "tool"]) | values},
    optional={"content": values, "tool_calls": st.lists(calls) | values, "duration_ms": values},
)
keys = ("text", "output_messages", "token_usage", "cost_usd", "error")
documents = st.fixed_dictionaries({"output": st.lists(messages) | values}, optional=dict.fromkeys(keys, values))


@given(documents)
@example({"output": [{"role": "user"}], "cost_usd": 1000000000001.0})
def test_whatever_it_is_it_can_be_recorded_or_not_measured(document: dict[str, Any]) -> None:
    try:
        transcript = agentv_transcript(json.dumps(document))
    except MeasurementError:
        return
    assert type(transcript).model_validate_json(transcript.model_dump_json()) == transcript
