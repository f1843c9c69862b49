import json
import sys
from pathlib import Path
from typing import Any

import pytest

from passgate.tasks.model.messages import ContentBlock, TaskMessage
from passgate.tasks.model.transcript import Message, ToolCall, Transcript, Usage
from passgate.tasks.model.trial import TrialMetrics
from tests.unit.graders.programs.agentv_contract import refused_by_sdk
from tests.unit.graders.trials import Files, Graded, called, said

# One program per mode, as a grader of either contract is written.
PROGRAM = """
import json, sys, time
mode, given = sys.argv[1], json.load(sys.stdin)
if mode == "dump": open(sys.argv[2], "w").write(json.dumps(given)); print('{"score": 1}')
if mode == "agentevals": print(json.dumps({"score": float("Paris" in given["candidateAnswer"]), "hits": []}))
if mode == "agentv": print(json.dumps({"score": float("Paris" in given["output"]), "assertions": []}))
if mode == "long": print(json.dumps({"score": float(open(given["output_path"]).read() == given["output"])}))
if mode == "say": print(sys.argv[2])
if mode == "sleep": time.sleep(60)
if mode == "flood": print("x" * 200_000)
if mode == "die": sys.exit("boom")
if mode == "environment":
    import os
    print(json.dumps({"score": float(os.environ["AGENTV_WORKSPACE_PATH"] == given["workspace_path"] == sys.argv[2])}))
"""


@pytest.fixture
def run(provide: Files, graded: Graded) -> Graded:
    """The grade of a program in the suites folder by its arguments."""
    provide({"evals/graders/g.py": PROGRAM})

    async def ask(*arguments: str, answer: Transcript | str = "Paris", of_trial: Any = None, **fields: Any) -> Any:
        command = (sys.executable, "graders/g.py", *arguments)
        options = {"type": "code_grader", "command": command, "cwd": "evals", **fields}
        return await graded(options, said(answer) if isinstance(answer, str) else answer, **(of_trial or {}))

    return ask


@pytest.mark.parametrize("contract", ["agentevals", "agentv"])
async def test_a_grader_of_either_contract_finds_the_answer(contract: str, run: Graded) -> None:
    assert (await run(contract)).score == 1
    assert (await run(contract, answer="Rome")).score == 0
    assert (await run(contract, answer="Paris \ud800")).score == 1, "half of a surrogate pair is no obstacle"


@pytest.mark.parametrize(
    ("reply", "fields", "passed", "score", "messages"),
    [
        ('{"score": 0.8}', {}, True, 0.8, []),
        ('{"score": 0.75, "reasoning": "close"}', {}, False, 0.75, ["score 0.75, expected at least 0.8: close"]),
        ('{"score": 0.75}', {"min_score": 0.7}, True, 0.75, []),
        ('{"score": 0.5}', {}, False, 0.5, ["score 0.5, expected at least 0.8"]),
    ],
)
async def test_a_score_passes_from_the_least_score_on(
    reply: str, fields: dict[str, Any], passed: bool, score: float, messages: list[str], run: Graded
) -> None:
    result = await run("say", reply, **fields)
    assert (result.passed, result.score, result.error) == (passed, score, None)
    assert [check.message for check in result.checks] == messages


@pytest.mark.parametrize(
    ("arguments", "fields", "error"),
    [
        (("say", '{"score": 0.9'), {}, "the grader's reply is unusable"),
        (("die",), {}, "the grader crashed with exit code 1: boom"),
        (("flood",), {}, "the grader printed more than passgate keeps"),
        (("sleep",), {"timeout_seconds": 0.5}, "the grader did not end within 0.5 seconds"),
        (("say", "x"), {"cwd": "gone"}, "the folder gone does not exist"),
    ],
)
async def test_a_grader_that_fails_measures_nothing(arguments: Any, fields: Any, error: str, run: Graded) -> None:
    assert error in (await run(*arguments, **fields)).error


@pytest.mark.parametrize(
    ("printed", "ours"),
    [
        ('{"score": 0.9', None),
        ('log\n{"score": 0.9}', 0.9),
        ('{"pass": false, "score": 1}', 0),
        ("[1]", None),
        ("0.4", None),
    ],
)
async def test_what_agentv_takes_for_a_pass_does_not_pass_unseen(printed: str, ours: float | None, run: Graded) -> None:
    assert (await run("say", printed)).score == ours


async def test_the_grader_is_told_where_the_workspace_is(run: Graded, workspace: Path) -> None:
    assert (await run("environment", str(workspace))).score == 1


async def test_a_long_answer_lies_in_a_file_too(run: Graded, tmp_path: Path) -> None:
    assert (await run("long", answer="ä" * 50_000)).score == 1
    assert list((tmp_path / "scratch").iterdir()) == []


@pytest.fixture
def given(run: Graded, tmp_path: Path) -> Graded:
    """What the program is given."""

    async def ask(answer: Transcript | str = "Paris", **options: Any) -> Any:
        await run("dump", str(tmp_path / "given.json"), answer=answer, **options)
        return json.loads((tmp_path / "given.json").read_text())

    return ask


SUMMARY = {
    "event_count": 1,
    "tool_calls": {"search": 1},
    "error_count": 0,
    "tool_durations": {"search": [12]},
    "llm_call_count": 1,
}
OF_AGENTV = {
    "criteria": "crit",
    "expected_output": [{"role": "assistant", "content": "Paris"}],
    "output": "Paris",
    "input": [{"role": "user", "content": "question text"}],
    "input_files": [],
    "metadata": {"k": "v"},
    "config": {"opt": 2},
    "trace_summary": SUMMARY,
    "token_usage": {"input": 10, "output": 5},
    "cost_usd": 0.001,
    "duration_ms": 50,
    "start_time": None,
    "end_time": None,
    "file_changes": None,
}
OF_AGENTEVALS = {
    "question": "question text",
    "criteria": "crit",
    "note": "a note",
    "expectedMessages": [{"role": "assistant", "content": "Paris"}],
    "referenceAnswer": "Paris",
    "candidateAnswer": "Paris",
    "guidelineFiles": [],
    "inputFiles": [],
    "inputMessages": [{"role": "user", "content": "question text"}],
    "config": {"opt": 2},
}


@pytest.fixture
async def whole(given: Graded) -> Any:
    """What a program is given of a trial of which everything is known."""
    call = ToolCall(tool="search", arguments={"q": "x"}, result="found", duration_ms=12)
    usage = Usage(tokens_in=10, tokens_out=5, cost_usd=0.001)
    messages = (Message(role="assistant", content="Paris", tool_calls=(call,)),)
    trial = {
        "metrics": TrialMetrics(wall_time_seconds=0.05),
        "prompt": "question text",
        "criteria": "crit",
        "expected_output": "Paris",
        "metadata": {"k": "v"},
        "note": "a note",
    }
    return await given(Transcript(messages=messages, output="Paris", usage=usage), of_trial=trial, config={"opt": 2})


async def test_both_contracts_are_kept(whole: dict[str, Any], workspace: Path) -> None:
    agentv = {**OF_AGENTV, "workspace_path": str(workspace)}
    assert {name: whole[name] for name in agentv} == agentv
    assert {name: whole[name] for name in OF_AGENTEVALS} == OF_AGENTEVALS


async def test_the_sdk_of_agentv_takes_it(whole: dict[str, Any]) -> None:
    assert "output_path" not in whole
    assert refused_by_sdk(whole) == []


@pytest.mark.parametrize("expected", ["Paris", {"city": "Paris"}, 42, [1, 2], True, None])
@pytest.mark.parametrize("complete", [True, False])
async def test_the_sdk_of_agentv_takes_what_is_hardly_known(expected: Any, complete: bool, given: Graded) -> None:
    document = await given(called("search", output="", complete=complete), of_trial={"expected_output": expected})
    assert refused_by_sdk(document) == []


async def test_messages_are_in_the_words_of_both(whole: dict[str, Any]) -> None:
    asked, answered = whole["messages"]
    assert asked == {"role": "user", "content": "question text"}
    assert answered["tool_calls"][0] == {
        "tool": "search",
        "input": {"q": "x"},
        "output": "found",
        "status": "ok",
        "duration_ms": 12,
        "type": "function",
        "function": {"name": "search", "arguments": '{"q": "x"}'},
    }
    assert whole["outputMessages"] == [answered]


async def test_a_refused_call_does_not_look_successful(given: Graded) -> None:
    calls = (ToolCall(tool="rm", refused=True), ToolCall(tool="ls", is_error=None), ToolCall(tool="cat"))
    document = await given(called(*calls, output="Done."))
    made = document["messages"][-1]["tool_calls"]
    assert [call["status"] for call in made] == ["error", "unknown", "ok"]
    assert document["trace"]["error_count"] == 1


async def test_the_trace_tells_what_happened(whole: dict[str, Any]) -> None:
    assert {name: whole["trace"][name] for name in SUMMARY} == SUMMARY
    assert [event["type"] for event in whole["trace"]["events"]] == ["message", "tool_call", "final_response"]
    assert [event["event_id"] for event in whole["trace"]["events"]] == [
        "message-0",
        "message-0-tool-0",
        "final-response",
    ]
    assert whole["traceSummary"]["toolNames"] == ["search"]
    assert (whole["traceSummary"]["costUsd"], whole["traceSummary"]["durationMs"]) == (0.001, 50)


async def test_what_is_not_known_is_null(given: Graded) -> None:
    document = await given(said("Paris", complete=False))
    unknown = ("trace", "trace_summary", "traceSummary", "token_usage", "cost_usd", "duration_ms")
    assert [document[name] for name in unknown] == [None] * len(unknown)


async def test_files_of_the_question_are_named_where_they_are(given: Graded, suites_folder: Path) -> None:
    blocks = (ContentBlock(type="file", value="evals/a.js", text="1"), ContentBlock(type="text", value="Review it."))
    document = await given(of_trial={"messages": (TaskMessage(role="user", content=blocks),)})
    assert document["input_files"] == document["inputFiles"] == [str(suites_folder / "evals/a.js")]


async def test_variables_are_what_the_inputs_hold_beside_the_question(given: Graded) -> None:
    inputs = {"prompt": "Hi.", "city": "Paris", "vars": {"land": "France"}}
    assert (await given(of_trial={"inputs": inputs}))["vars"] == {"city": "Paris", "land": "France"}
