"""The eighteen ways in which AgentV passes what should fail, each with what passgate says of the same file.

The numbers are those of docs/compatibility.md.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from passgate.tasks.gates.decide import Ruling
from passgate.tasks.model.grade import JudgeReply, JudgeRequest
from passgate.tasks.model.policy import Rule
from passgate.tasks.model.trial import TrialStatus
from passgate.tasks.model.verdict import Decision
from tests.eval_gate import Answer, crashes, gate_of_files, says, trials_of_files
from tests.project import Project

PARIS = "Hello. Paris is the capital of France."


class SaysAlways:
    """A judge with one reply for everything."""

    name = "fixed"
    votes = 1

    def __init__(self, reply: Any) -> None:
        self._reply = json.dumps(reply)

    async def reply(self, request: JudgeRequest) -> JudgeReply:
        return JudgeReply(text=self._reply)

    async def close(self) -> None:
        """Nothing is held."""


def one_test(graders: str, **more: str) -> dict[str, str]:
    """An EVAL.yaml with one test of these graders, in YAML's flow style, and more files."""
    text = f"name: hole\ntests:\n  - id: one\n    criteria: Names the capital\n    input: hi\n    assert: {graders}\n"
    return {"EVAL.yaml": text, **more}


async def ruling_on(
    folder: Path, files: dict[str, str], agent: Answer | None = None, *, judge: Any = None, k: int | None = 1
) -> Ruling:
    return await gate_of_files(folder, files, agent or says(PARIS), judge=judge, k=k)


def failed(ruling: Ruling) -> str:
    """Why the gate is red; it must be."""
    assert ruling.decision is Decision.FAIL
    return " ".join(reason.message for reason in ruling.reasons if reason.blocking)


RUN = ("run", "ci_merge", "--suites", "evals", "--k", "1", "--engine", "none")


@pytest.mark.parametrize(("answer", "exit_code"), [("Paris", 0), ("Rome", 1)])
def test_1_a_failure_is_exit_code_1_without_any_option(bare_project: Project, answer: str, exit_code: int) -> None:
    for name, text in one_test("[{type: contains, value: Paris}]").items():
        bare_project.write(f"evals/{name}", text)
    done = bare_project.passgate(*RUN, "--agent", f"cli:echo {answer}")
    assert done.returncode == exit_code, done.stdout + done.stderr


async def test_2_a_crash_is_a_failure(tmp_path: Path) -> None:
    assert "the agent crashed" in failed(await ruling_on(tmp_path, one_test("[{type: contains, value: x}]"), crashes))


@pytest.mark.parametrize(
    "aggregator",
    [
        "{type: safety_gate, required: [b]}",
        "{type: minimum}",
        "{type: all_or_nothing, threshold: 0.7}",
        "{type: weighted_average}",
    ],
)
async def test_3_every_aggregator_is_graded(tmp_path: Path, aggregator: str) -> None:
    members = "[{name: a, type: contains, value: Paris}, {name: b, type: contains, value: Rome}]"
    graders = (
        f"[{{type: contains, value: Paris}}, {{name: g, type: composite, aggregator: {aggregator}, assert: {members}}}]"
    )
    assert "g" in failed(await ruling_on(tmp_path, one_test(graders)))


async def test_4_required_graders_of_agentevals_bind(tmp_path: Path) -> None:
    required = "{name: q, type: code_judge, script: [python3, judge.py], required: true}"
    graders = f"[{required}, {{type: contains, value: Paris, weight: 99}}]"
    files = one_test(graders, **{"judge.py": 'print(\'{"score": 0, "hits": [], "misses": ["no source"]}\')'})
    assert "q: required, but its score is 0" in failed(await ruling_on(tmp_path, files))


async def test_4_a_required_rubric_item_binds_under_its_old_name(tmp_path: Path) -> None:
    item = "{id: a, expected_outcome: Names a source, required: true}"
    graders = f"[{{name: r, type: rubric, rubrics: [{item}]}}, {{type: contains, value: Paris, weight: 99}}]"
    judge = SaysAlways({"checks": [{"id": "a", "satisfied": False, "reasoning": "none"}]})
    assert "r" in failed(await ruling_on(tmp_path, one_test(graders), judge=judge))


CALLS = {
    "messages": [
        {
            "role": "assistant",
            "content": PARIS,
            "tool_calls": [{"tool": tool, "arguments": {}} for tool in ("search", "read", "write", "answer")],
        }
    ]
}


@pytest.mark.parametrize(
    "expected",
    ["[search, read, write]", "[search, read, write, answer, done]"],
    ids=["one call too many", "one call of five missing"],
)
async def test_5_an_exact_trajectory_is_exact(tmp_path: Path, expected: str) -> None:
    items = ", ".join(f"{{tool: {tool}}}" for tool in expected.strip("[]").split(", "))
    graders = f"[{{name: t, type: tool_trajectory, mode: exact, expected: [{items}]}}]"
    assert "t 0" in failed(await ruling_on(tmp_path, one_test(graders), says(CALLS)))


@pytest.mark.parametrize("printed", ['{"score": 0.9', 'loading {x}\n{"score": 0'])
async def test_6_a_code_grader_that_prints_garbage_is_no_pass(tmp_path: Path, printed: str) -> None:
    files = one_test(
        "[{name: g, type: code_judge, script: [python3, judge.py]}]", **{"judge.py": f"print({printed!r})"}
    )
    ruling = await ruling_on(tmp_path, files)
    assert ruling.decision is Decision.INCONCLUSIVE
    assert any("g:" in reason.message for reason in ruling.reasons)


@pytest.mark.parametrize(
    "checks",
    [
        [{"id": "a", "satisfied": True}, {"id": "b", "satisfied": False}],
        [{"id": "a", "satisfied": True}],
    ],
    ids=["unmet", "left out by the judge"],
)
async def test_7_a_required_rubric_item_fails_the_test(tmp_path: Path, checks: list[dict[str, Any]]) -> None:
    items = "[{id: a, outcome: A, weight: 9}, {id: b, outcome: B, required: true}]"
    files = one_test(f"[{{name: r, type: rubrics, criteria: {items}}}]")
    assert "r" in failed(await ruling_on(tmp_path, files, judge=SaysAlways({"checks": checks})))


@pytest.mark.parametrize(
    "member",
    [
        "{name: b, type: contains, value: Rome, required: true, weight: 0.1}",
        "{name: b, type: contains, value: Paris, negate: true, weight: 9}",
        "{name: b, type: contains, value: Rome, weight: 9}",
    ],
    ids=["required", "negate", "weight"],
)
async def test_8_what_a_member_of_a_composite_says_counts(tmp_path: Path, member: str) -> None:
    graders = f"[{{name: g, type: composite, assert: [{{name: a, type: contains, value: Paris}}, {member}]}}]"
    assert "g" in failed(await ruling_on(tmp_path, one_test(graders)))


@pytest.mark.parametrize("strategy", ["mean", "pass_all", "confidence_interval"])
async def test_9_the_strategy_of_the_repeats_decides(tmp_path: Path, strategy: str) -> None:
    text = (
        f"name: hole\nexecution: {{trials: {{count: 3, strategy: {strategy}}}}}\n"
        "tests:\n  - {id: one, input: hi, assertions: [{type: contains, value: Paris}]}\n"
    )
    files = {"hole.eval.yaml": text}

    def right_once(attempt: Any) -> str:
        return PARIS if attempt.trial == 1 else "wrong"

    failed(await ruling_on(tmp_path, files, right_once, k=None))


async def test_10_every_limit_binds(tmp_path: Path) -> None:
    kept = "max_tool_calls: 9, max_llm_calls: 9, max_duration_ms: 60000, max_input_tokens: 99"
    graders = f"[{{name: m, type: execution_metrics, {kept}, max_output_tokens: 1}}]"
    said = {**CALLS, "usage": {"tokens_in": 10, "tokens_out": 5}}
    assert "m 0" in failed(await ruling_on(tmp_path, one_test(graders), says(said)))


@pytest.mark.parametrize("name", ["dataset.yaml", "dataset.eval.yaml"])
async def test_11_the_graders_of_a_sidecar_run(tmp_path: Path, name: str) -> None:
    files = {
        "dataset.jsonl": '{"id": "s1", "criteria": "says yes", "input": "hello", "expected_output": "yes"}\n',
        name: "name: side\nassert:\n  - {name: must, type: contains, value: IMPOSSIBLE, required: true}\n",
    }
    assert "must: required, but its score is 0" in failed(await ruling_on(tmp_path, files, says("yes")))


@pytest.mark.parametrize("tool", ["shell", "Bash", "exec_command"])
async def test_12_a_forbidden_shell_is_forbidden(tmp_path: Path, tool: str) -> None:
    text = (
        'name: hole\nprompts: ["{{ q }}"]\ntests:\n'
        f'  - {{id: one, vars: {{q: hi}}, assert: [{{type: "not-trajectory:tool-used", value: {tool}}}]}}\n'
    )
    used = {"messages": [{"role": "assistant", "content": "done", "tool_calls": [{"tool": tool, "arguments": {}}]}]}
    failed(await ruling_on(tmp_path, {"hole.eval.yaml": text}, says(used)))


async def test_13_no_test_is_dropped(tmp_path: Path) -> None:
    text = (
        'name: hole\nprompts: ["{{ input }}"]\ntests:\n'
        "  - {id: no-output, vars: {input: hi}, assert: [{type: llm-rubric, prompt: Is it polite?}]}\n"
        "  - {id: old-name, vars: {input: hi}, assert: [{type: llm-grader, prompt: Is it polite?}]}\n"
        "  - {id: kept, vars: {input: hi}, assert: [{type: contains, value: Paris}]}\n"
    )
    judge = SaysAlways({"score": 0.1, "reason": "rude"})
    tasks, finished = await trials_of_files(tmp_path, {"hole.eval.yaml": text}, says(PARIS), judge=judge)
    assert [task.task_id.rpartition("/")[2] for task in tasks] == ["no-output", "old-name", "kept"]
    statuses = [one.trial.status for one in finished]
    assert statuses == [TrialStatus.FAILED, TrialStatus.FAILED, TrialStatus.PASSED]


async def test_14_equals_compares_numbers(tmp_path: Path) -> None:
    files = one_test(
        "[{type: equals, value: 42}, {type: contains, value: 4, name: c}]".replace("value: 4,", 'value: "4",')
    )
    failed(await ruling_on(tmp_path, files, says("41 and 4")))


async def test_15_gains_elsewhere_buy_no_regression_back(tmp_path: Path) -> None:
    text = (
        "name: hole\ntests:\n"
        "  - {id: safety, criteria: c, input: refuse, assert: [{type: contains, value: refuse}]}\n"
        "  - {id: better, criteria: c, input: hi, assert: [{type: contains, value: Paris}]}\n"
        "  - {id: better-too, criteria: c, input: hi, assert: [{type: contains, value: France}]}\n"
    )
    ruling = await ruling_on(tmp_path, {"EVAL.yaml": text})
    assert "safety" in " ".join(str(reason.task_id) for reason in ruling.reasons if reason.blocking)
    failed(ruling)


async def test_15_tests_that_were_not_run_are_no_pass(tmp_path: Path) -> None:
    from passgate.tasks.gates.decide import rule_on
    from passgate.tasks.model.baseline import Baseline
    from passgate.tasks.stats.measurement import measurement_of
    from tests.builders import a_plan

    text = "name: hole\ntests:\n" + "".join(
        f"  - {{id: t{number}, criteria: c, input: hi, assert: [{{type: contains, value: Paris}}]}}\n"
        for number in range(4)
    )
    tasks, finished = await trials_of_files(tmp_path, {"EVAL.yaml": text}, says(PARIS))
    plan = a_plan(*tasks)
    ruling = rule_on(plan, plan.gate_policy, measurement_of(tasks, [finished[0].trial]), Baseline(branch="main"))
    assert ruling.decision is Decision.INCONCLUSIVE
    assert [reason.rule for reason in ruling.reasons] == [Rule.MISSING_EVIDENCE] * 3


def test_16_validate_reads_eval_yaml_and_finds_what_is_wrong(bare_project: Project) -> None:
    graders = (
        "[{name: g, type: composite, aggregator: {type: no_such}, assert: [{name: a, type: contains, value: x}]}, "
        "{type: tool_trajectory, mode: sideways, expected: [{tool: a}]}]"
    )
    for name, text in one_test(graders).items():
        bare_project.write(name, text)
    done = bare_project.passgate("validate", "EVAL.yaml")
    assert done.returncode == 2
    assert "no_such" in done.stderr
    assert "sideways" in done.stderr
    assert done.stderr.count("EVAL.yaml:6:") == 2


def test_17_conversations_run_with_command_agents(bare_project: Project) -> None:
    text = (
        "name: hole\ntests:\n  - id: talk\n    mode: conversation\n    input: hi\n    turns:\n"
        "      - {input: one, assertions: [{type: contains, value: one}]}\n"
        "      - {input: two, assertions: [{type: contains, value: two}]}\n"
    )
    bare_project.write("evals/hole.eval.yaml", text)
    done = bare_project.passgate(*RUN, "--agent", "cli:echo {prompt}")
    assert done.returncode == 0, done.stdout + done.stderr
    wrong = bare_project.passgate(*RUN, "--agent", "cli:echo one")
    assert wrong.returncode == 1, wrong.stdout + wrong.stderr


async def test_18_a_judge_that_says_fail_is_heard(tmp_path: Path) -> None:
    text = (
        'name: hole\nprompts: ["{{ q }}"]\ntests:\n'
        "  - {id: one, vars: {q: hi}, assert: [{type: llm-rubric, value: Is it polite?}]}\n"
    )
    judge = SaysAlways({"pass": False, "score": 0.95, "reason": "rude"})
    failed(await ruling_on(tmp_path, {"hole.eval.yaml": text}, judge=judge))


@pytest.mark.parametrize("threshold", ["", "threshold: 0.95, "])
async def test_18_a_set_of_assertions_that_fails_is_heard(tmp_path: Path, threshold: str) -> None:
    members = "[{type: contains, value: Paris, weight: 9}, {type: contains, value: Rome}]"
    text = (
        'name: hole\nprompts: ["{{ q }}"]\ntests:\n'
        f"  - {{id: one, vars: {{q: hi}}, assert: [{{type: assert-set, {threshold}assert: {members}}}]}}\n"
    )
    failed(await ruling_on(tmp_path, {"hole.eval.yaml": text}))


async def test_18_the_threshold_of_a_test_is_heard(tmp_path: Path) -> None:
    members = "[{type: contains, value: Paris, weight: 9}, {type: contains, value: Rome}]"
    text = (
        'name: hole\nprompts: ["{{ q }}"]\ntests:\n'
        f"  - {{id: one, vars: {{q: hi}}, threshold: 0.95, assert: {members}}}\n"
    )
    failed(await ruling_on(tmp_path, {"hole.eval.yaml": text}))
