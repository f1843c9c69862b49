"""Graders that cannot fail, and graders that an agent satisfies without the work."""

import re
import subprocess
from typing import Any

import pytest
import regress

from passgate.tasks.graders.vacuous import (
    always_succeeds,
    cannot_fail,
    graders_that_ask_too_little,
    graders_that_cannot_fail,
    javascript_finds_everything,
    points_for_nothing,
    python_finds_everything,
    says_the_same,
)
from passgate.tasks.model.task import EvalTask
from tests.builders import SAYS_YES, a_task
from tests.unit.graders.options import metrics, output, state

WEIGHTED = {"rule": "weighted_average"}
POINTS = {"type": "regex", "value": ".*"}
ASKS = {"type": "contains", "value": "yes"}


def of(*graders: dict[str, Any], **changes: Any) -> EvalTask:
    return a_task(graders=list(graders), **changes)


def command(line: str, **more: Any) -> dict[str, Any]:
    return state({"command": line, **more})


def composite(*members: dict[str, Any], aggregator: str = "weighted_average", **fields: Any) -> dict[str, Any]:
    half = {"threshold": 0.5} if aggregator == "threshold" else {}
    return {"type": "composite", "assertions": members, "aggregator": {"type": aggregator} | half, **fields}


def allows(*patterns: str, **fields: Any) -> dict[str, Any]:
    return {"type": "policy_check", "arguments": [{"tool": "t", "param": "p", "allow": patterns, **fields}]}


EXPLORES = {"type": "execution_metrics", "target_exploration_ratio": 0.5}
RUBRIC = {"type": "llm_rubric", "rubric": "Be good."}


@pytest.mark.parametrize(
    ("grader", "reason"),
    [
        ({"type": "deterministic_tests", "tests": ["t"], "command": "pytest {tests} || true"}, "exits 0 whatever"),
        ({"type": "static_analysis", "tools": ["true", "mypy . | tail -1"]}, "exits 0 whatever"),
        (command("true"), "exit 0 whatever"),
        (command("make; echo ok", stdout_contains=[" "], stdout_matches=".*"), "exit 0 whatever"),
        (metrics(max_loop_rate=1), "max_loop_rate: 1"),
        (metrics(max_retry_rate=1.0, max_tool_error_rate=1), "max_tool_error_rate: 1"),
        (metrics(min_steps=0, min_tool_calls=0), "min_steps: 0"),
        *((allows("a", "*"), "every argument"), (output(matches=".*"), "matches '.*'")),
        *((output(contains=[" "]), "blank"), (RUBRIC | {"threshold": 0}, "threshold is 0")),
        ({"type": "contains", "value": "\n"}, "blank"),
        ({"type": "contains_any", "value": ["yes", " "]}, "blank"),
        (ASKS | {"min_score": 0}, "least score is 0"),
        (ASKS | {"min_score": 0, "negate": True}, "least score is 0"),
        ({"type": "regex", "value": "(yes)?"}, "matches /(yes)?/"),
        ({"type": "code_grader", "command": ["echo", '{"score": 1}']}, "says the same"),
        ({"type": "python", "value": "return True;"}, "says the same"),
        ({"type": "javascript", "value": "output.length > 3", "threshold": 0}, "least score is 0"),
        ({"type": "llm_grader", "min_score": 0}, "least score is 0"),
        ({"type": "rubrics", "criteria": [{"id": "a", "outcome": "It is so."}], "min_score": 0}, "least score is 0"),
        ({"type": "tool_trajectory", "minimums": {"search": 0}}, "minimums are 0"),
        ({"type": "tool_used", "tools": ["search"], "min": 0}, "`min` is 0"),
        ({"type": "step_count", "min": 0}, "0 steps or more"),
        ({"type": "token_usage", "max_total": 10, "min_score": 0}, "least score is 0"),
        ({"type": "latency", "threshold": float("inf")}, "threshold: inf"),
        ({"type": "cost", "budget": float("inf")}, "budget: inf"),
        (composite(POINTS), "matches /.*/"),
        (composite(SAYS_YES, threshold=0), "whatever its members"),
        (composite(SAYS_YES, POINTS, aggregator="maximum"), "matches /.*/"),
    ],
)
def test_what_cannot_fail(grader: dict[str, Any], reason: str) -> None:
    assert reason in (cannot_fail(of(grader).graders[0]) or "")


@pytest.mark.parametrize(
    "grader",
    [
        {"type": "deterministic_tests", "tests": ["t"]},
        {"type": "deterministic_tests", "tests": ["t"], "command": "python {tests}/check.py"},
        {"type": "static_analysis", "tools": ["true", "ruff"]},
        *(state({"file": "a.txt", "exists": False}), state({"command": "true"}, {"file": "a.txt"})),
        *(command("true", exit_code=1), command("echo $(cat a)", stdout_contains=["b"])),
        *(command("wc -l a | tr -d x", stdout_matches="^3"), {"type": "tool_calls", "forbidden": ["delete"]}),
        *(metrics(max_loop_rate=0.99), metrics(min_tool_calls=1), allows("*", deny=["b"])),
        *({"type": "policy_check", "secrets": True}, output(matches=".*", not_contains=["no"])),
        *(output(matches=".+"), output(json_schema={}), ASKS | {"negate": True}, POINTS | {"negate": True}),
        {"type": "regex", "value": "^(?!.*no)"},
        {"type": "code_grader", "command": ["python", "grade.py"]},
        {"type": "python", "value": "output == 'true'"},
        {"type": "rubrics", "criteria": [{"id": "a", "outcome": "So.", "required": True}], "min_score": 0},
        {"type": "tool_trajectory", "mode": "subset"},
        {"type": "tool_used", "tools": ["search"], "min": 0, "max": 3},
        *(EXPLORES | {"exploration_tolerance": 0.5}, {"type": "latency", "threshold": 1e12}),
        composite(SAYS_YES, POINTS),
        composite(ASKS | {"required": True}, POINTS, aggregator="maximum"),
        {"type": "composite", "assertions": [SAYS_YES], "aggregator": {"type": "llm_grader", "prompt": "?"}},
        {"type": "turns", "turns": [{"assertions": [POINTS]}], "min_score": 0},
    ],
)
def test_what_can_fail(grader: dict[str, Any]) -> None:
    assert cannot_fail(of(grader).graders[0]) is None


def test_of_graders_that_must_all_pass_each_is_told_by_its_place() -> None:
    task = of(SAYS_YES, output(matches="|"), RUBRIC | {"threshold": 0})
    assert [found.place for found in graders_that_cannot_fail(task)] == [1, 2]


@pytest.mark.parametrize(
    ("graders", "threshold", "places"),
    [
        *(([ASKS, POINTS], 0.8, []), ([ASKS, {**POINTS, "weight": 0}], 0.8, [])),
        *(([{**ASKS, "min_score": 0}], 0.8, []), ([POINTS], 0.8, [None]), ([ASKS, POINTS], 0.5, [None])),
        *(([ASKS, POINTS], 0.51, []), ([{**ASKS, "required": True}, POINTS], 0.5, [])),
        *(([{**ASKS, "weight": 0}, POINTS], 0.8, [None]), ([SAYS_YES, POINTS], 0.5, [])),
        *(([ASKS, metrics(max_loop_rate=1)], 0.8, [1]), ([ASKS, RUBRIC | {"threshold": 0}], 0.8, [])),
    ],
)
def test_graders_of_an_average_may_inform(graders: Any, threshold: float, places: list[int | None]) -> None:
    task = of(*graders, scoring={**WEIGHTED, "threshold": threshold})
    assert [found.place for found in graders_that_cannot_fail(task)] == places


def test_a_task_that_cannot_fail_says_what_every_trial_has() -> None:
    (found,) = graders_that_cannot_fail(of(ASKS, {**POINTS, "weight": 3}, scoring={**WEIGHTED, "threshold": 0.6}))
    assert found.why.startswith("no trial has less than 0.75, and 0.6 passes")
    assert "regex: every answer matches /.*/" in found.why


@pytest.mark.parametrize(
    ("grader", "told"),
    [(POINTS, True), ({**POINTS, "weight": 0}, False), ({**POINTS, "min_score": 0}, True), (ASKS, False)],
)
def test_points_for_nothing(grader: dict[str, Any], told: bool) -> None:
    assert bool(points_for_nothing(of(ASKS, grader, scoring=WEIGHTED))) is told
    assert points_for_nothing(of(ASKS, grader)) == []


SCHEMA = output(json_schema={})
EXISTS = state({"file": "report.md"})
WORD = output(contains=["order"])
STRONG = output(contains=["shipped"])
REPEATS = "an agent passes that repeats the prompt"


def whys(*graders: dict[str, Any], prompt: str = "Which state has order 17?", **changes: Any) -> list[tuple[Any, str]]:
    task = of(*graders, inputs={"prompt": prompt}, **changes)
    return [(found.place, found.why) for found in graders_that_ask_too_little(task)]


@pytest.mark.parametrize(
    ("grader", "why"),
    [
        (EXISTS, "an agent passes that leaves an empty report.md"),
        (state({"file": "a"}, {"file": "b", "not_contains": ["x"]}), "an agent passes that leaves an empty a, b"),
        (WORD, REPEATS),
        (output(contains=["ORDER 17"], ignore_case=True), REPEATS),
        ({"type": "contains", "value": "order"}, REPEATS),
        ({"type": "icontains_any", "value": ["Order", "refund"]}, REPEATS),
        ({"type": "starts_with", "value": "Which state"}, REPEATS),
        ({"type": "is_json"}, "an agent passes that answers `{}`"),
        (output(json_schema={"type": "object"}), "an agent passes that answers `{}`"),
        ({"type": "is_json", "value": {"type": "integer"}}, "an agent passes that answers `0`"),
    ],
)
def test_a_task_that_asks_for_nothing_else(grader: dict[str, Any], why: str) -> None:
    assert whys(grader) == [(0, why)]


@pytest.mark.parametrize("schema", [{}, {"title": "Order", "description": "An order."}, {"minimum": -1}])
def test_a_schema_that_accepts_every_document_is_told_whatever_else_is_asked(schema: dict[str, Any]) -> None:
    every = "every JSON document is as its json_schema wants it"
    assert whys(STRONG, output(json_schema=schema)) == [(1, every)]
    assert whys(output(json_schema=schema))[0] == (0, every)


def test_graders_that_are_weak_together() -> None:
    assert whys(WORD, EXISTS) == [(None, f"{REPEATS} and leaves an empty report.md")]
    assert whys(SCHEMA, WORD, prompt="Write JSON of the order.")[1:] == []


@pytest.mark.parametrize(
    "grader",
    [
        STRONG,
        {"type": "contains", "value": "order", "negate": True},
        {"type": "contains_all", "value": ["order", "shipped"]},
        *({"type": "equals", "value": "order"}, output(matches="order")),
        output(json_schema={"type": "object", "required": ["state"]}),
        state({"file": "report.md", "contains": ["shipped"]}),
        *(state({"file": "report.md", "exists": False}), state({"json_file": "a.json", "equals": 1})),
        *(state({"file": "report.md"}, run=["make"]), {"type": "tool_calls", "required": ["get_order"]}),
    ],
)
def test_one_grader_that_asks_for_the_work_is_enough(grader: dict[str, Any]) -> None:
    assert whys(grader) == []
    assert whys(WORD, EXISTS, grader) == []


def test_graders_without_a_weight_ask_for_nothing() -> None:
    inform = {"type": "equals", "value": "shipped", "weight": 0}
    asked = {"type": "contains", "value": "order"}
    assert whys(asked, inform, scoring=WEIGHTED | {"threshold": 0.5}) == [(None, REPEATS)]


ALWAYS = [
    *("true", ":", "exit 0", "echo fine", "FAILS || true", "FAILS || exit 0", "FAILS || :", "FAILS; true"),
    *("FAILS\ntrue", "FAILS; echo 'done; really'", "FAILS | tail -5", "FAILS 2>&1 | tee /dev/null", "(FAILS) || true"),
    *("FAILS &", "true && FAILS || true", "true # and more", "FAILS \\\n || true"),
]
CAN_FAIL = [
    *("FAILS", "exit 1", "exit 3 # 0", "true && FAILS", "echo checking && FAILS", "FAILS && true"),
    *("set -e; FAILS; true", "FAILS || exit 1; true", "exec FAILS || true", "{ FAILS; }", "if true; then FAILS; fi"),
    *("cat no-such-file", "echo hello > /no/such/folder/file", "true | FAILS", 'FAILS "; true"'),
]


@pytest.mark.parametrize(("command", "always"), [*((one, True) for one in ALWAYS), *((one, False) for one in CAN_FAIL)])
def test_commands_that_cannot_fail_and_those_that_can(command: str, always: bool) -> None:
    assert always_succeeds(command) is always
    found = subprocess.run(["sh", "-c", command.replace("FAILS", "false")], capture_output=True, check=False)
    assert (found.returncode == 0) is always


@pytest.mark.parametrize("command", ["", "'unclosed", "for f in x; do true; done", "cat <<END\ntrue"])
def test_what_is_more_than_a_list_of_commands_is_not_judged(command: str) -> None:
    assert not always_succeeds(command)


@pytest.mark.parametrize(
    ("command", "same"),
    [
        *((("echo", '{"score": 1}'), True), (("sh", "-c", "echo '{\"score\": 1}'"), True)),
        *((("sh", "-c", "cat"), False), (("sh", "-c", 'echo "$(cat)"'), False)),
        *((("sh", "-c", "echo 1 | cat"), False), (("python", "grade.py"), False)),
    ],
)
def test_programs_that_say_the_same_of_everything(command: tuple[str, ...], same: bool) -> None:
    assert says_the_same(command) is same


EVERYWHERE = [
    *("", ".*", ".*?", "x?$", "|yes", "yes|", "^", "$", "^(?:yes)?", "[^x]*", "\\^?", "(?=)", "(?!.*password)"),
    *("^[\\s\\S]*$", "^(?:.|\\n)*$"),
]
CAN_BE_MISSING = [
    *("yes", ".", ".+", "\\S", "^.*$", "^\\s*$", "^yes|no$", "^[a-z]*$", "^.{0,280}$", "^(?!.*password)", "\\b"),
    *("\\bx?", "(?<=a)?x", "a|^b", "^(?:(a*))\\1$", "("),
]
TEXTS = ["", "x", "no", "password", "a\nb", "\n", "  ", "aab", "é\U0001f600", "long " * 100 + "password"]


@pytest.mark.parametrize("pattern", EVERYWHERE)
def test_what_is_found_everywhere(pattern: str) -> None:
    assert python_finds_everything(pattern)
    assert javascript_finds_everything(pattern)
    assert all(re.search(pattern, text) and regress.Regex(pattern).find(text) for text in TEXTS)


@pytest.mark.parametrize("pattern", CAN_BE_MISSING)
def test_what_can_be_missing(pattern: str) -> None:
    assert not python_finds_everything(pattern)
    assert not javascript_finds_everything(pattern)


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        *(("(?s)^.*$", True), ("(?i)^.*$", False), ("(?x) x? # all", True), ("(?i)x*", True), ("(?m)^.*$", True)),
        *(("(?m)\\A.*$", True), ("(?m)^.*\\Z", True), ("(?m)\\A.*\\Z", False), ("(?m)^.+$", False)),
        *(("(?m)^x?$", False), ("(?m:^.*$)", True), ("(?i:^.*$)", False), ("^(?s:.*)$", True)),
        ("(?x: ^ .* $ )", False),
    ],
)
def test_flags_within_an_expression_of_python(pattern: str, found: bool) -> None:
    assert python_finds_everything(pattern) is found
    assert all(re.search(pattern, text) for text in TEXTS) or not found


@pytest.mark.parametrize(
    ("pattern", "flags", "found"),
    [
        *(("^.*$", "s", True), ("^.*$", "m", True), ("^x?$", "m", False), ("x?", "y", True), ("x?$", "y", False)),
        ("[^]*", "", True),
        ("x", "u", False),
    ],
)
def test_flags_of_an_expression_of_javascript(pattern: str, flags: str, found: bool) -> None:
    assert javascript_finds_everything(pattern, flags) is found
    assert not found or "y" in flags or all(regress.Regex(pattern, flags).find(text) for text in TEXTS)
