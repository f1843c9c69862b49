import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from passgate.tasks.errors import MeasurementError
from passgate.tasks.graders.code_grader import read_code_reply
from passgate.tasks.model.messages import ContentBlock, TaskMessage
from passgate.tasks.model.quotes import UNMASKED
from passgate.tasks.model.transcript import Message, ToolCall, Transcript, Usage
from passgate.tasks.model.trial import TrialMetrics
from tests.unit.graders.agentv_contract import refused_by_sdk
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
    assert [(event["type"], event["event_id"]) for event in whole["trace"]["events"]] == [
        *(("message", "message-0"), ("tool_call", "message-0-tool-0"), ("final_response", "final-response"))
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


needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")
LANGUAGES = ["python", pytest.param("javascript", marks=needs_node)]


def javascript(*fields: str) -> Any:
    return pytest.param("javascript", *fields, marks=needs_node)


@pytest.fixture
def script(graded: Graded) -> Graded:
    async def ask(language: str, value: str, answer: str = "Paris", **fields: Any) -> Any:
        inputs = {"prompt": "Hi.", "vars": {"city": "Paris"}}
        return await graded({"type": language, "value": value, **fields}, said(answer), inputs=inputs)

    return ask


@pytest.mark.parametrize(
    ("language", "value"),
    [
        *(("python", "'Paris' in output"), ("python", "context['vars']['city'] in output")),
        ("python", "context['output'] == output"),
        ("python", "found = 'Paris' in output\nreturn found"),
        ("python", "import json\nif output:\n    return True\nreturn json.loads('0')"),
        *(("python", "print('seen') or True"), javascript("output.includes('Paris')")),
        javascript("output.includes(context.vars.city) // yes"),
        javascript("const found = output.length === 5;\nreturn found;"),
        *(javascript("Promise.resolve(true)"), javascript("console.log('seen') === undefined")),
        javascript("(process.stdout.write('seen'), true)"),
        javascript("require('path').basename('a/b') === 'b'"),
    ],
)
async def test_an_expression_or_a_body_says_whether_the_answer_is_good(
    language: str, value: str, script: Graded
) -> None:
    result = await script(language, value)
    assert (result.error, result.passed, result.score) == (None, True, 1)


@pytest.mark.parametrize(
    ("language", "value", "answer", "said"),
    [
        ("python", "'Paris' in output", "Rome", "'Paris' in output"),
        ("python", "{'pass': False, 'score': 1, 'reason': 'no'}", "Paris", "no"),
        javascript("output.includes('Paris')", "Rome", "output.includes('Paris')"),
        javascript("({pass: false, score: 1, reason: 'no'})", "Paris", "no"),
    ],
)
async def test_a_bad_answer_has_nothing(language: str, value: str, answer: str, said: str, script: Graded) -> None:
    result = await script(language, value, answer)
    assert (result.passed, result.score, result.checks[0].passed) == (False, 0, False)
    assert said in result.checks[0].message


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    ("score", "fields", "passed"),
    [
        *(("0.4", {}, False), ("0.4", {"threshold": 0.4}, True)),
        ("0.4", {"threshold": 0.4, "min_score": 0.9}, True),
        *(("0.9", {"threshold": 0.95}, False), ("0.5", {"min_score": 0.5}, True)),
    ],
)
async def test_a_number_is_a_score(score: str, fields: Any, passed: bool, language: str, script: Graded) -> None:
    result = await script(language, score, **fields)
    assert (result.passed, result.score) == (passed, float(score))


@pytest.mark.parametrize(
    ("language", "value", "error"),
    [
        ("python", "nothing(output)", "the script raised: "),
        *(("python", "eval('1 +')", "the script raised: "), ("python", "7", "must be a number from 0 to 1")),
        ("python", "float('nan')", "the script's result is unusable"),
        ("python", "{}", "it has no `score`"),
        javascript("nothing(output)", "the script raised: "),
        javascript("1 +", "the script raised: "),
        javascript("undefined", "must be a number from 0 to 1"),
        javascript("process.exit(0)", "the script's result is unusable"),
    ],
)
async def test_a_script_that_fails_measures_nothing(language: str, value: str, error: str, script: Graded) -> None:
    assert error in (await script(language, value)).error


@pytest.mark.parametrize(
    "answer", ["'); process.exit(0); ('", '"""\nimport sys; sys.exit(0)\n"""', "`${process.exit()}`", "\ud800", "\0"]
)
@pytest.mark.parametrize("language", LANGUAGES)
async def test_an_answer_is_never_code(language: str, answer: str, script: Graded) -> None:
    value = {"python": "len(output) == 0"}.get(language, "output.length === 0")
    result = await script(language, value, answer)
    assert (result.error, result.score) == (None, 0)


async def test_javascript_needs_node(script: Graded, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    result = await script("javascript", "true")
    assert result.error == "`javascript` needs Node.js, which is not installed: install it from https://nodejs.org"


@pytest.mark.parametrize(
    ("reply", "score"),
    [
        ({"score": 0.6, "hits": ["h"], "misses": ["m"], "reasoning": "r"}, 0.6),
        ({"score": 0.75, "assertions": [{"text": "x", "passed": True, "evidence": "e"}], "details": {"k": 1}}, 0.75),
        ({"pass": True, "score": 0.9, "reason": "r", "checks": [{"text": "x", "pass": True, "score": 1}]}, 0.9),
        ({"assertions": [{"text": "a", "passed": True}, {"text": "b", "passed": False}]}, 0.5),
        ({"checks": [{"text": "a", "pass": True}, {"text": "b", "pass": True}, {"text": "c", "pass": False}]}, 2 / 3),
        ({"score": None, "checks": [{"text": "a", "pass": True}]}, 1),
        *(({"pass": True}, 1), ({"pass": False}, 0), ({"score": 0}, 0), ({"score": 1}, 1)),
        ({"pass": True, "score": 0.1}, 0.1),
    ],
)
def test_every_form_of_a_reply_has_its_score(reply: dict[str, Any], score: float) -> None:
    assert read_code_reply(json.dumps(reply), "a warning", 0).score == pytest.approx(score)


def test_what_a_reply_says_becomes_checks() -> None:
    reply = {
        "score": 0.5,
        "hits": ["h"],
        "misses": ["m"],
        "assertions": [{"text": "a", "passed": True, "evidence": "e"}],
        "checks": [{"text": "c", "pass": False, "reason": "r"}],
        "reasoning": "so so",
    }
    read = read_code_reply(json.dumps(reply), "", 0)
    told = [(check.passed, UNMASKED.render(check.message)) for check in read.checks]
    assert told == [(True, "a: e"), (False, "c: r"), (True, "h"), (False, "m")]
    assert UNMASKED.render(read.reason) == "so so"


@pytest.mark.parametrize(
    ("stdout", "exit_code", "score", "message"),
    [
        *(("looks fine\n", 0, 1, "looks fine"), ("", 0, 1, "exit code 0"), ("not fine", 1, 0, "not fine")),
        ("", 1, 0, "exit code 1"),
        ('{"pass": false, "score": 0.95}', 0, 0, "`pass` is false, so the score 0.95 does not count"),
    ],
)
def test_plain_text_goes_by_the_exit_code(stdout: str, exit_code: int, score: float, message: str) -> None:
    read = read_code_reply(stdout, "", exit_code)
    assert (read.score, [UNMASKED.render(check.message) for check in read.checks]) == (score, [message])
    assert read.checks[0].passed is (score == 1)


def test_a_reply_may_come_after_lines_of_a_log() -> None:
    assert read_code_reply('loading\n  half way\n{\n "score": 0.9,\n "a": {"b": 1}\n}\n', "", 0).score == 0.9


@pytest.mark.parametrize(
    "stdout",
    [
        *('{"score": 0.9', "{}", '{"score": "0.9"}', '{"score": true}', '{"score": 1.7}', '{"score": -3}'),
        *('{"score": NaN}', '{"score": 1, "score": 0}', '{"score": 1}\n{"score": 0}', '{"score": 1}\ndone'),
        *('result: {"score": 1}', 'config {a}\n{"score": 1}', '[{"score": 1}]', "[1, 2]", "0.4", "null", "false"),
        *('"fine"', "fine }{", '{"score": 1, "pass": "yes"}', '{"score": 1, "hits": "h"}'),
        *('{"score": 1, "misses": [1]}', '{"score": 1, "checks": {}}', '{"score": 1, "checks": ["a"]}'),
        '{"assertions": [{"text": "a"}]}',
        '{"assertions": [{"text": "a", "passed": "true"}]}',
        *('{"assertions": []}', '{"score": {"value": ' + "[" * 100_000),
    ],
)
def test_a_reply_that_is_none_is_the_graders_error(stdout: str) -> None:
    with pytest.raises(MeasurementError, match="the grader's reply is unusable"):
        read_code_reply(stdout, "", 0)


@pytest.mark.parametrize(
    ("stdout", "stderr", "exit_code", "message"),
    [
        ("", "boom", 2, "the grader crashed with exit code 2: boom"),
        ("not fine", "Traceback", 1, "the grader crashed with exit code 1: Traceback"),
        ("", "", -9, "the grader crashed with exit code -9"),
        ("", "", 137, "the grader crashed with exit code 137"),
        ('{"score": 1}', "", 1, "ended with exit code 1 after it had printed"),
        ('{"score"', "", 1, "ended with exit code 1 after it had printed"),
        ("0.4", "", 1, "ended with exit code 1 after it had printed"),
    ],
)
def test_a_grader_that_crashes_says_nothing(stdout: str, stderr: str, exit_code: int, message: str) -> None:
    with pytest.raises(MeasurementError) as caught:
        read_code_reply(stdout, stderr, exit_code)
    assert message in UNMASKED.render(caught.value.message)


def test_foreign_text_is_bounded() -> None:
    read = read_code_reply(json.dumps({"score": 0, "misses": ["x" * 10_000] * 1000, "reason": "y" * 10_000}), "", 0)
    assert len(read.checks) == 100
    assert all(len(UNMASKED.render(check.message)) < 3000 for check in read.checks)
    assert len(UNMASKED.render(read.reason)) < 3000
