"""The examples work."""

import json
import re
import shlex
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from passgate.tasks.agents import parse_agent
from passgate.tasks.agents.http import read_reply as read_http_reply
from passgate.tasks.agents.interface import Attempt
from passgate.tasks.agents.transcripts import read_transcript
from passgate.tasks.graders.rubric import every_result, read_score
from passgate.tasks.model.agent import HttpOptions
from passgate.tasks.model.run import RunRequest
from passgate.tasks.model.task import Budgets
from passgate.tasks.model.transcript import FileChanges, Transcript
from passgate.tasks.model.trial import TrialStatus
from passgate.tasks.record import record
from tests.builders import a_finished, a_plan, a_task, task_document
from tests.docs.commands import COMMANDS, command_of
from tests.docs.examples import (
    KINDS,
    SHIPPED_FILE,
    TWO_ASSERTIONS,
    check_agents,
    check_gates,
    check_prices,
    check_task,
    merged,
)
from tests.docs.keys import own_names
from tests.docs.pages import Block, blocks

WRITTEN_BY_PASSGATE = {"end", "detail", "printed", "wall_time_seconds", "file_changes", "refused"}
AGENTS = {
    name: entry
    for example in blocks("yaml")
    if example.values[0].title == "agents.yaml"
    for name, entry in yaml.safe_load(example.values[0].text)["agents"].items()
}
"""The agents of all examples of agents.yaml."""


@pytest.mark.parametrize("block", blocks("yaml"))
def test_yaml_examples_say_what_they_are_and_are_valid(block: Block, tmp_path: Path) -> None:
    KINDS[block.title](yaml.safe_load(block.text), tmp_path)


@pytest.mark.parametrize("block", blocks("json"))
def test_json_examples_are_transcripts_or_replies(block: Block) -> None:
    document = json.loads(block.text)
    if "messages" in document:
        assert read_transcript(document).complete
        written_by_passgate = WRITTEN_BY_PASSGATE | own_names(FileChanges)
        assert own_names(Transcript) - written_by_passgate <= set(re.findall(r'"(\w+)":', block.text))
    elif block.page == "docs/agents.md":
        options = HttpOptions.model_validate(AGENTS["desk-service"]["http"])
        answered = read_http_reply(block.text.encode(), options)
        assert answered.output
        assert answered.tool_calls
        assert answered.usage.tokens_in
        assert answered.usage.tokens_out
    elif "checks" in document:
        assert len(every_result(document, TWO_ASSERTIONS)) == 2
    else:
        assert read_score(json.loads(block.text)).reason


@pytest.mark.parametrize("block", blocks("python", page="docs/agents.md"))
async def test_python_agents_run(block: Block, tmp_path: Path) -> None:
    (tmp_path / "minutes.md").write_text("Monday")
    names: dict[str, Any] = {}
    exec(compile(block.text, block.page, "exec"), names)
    attempt = Attempt(task_id="a", trial=0, prompt="?", inputs={}, workspace=tmp_path, budgets=Budgets())
    assert read_transcript(await names["answer"](attempt)).output


@pytest.mark.parametrize("block", blocks("python", page="docs/history.md"))
def test_the_history_is_read_as_it_says(
    block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    task = a_task()
    statuses = (TrialStatus.PASSED, TrialStatus.FAILED)
    finished = [a_finished(task, number, status=status) for number, status in enumerate(statuses)]
    record(a_plan(task), finished)
    exec(compile(block.text, block.page, "exec"), {})
    printed = capsys.readouterr().out
    assert "golden" in printed or "say-yes" in printed


def command_lines(text: str) -> list[list[str]]:
    """The commands of a shell example, in words."""
    lines = text.replace("\\\n", " ").splitlines()
    return [words for line in lines if (words := shlex.split(line, comments=True))]


@pytest.mark.parametrize("block", blocks("bash"))
def test_shell_examples_are_accepted_by_the_commands(block: Block) -> None:
    for words in command_lines(block.text):
        if words[0] == "passgate":
            name, rest = command_of(words[1:])
            given = COMMANDS[name].make_context(name, list(rest)).params
            agents = [*(given.get("names") or ()), *([given["agent"]] if given.get("agent") else ())]
            for agent in agents:
                assert agent in AGENTS or parse_agent(agent)
        parameters = [after for word, after in pairwise(words) if word == "--param"]
        assert {parameter.partition("=")[0] for parameter in parameters} <= RunRequest.model_fields.keys()


def test_what_is_wrong_with_an_example_is_noticed(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="contans"):
        check_task(task_document(graders=[{"type": "output_check", "contans": ["a"]}]), tmp_path)
    with pytest.raises(AssertionError):
        check_task(task_document(graders=[{"type": "output_check"}]), tmp_path)
    check_gates(SHIPPED_FILE, tmp_path)
    with pytest.raises(AssertionError):
        check_gates(merged(SHIPPED_FILE, {"surprise": 1}), tmp_path)
    with pytest.raises(AssertionError):
        check_agents({"agents": {"a": {"agent": "nop"}}}, tmp_path)
    with pytest.raises(AssertionError):
        check_prices({"models": {"a*": {"input": 1, "output": 1}, "ab": {"input": 1, "output": 1}}}, tmp_path)
