import json
import sys
from pathlib import Path
from typing import Any

import pytest

from passgate.tasks.graders import grade
from passgate.tasks.graders.interface import Evidence
from passgate.tasks.model.assertions import CodeGrader
from passgate.tasks.model.messages import ContentBlock, TaskMessage
from passgate.tasks.model.task import Scoring
from passgate.tasks.model.transcript import Message, ToolCall, Transcript, Usage
from passgate.tasks.model.trial import TrialMetrics
from tests.unit.graders.programs.agentv_contract import refused_by_sdk
from tests.unit.graders.trials import Files, MakeEvidence, said

AGENTV = Scoring(compat="agentv")
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
def run(provide: Files, make_evidence: MakeEvidence) -> Any:
    """The grade of a program in the suites folder by its arguments."""
    provide({"evals/graders/g.py": PROGRAM})

    async def ask(*arguments: str, evidence: Evidence | None = None, **fields: Any) -> Any:
        command = (sys.executable, "graders/g.py", *arguments)
        options = CodeGrader(**{"type": "code_grader", "command": command, "cwd": "evals", **fields})
        return await grade(options, evidence or make_evidence(transcript=said("Paris")))

    return ask


@pytest.mark.parametrize("contract", ["agentevals", "agentv"])
async def test_a_grader_of_either_contract_finds_the_answer(
    contract: str, run: Any, make_evidence: MakeEvidence
) -> None:
    assert (await run(contract)).score == 1
    assert (await run(contract, evidence=make_evidence(transcript=said("Rome")))).score == 0


async def test_a_score_passes_from_the_least_score_on(run: Any) -> None:
    assert (await run("say", '{"score": 0.8}')).passed
    low = await run("say", '{"score": 0.75, "reasoning": "close"}')
    assert (low.passed, low.score, low.error) == (False, 0.75, None)
    assert low.checks[0].message == "score 0.75, expected at least 0.8: close"
    assert (await run("say", '{"score": 0.75}', min_score=0.7)).passed


async def test_a_low_score_without_a_word_says_what_it_is(run: Any) -> None:
    assert [check.message for check in (await run("say", '{"score": 0.5}')).checks] == [
        "score 0.5, expected at least 0.8"
    ]


async def test_a_reply_that_did_not_pass_cannot_pass(run: Any) -> None:
    result = await run("say", '{"pass": false, "score": 1.0, "reason": "no"}')
    assert (result.passed, result.score) == (False, 0)


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
async def test_a_grader_that_fails_measures_nothing(
    arguments: tuple[str, ...], fields: dict[str, Any], error: str, run: Any
) -> None:
    result = await run(*arguments, **fields)
    assert error in result.error
    assert (result.passed, result.score) == (False, None)


@pytest.mark.parametrize(
    ("printed", "theirs"),
    [('{"score": 0.9', 1), ('log\n{"score": 0.9}', 1), ('{"pass": false, "score": 1}', 1), ("[1]", 1), ("0.4", 1)],
)
async def test_what_agentv_takes_for_a_pass_does_not_pass_unseen(
    printed: str, theirs: float, run: Any, make_evidence: MakeEvidence
) -> None:
    as_agentv = make_evidence(transcript=said("Paris"), scoring=AGENTV)
    assert (await run("say", printed, evidence=as_agentv)).score == theirs
    ours = await run("say", printed)
    assert ours.score != theirs


async def test_the_grader_is_told_where_the_workspace_is(run: Any, workspace: Path) -> None:
    assert (await run("environment", str(workspace))).score == 1


async def test_a_long_answer_lies_in_a_file_too(run: Any, make_evidence: MakeEvidence, tmp_path: Path) -> None:
    evidence = make_evidence(transcript=said("ä" * 50_000))
    assert (await run("long", evidence=evidence)).score == 1
    assert list((tmp_path / "scratch").iterdir()) == []


async def given(run: Any, evidence: Evidence, tmp_path: Path, **fields: Any) -> dict[str, Any]:
    """What the program is given."""
    file = tmp_path / "given.json"
    await run("dump", str(file), evidence=evidence, **fields)
    document: dict[str, Any] = json.loads(file.read_text())
    return document


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
async def whole(run: Any, make_evidence: MakeEvidence, tmp_path: Path) -> dict[str, Any]:
    """What a program is given of a trial of which everything is known."""
    call = ToolCall(tool="search", arguments={"q": "x"}, result="found", duration_ms=12)
    transcript = Transcript(
        messages=(Message(role="assistant", content="Paris", tool_calls=(call,)),),
        output="Paris",
        usage=Usage(tokens_in=10, tokens_out=5, cost_usd=0.001),
    )
    evidence = make_evidence(
        transcript=transcript,
        metrics=TrialMetrics(wall_time_seconds=0.05),
        prompt="question text",
        criteria="crit",
        expected_output="Paris",
        metadata={"k": "v"},
        note="a note",
    )
    return await given(run, evidence, tmp_path, config={"opt": 2})


async def test_both_contracts_are_kept(whole: dict[str, Any], workspace: Path) -> None:
    agentv = {**OF_AGENTV, "workspace_path": str(workspace)}
    assert {name: whole[name] for name in agentv} == agentv
    assert {name: whole[name] for name in OF_AGENTEVALS} == OF_AGENTEVALS


async def test_the_sdk_of_agentv_takes_it(whole: dict[str, Any]) -> None:
    assert "output_path" not in whole
    assert refused_by_sdk(whole) == []


@pytest.mark.parametrize("expected", ["Paris", {"city": "Paris"}, 42, [1, 2], True, None])
@pytest.mark.parametrize("complete", [True, False])
async def test_the_sdk_of_agentv_takes_what_is_hardly_known(
    expected: Any, complete: bool, run: Any, make_evidence: MakeEvidence, tmp_path: Path
) -> None:
    call = ToolCall(tool="search", arguments={})
    transcript = Transcript(messages=(Message(role="assistant", tool_calls=(call,)),), output="", complete=complete)
    document = await given(run, make_evidence(transcript=transcript, expected_output=expected), tmp_path)
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


async def test_what_is_not_known_is_null(run: Any, make_evidence: MakeEvidence, tmp_path: Path) -> None:
    document = await given(run, make_evidence(transcript=said("Paris", complete=False)), tmp_path)
    unknown = ("trace", "trace_summary", "traceSummary", "token_usage", "cost_usd", "duration_ms")
    assert [document[name] for name in unknown] == [None] * len(unknown)


async def test_files_of_the_question_are_named_where_they_are(
    run: Any, make_evidence: MakeEvidence, tmp_path: Path, suites_folder: Path
) -> None:
    blocks = (ContentBlock(type="file", value="evals/a.js", text="1"), ContentBlock(type="text", value="Review it."))
    evidence = make_evidence(transcript=said("Paris"), messages=(TaskMessage(role="user", content=blocks),))
    document = await given(run, evidence, tmp_path)
    assert document["input_files"] == document["inputFiles"] == [str(suites_folder / "evals/a.js")]


async def test_variables_are_what_the_inputs_hold_beside_the_question(
    run: Any, make_evidence: MakeEvidence, tmp_path: Path
) -> None:
    inputs = {"prompt": "Hi.", "city": "Paris", "vars": {"land": "France"}}
    document = await given(run, make_evidence(transcript=said("Paris"), inputs=inputs), tmp_path)
    assert document["vars"] == {"city": "Paris", "land": "France"}


async def test_half_of_a_surrogate_pair_in_an_answer_is_no_obstacle(run: Any, make_evidence: MakeEvidence) -> None:
    assert (await run("agentv", evidence=make_evidence(transcript=said("Paris \ud800")))).score == 1
