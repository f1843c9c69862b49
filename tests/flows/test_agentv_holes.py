"""The eighteen ways in which AgentV passes what should fail, each with what passgate says of the same file.

The numbers are those of docs/compatibility.md.
"""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from passgate.tasks.gates.decide import rule_on
from passgate.tasks.model.baseline import Baseline
from passgate.tasks.model.policy import Rule
from passgate.tasks.model.trial import TrialStatus
from passgate.tasks.model.verdict import Decision
from passgate.tasks.stats.measurement import measure_trials
from tests.builders import a_plan
from tests.eval_gate import Answer, SaysAlways, crashes, gate_of_files, says, trials_of_files
from tests.project import Project

PARIS = "Hello. Paris is the capital of France."


def one_test(graders: str, **more: str) -> dict[str, str]:
    """An EVAL.yaml with one test of these graders, in YAML's flow style, and more files."""
    text = f"name: hole\ntests:\n  - id: one\n    criteria: Names the capital\n    input: hi\n    assert: {graders}\n"
    return {"EVAL.yaml": text, **more}


def one_prompt(graders: str, more: str = "") -> dict[str, str]:
    """The same in the words of promptfoo."""
    head = 'name: hole\nprompts: ["{{ q }}"]\ntests:\n'
    return {"hole.eval.yaml": f"{head}  - {{id: one, vars: {{q: hi}}, {more}assert: {graders}}}\n"}


Gate = Callable[..., Awaitable[str]]


@pytest.fixture
def red(tmp_path: Path) -> Gate:
    """Runs a gate that must be red, and gives why it is."""

    async def red(
        graders: str | dict[str, str], agent: Answer | None = None, *, judge: Any = None, k: int | None = 1
    ) -> str:
        files = one_test(graders) if isinstance(graders, str) else graders
        judge = None if judge is None else SaysAlways(judge)
        ruling = await gate_of_files(tmp_path, files, agent or says(PARIS), judge=judge, k=k)
        assert ruling.decision is Decision.FAIL
        return " ".join(f"{reason.task_id} {reason.message}" for reason in ruling.reasons if reason.blocking)

    return red


RUN = ("run", "ci_merge", "--suites", "evals", "--k", "1", "--engine", "none")


@pytest.mark.parametrize(("answer", "exit_code"), [("Paris", 0), ("Rome", 1)])
def test_1_a_failure_is_exit_code_1_without_any_option(bare_project: Project, answer: str, exit_code: int) -> None:
    bare_project.write("evals/EVAL.yaml", one_test("[{type: contains, value: Paris}]")["EVAL.yaml"])
    done = bare_project.passgate(*RUN, "--agent", f"cli:echo {answer}")
    assert done.returncode == exit_code, done.stdout + done.stderr


async def test_2_a_crash_is_a_failure(red: Gate) -> None:
    assert "the agent crashed" in await red("[{type: contains, value: x}]", crashes)


@pytest.mark.parametrize(
    "aggregator",
    [
        "{type: safety_gate, required: [b]}",
        "{type: minimum}",
        "{type: all_or_nothing, threshold: 0.7}",
        "{type: weighted_average}",
    ],
)
async def test_3_every_aggregator_is_graded(red: Gate, aggregator: str) -> None:
    members = "[{name: a, type: contains, value: Paris}, {name: b, type: contains, value: Rome}]"
    composite = f"{{name: g, type: composite, aggregator: {aggregator}, assert: {members}}}"
    assert "g" in await red(f"[{{type: contains, value: Paris}}, {composite}]")


async def test_4_required_graders_of_agentevals_bind(red: Gate) -> None:
    required = "{name: q, type: code_judge, script: [python3, judge.py], required: true}"
    judge = {"judge.py": 'print(\'{"score": 0, "hits": [], "misses": ["no source"]}\')'}
    files = one_test(f"[{required}, {{type: contains, value: Paris, weight: 99}}]", **judge)
    assert "q: required, but its score is 0" in await red(files)


async def test_4_a_required_rubric_item_binds_under_its_old_name(red: Gate) -> None:
    item = "{id: a, expected_outcome: Names a source, required: true}"
    graders = f"[{{name: r, type: rubric, rubrics: [{item}]}}, {{type: contains, value: Paris, weight: 99}}]"
    assert "r" in await red(graders, judge={"checks": [{"id": "a", "satisfied": False, "reasoning": "none"}]})


def called(*tools: str) -> dict[str, Any]:
    calls = [{"tool": tool, "arguments": {}} for tool in tools]
    return {"messages": [{"role": "assistant", "content": PARIS, "tool_calls": calls}]}


CALLS = called("search", "read", "write", "answer")


@pytest.mark.parametrize(
    "expected",
    ["[search, read, write]", "[search, read, write, answer, done]"],
    ids=["one call too many", "one call of five missing"],
)
async def test_5_an_exact_trajectory_is_exact(red: Gate, expected: str) -> None:
    items = ", ".join(f"{{tool: {tool}}}" for tool in expected.strip("[]").split(", "))
    graders = f"[{{name: t, type: tool_trajectory, mode: exact, expected: [{items}]}}]"
    assert "t 0" in await red(graders, says(CALLS))


@pytest.mark.parametrize("printed", ['{"score": 0.9', 'loading {x}\n{"score": 0'])
async def test_6_a_code_grader_that_prints_garbage_is_no_pass(tmp_path: Path, printed: str) -> None:
    graders = "[{name: g, type: code_judge, script: [python3, judge.py]}]"
    files = one_test(graders, **{"judge.py": f"print({printed!r})"})
    ruling = await gate_of_files(tmp_path, files, says(PARIS))
    assert ruling.decision is Decision.INCONCLUSIVE
    assert any("g:" in reason.message for reason in ruling.reasons)


@pytest.mark.parametrize("checks", [{"a": True, "b": False}, {"a": True}], ids=["unmet", "left out by the judge"])
async def test_7_a_required_rubric_item_fails_the_test(red: Gate, checks: dict[str, bool]) -> None:
    items = "[{id: a, outcome: A, weight: 9}, {id: b, outcome: B, required: true}]"
    judge = {"checks": [{"id": key, "satisfied": met} for key, met in checks.items()]}
    assert "r" in await red(f"[{{name: r, type: rubrics, criteria: {items}}}]", judge=judge)


@pytest.mark.parametrize(
    "member",
    [
        "{name: b, type: contains, value: Rome, required: true, weight: 0.1}",
        "{name: b, type: contains, value: Paris, negate: true, weight: 9}",
        "{name: b, type: contains, value: Rome, weight: 9}",
    ],
    ids=["required", "negate", "weight"],
)
async def test_8_what_a_member_of_a_composite_says_counts(red: Gate, member: str) -> None:
    members = f"[{{name: a, type: contains, value: Paris}}, {member}]"
    assert "g" in await red(f"[{{name: g, type: composite, assert: {members}}}]")


@pytest.mark.parametrize("strategy", ["mean", "pass_all", "confidence_interval"])
async def test_9_the_strategy_of_the_repeats_decides(red: Gate, strategy: str) -> None:
    text = (
        f"name: hole\nexecution: {{trials: {{count: 3, strategy: {strategy}}}}}\n"
        "tests:\n  - {id: one, input: hi, assertions: [{type: contains, value: Paris}]}\n"
    )
    await red({"hole.eval.yaml": text}, lambda attempt: PARIS if attempt.trial == 1 else "wrong", k=None)


async def test_10_every_limit_binds(red: Gate) -> None:
    kept = "max_tool_calls: 9, max_llm_calls: 9, max_duration_ms: 60000, max_input_tokens: 99"
    graders = f"[{{name: m, type: execution_metrics, {kept}, max_output_tokens: 1}}]"
    assert "m 0" in await red(graders, says({**CALLS, "usage": {"tokens_in": 10, "tokens_out": 5}}))


@pytest.mark.parametrize("name", ["dataset.yaml", "dataset.eval.yaml"])
async def test_11_the_graders_of_a_sidecar_run(red: Gate, name: str) -> None:
    files = {
        "dataset.jsonl": '{"id": "s1", "criteria": "says yes", "input": "hello", "expected_output": "yes"}\n',
        name: "name: side\nassert:\n  - {name: must, type: contains, value: IMPOSSIBLE, required: true}\n",
    }
    assert "must: required, but its score is 0" in await red(files, says("yes"))


@pytest.mark.parametrize("tool", ["shell", "Bash", "exec_command"])
async def test_12_a_forbidden_shell_is_forbidden(red: Gate, tool: str) -> None:
    await red(one_prompt(f'[{{type: "not-trajectory:tool-used", value: {tool}}}]'), says(called(tool)))


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


async def test_14_equals_compares_numbers(red: Gate) -> None:
    await red('[{type: equals, value: 42}, {type: contains, value: "4", name: c}]', says("41 and 4"))


async def test_15_gains_elsewhere_buy_no_regression_back(red: Gate) -> None:
    text = (
        "name: hole\ntests:\n"
        "  - {id: safety, criteria: c, input: refuse, assert: [{type: contains, value: refuse}]}\n"
        "  - {id: better, criteria: c, input: hi, assert: [{type: contains, value: Paris}]}\n"
        "  - {id: better-too, criteria: c, input: hi, assert: [{type: contains, value: France}]}\n"
    )
    assert "safety" in await red({"EVAL.yaml": text})


async def test_15_tests_that_were_not_run_are_no_pass(tmp_path: Path) -> None:
    text = "name: hole\ntests:\n" + "".join(
        f"  - {{id: t{number}, criteria: c, input: hi, assert: [{{type: contains, value: Paris}}]}}\n"
        for number in range(4)
    )
    tasks, finished = await trials_of_files(tmp_path, {"EVAL.yaml": text}, says(PARIS))
    plan = a_plan(*tasks)
    ruling = rule_on(plan, plan.gate_policy, measure_trials(tasks, [finished[0].trial]), Baseline(branch="main"))
    assert ruling.decision is Decision.INCONCLUSIVE
    assert [reason.rule for reason in ruling.reasons] == [Rule.MISSING_EVIDENCE] * 3


def test_16_validate_reads_eval_yaml_and_finds_what_is_wrong(bare_project: Project) -> None:
    graders = (
        "[{name: g, type: composite, aggregator: {type: no_such}, assert: [{name: a, type: contains, value: x}]}, "
        "{type: tool_trajectory, mode: sideways, expected: [{tool: a}]}]"
    )
    bare_project.write("EVAL.yaml", one_test(graders)["EVAL.yaml"])
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


async def test_18_a_judge_that_says_fail_is_heard(red: Gate) -> None:
    judge = {"pass": False, "score": 0.95, "reason": "rude"}
    await red(one_prompt("[{type: llm-rubric, value: Is it polite?}]"), judge=judge)


MEMBERS = "[{type: contains, value: Paris, weight: 9}, {type: contains, value: Rome}]"


@pytest.mark.parametrize("threshold", ["", "threshold: 0.95, "])
async def test_18_a_set_of_assertions_that_fails_is_heard(red: Gate, threshold: str) -> None:
    await red(one_prompt(f"[{{type: assert-set, {threshold}assert: {MEMBERS}}}]"))


async def test_18_the_threshold_of_a_test_is_heard(red: Gate) -> None:
    await red(one_prompt(MEMBERS, "threshold: 0.95, "))
