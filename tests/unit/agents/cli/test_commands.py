"""Commands as AgentV has them, really run."""

import json
import shlex
import sys
from pathlib import Path

import pytest
from tests.builders import a_task
from tests.unit.agents.cli.programs import cli_agent
from tests.unit.agents.conftest import one_turn

from passgate.tasks.agents.commands import AGENTV_PLACEHOLDERS
from passgate.tasks.errors import UsageError
from passgate.tasks.model.transcript import EndReason, ToolCall, Usage

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


OUTPUT = {
    "output": [
        {"role": "assistant", "tool_calls": [{"tool": "find", "input": {"q": 1}, "output": "found"}]},
        {"role": "assistant", "content": "yes"},
    ],
    "token_usage": {"input": 5, "output": 2, "cached": 1},
    "cost_usd": 0.5,
}


@pytest.mark.parametrize("command", ["echo {PROMPT} > {OUTPUT_FILE}", "echo {PROMPT}"])
async def test_what_it_writes_is_read_as_agentv_does(attempt, command: str) -> None:
    transcript = await attempt(cli_agent(command), a_task(inputs={"prompt": json.dumps(OUTPUT)}))
    assert transcript.output == "yes"
    assert transcript.tool_calls == (ToolCall(tool="find", arguments={"q": 1}, result="found"),)
    assert transcript.usage == Usage(tokens_in=5, tokens_cached=1, tokens_out=2, cost_usd=0.5)


async def test_passgates_own_commands_have_no_such_output(attempt) -> None:
    transcript = await attempt(cli_agent("echo {prompt}"), a_task(inputs={"prompt": json.dumps(OUTPUT)}))
    assert transcript.output == json.dumps(OUTPUT)


async def test_a_transcript_of_ours_goes_before_the_output(attempt) -> None:
    agent = cli_agent("""echo '{"output": "ours"}' > "$PASSGATE_TRANSCRIPT"; echo theirs > {OUTPUT_FILE}""")
    assert (await attempt(agent)).output == "ours"


@pytest.mark.parametrize(
    ("command", "end", "detail"),
    [
        ("echo why >&2; exit 3 # {OUTPUT_FILE}", EndReason.CRASHED, "exit code 3: why"),
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
    assert transcript.end is end
    assert transcript.detail.startswith(detail)


async def test_what_a_failing_agent_wrote_is_kept(attempt) -> None:
    transcript = await attempt(cli_agent("echo half > {OUTPUT_FILE}; exit 3"))
    assert (transcript.end, transcript.output) == (EndReason.CRASHED, "half")


async def test_time_that_is_up_ends_all_of_a_line(attempt) -> None:
    transcript = await attempt(cli_agent("echo begun {EVAL_ID}; touch ready; sleep 600; echo never"), hangs=True)
    assert (transcript.end, transcript.output) == (EndReason.TIMED_OUT, "begun say-yes")


@pytest.mark.parametrize("files_format", ["{file}", "{path} {name}", "{PATH}"])
def test_an_unknown_placeholder_for_files_is_refused(files_format: str) -> None:
    with pytest.raises(UsageError, match=r"unknown placeholder \{\w+\} in files_format; known: \{path\}, \{basename\}"):
        cli_agent("cat {FILES}", files_format=files_format)


def test_agentvs_placeholders_are_all_there() -> None:
    """AgentV's documentation of its `cli` provider lists these."""
    assert set(AGENTV_PLACEHOLDERS) == {"PROMPT", "PROMPT_FILE", "EVAL_ID", "ATTEMPT", "FILES", "OUTPUT_FILE"}
