"""Tests of eval files as tasks: what they must say, what they may say, and what nobody does for them."""

from pathlib import Path
from typing import Any

import pytest

from passgate.tasks.formats.evals.documents import Ground, full_id
from passgate.tasks.formats.evals.graders import NO_TRANSFORM
from passgate.tasks.formats.evals.tests import merge
from passgate.tasks.model.assertions import LlmGrader
from passgate.tasks.model.graders import Turns
from passgate.tasks.model.task import Scoring, Suite
from tests.builders import SHIPPED
from tests.unit.formats.evals.eval_tasks import SOUND, read_file, read_test, read_tests

CONTAINS = {"type": "contains", "value": "x"}


def labels(task) -> list[str]:
    return [grader.label for grader in task.graders]


def test_a_test_is_a_task(tmp_path: Path) -> None:
    task = read_test(tmp_path, description="Greets.", note="For judges.", conversation_id="c1").one
    assert (task.task_id, task.suite, task.description) == ("t", Suite.GOLDEN, "Greets.")
    assert (task.criteria, task.note, task.scoring) == ("Is kind.", "For judges.", Scoring(rule="weighted_average"))
    assert {"total_tokens", "wall_time_seconds", "cost", "tool_call_count"} <= set(task.tracked_metrics)
    assert (task.file, task.line) == ("EVAL.yaml", 2)


def test_every_dialect_says_the_same(tmp_path: Path) -> None:
    goal, ask = "Is kind.", [{"role": "user", "content": "Hi"}]
    oldest = {"evaluators": [CONTAINS]}
    dialects: list[Any] = [
        {"evalcases": [{"id": "t", "expected_outcome": goal, "input_messages": ask, "execution": oldest}]},
        {"cases": [{"id": "t", "criteria": goal, "input": ask, "execution": oldest}]},
        {"tests": [{"id": "t", "criteria": goal, "input": "Hi", "assert": [CONTAINS]}]},
        {"tests": [{"id": "t", "criteria": goal, "input": "Hi", "assertions": [CONTAINS]}]},
        {"tests": [{"id": "t", "criteria": goal, "vars": {"q": "Hi"}, "assert": [CONTAINS]}], "prompts": ["{{ q }}"]},
    ]
    tasks = [read_file(tmp_path, dialect).one for dialect in dialects]
    assert len({(task.task_digest, task.grader_digest) for task in tasks}) == 1


NEEDS_A_GOAL = "something that tells a good answer (`criteria`, `expected_output` or `assert`)"


SAME = "mean the same and differ; keep one of them"


@pytest.mark.parametrize(
    ("test", "problem"),
    [
        ({"input": "x", "criteria": "c"}, ": the key 'id' is missing"),
        (SOUND | {"id": " "}, ": the key 'id' is missing"),
        (SOUND | {"id": None}, ": the key 'id' is missing"),
        ({"id": "t", "criteria": "c"}, ": incomplete test: it needs `input`"),
        (SOUND | {"input": "  "}, ": incomplete test: it needs `input`"),
        (SOUND | {"input": []}, ": incomplete test: it needs `input`"),
        ({"id": "t", "input": "x"}, f": incomplete test: it needs {NEEDS_A_GOAL}"),
        ({"id": "t", "assert": []}, f": incomplete test: it needs `input` and {NEEDS_A_GOAL}"),
        (SOUND | {"expected_outcome": "x"}, f".expected_outcome: 'criteria' and 'expected_outcome' {SAME}"),
        (SOUND | {"critera": "x"}, ".critera: unknown key; did you mean 'criteria'?"),
        (SOUND | {"assert": [{"type": "regx"}]}, ".assert[0].type: unknown evaluator 'regx'; did you mean 'regex'?"),
        (SOUND | {"mode": "conversation"}, ".mode: a conversation needs `turns`"),
        ({"id": "t", "mode": "conversation", "turns": [{"input": "x"}]}, f": incomplete test: it needs {NEEDS_A_GOAL}"),
    ],
)
def test_what_is_wrong_with_a_test_is_told_and_it_is_no_task(tmp_path: Path, test: Any, problem: str) -> None:
    answer = read_tests(tmp_path, test)
    assert (answer.problems, answer.tasks) == ([f"tests[0]{problem}"], ())


def test_an_id_that_stands_twice_is_a_problem_that_names_both(tmp_path: Path) -> None:
    answer = read_tests(tmp_path, SOUND, SOUND | {"id": "other"}, SOUND)
    (problem,) = answer.complaints.problems
    assert str(problem) == "EVAL.yaml:8:3: tests[2]: the test 't' has the id of the one in EVAL.yaml:2"
    assert answer.ids == ["t", "other"]


def test_criteria_that_a_missing_variable_makes_empty_keep_the_test_from_running(tmp_path: Path) -> None:
    test = SOUND | {"criteria": "${{ GOAL }}"}
    answer = read_tests(tmp_path, test)
    assert answer.problems == []
    assert answer.warnings == ["tests[0].criteria: the environment variable 'GOAL' is not set, so it is empty here"]
    assert answer.cannot_run == ["tests[0].criteria: nothing tells a good answer: the criteria are empty"]
    assert read_tests(tmp_path, test, environment={"GOAL": "kind"}).one.criteria == "kind"


def test_criteria_or_an_expected_answer_alone_are_graded_by_a_judge(tmp_path: Path) -> None:
    messages = [{"role": "assistant", "content": "Yes"}]
    for said in ({"criteria": "c"}, {"expected_output": "Yes"}, {"expected_messages": messages}):
        task = read_tests(tmp_path, {"id": 7, "input": "x", **said}).one
        assert (task.task_id, task.graders) == ("7", (LlmGrader(type="llm_grader"),))
    assert read_test(tmp_path, expected_outcome="Is kind.").one.criteria == "Is kind."


def test_the_problems_of_all_tests_come_together(tmp_path: Path) -> None:
    tests = SOUND | {"note": 3}, SOUND | {"id": "good"}, SOUND | {"id": "x", "threshold": 2}
    answer = read_tests(tmp_path, *tests)
    assert answer.problems == [
        "tests[0].note: expected a text, not 3",
        "tests[2].threshold: must be at most 1, not 2",
    ]
    assert answer.ids == ["good"]
    broken = read_tests(tmp_path, *tests[1:2], SOUND, top={"assert": [{"type": "contains"}]})
    assert (broken.problems, broken.tasks) == (["assert[0]: the key 'value' is missing"], ())


def test_graders_are_the_rubric_then_the_tests_own_then_those_of_the_file(tmp_path: Path) -> None:
    top = {"assert": [{"type": "regex", "value": "f", "name": "of file"}], "rubrics": ["Of file"]}
    own = {"rubrics": ["Own"], "assert": [{"type": "contains", "value": "x", "name": "own"}]}
    assert labels(read_test(tmp_path, top, **own).one) == ["rubrics", "own", "rubrics", "of file"]
    alone = read_test(tmp_path, top, execution={"skip_defaults": True}, **own).one
    assert labels(alone) == ["rubrics", "own"]
    assert labels(read_tests(tmp_path, {"id": "t", "input": "x"}, top=top).one) == ["rubrics", "of file"]


@pytest.mark.parametrize("place", ["assert", "assertions", "evaluators"])
def test_graders_in_two_places_must_be_the_same(tmp_path: Path, place: str) -> None:
    same = {place: [CONTAINS], "execution": {"evaluators": [CONTAINS]}}
    assert labels(read_test(tmp_path, **same).one) == ["contains"]
    assert read_test(tmp_path, **(same | {place: [CONTAINS | {"value": "y"}]})).problems == [
        f"tests[0].execution.evaluators: says something else than tests[0].{place}; keep one of them"
    ]


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"preprocessors": [{"type": "xlsx"}]}, "passgate runs no preprocessors: let a `script` grader read the file"),
        ({"options": {"transform": "file://x.ts"}}, NO_TRANSFORM),
        ({"options": {"prefix": "x"}}, "write it into the prompt, under `prompts`"),
        ({"assert": [{"type": "contains", "value": "x", "transform": "output.trim()"}]}, NO_TRANSFORM),
        ({"assert": [{"type": "script", "command": "ls", "postprocess": "x"}]}, NO_TRANSFORM),
        ({"options": {"storeOutputAs": "x"}}, "every trial stands alone: no test gets the answer of another"),
        ({"execution": {"sandbox": "docker"}}, "passgate has no `sandbox` of another tool"),
        ({"assert": [{"type": "code_judge", "script": ["python", "./gone.py"]}]}, "no file './gone.py' in '.'"),
    ],
)
def test_what_passgate_cannot_do_keeps_the_test_from_running_and_no_other(
    tmp_path: Path, said: dict[str, Any], message: str
) -> None:
    answer = read_tests(tmp_path, SOUND | said, SOUND | {"id": "u"})
    assert [text.split(": ", 1)[1] for text in answer.cannot_run] == [message]
    assert [len(task.cannot_run) for task in answer.tasks] == [1, 0]


def test_what_a_file_asks_for_and_cannot_be_had_keeps_all_its_tests_from_running(tmp_path: Path) -> None:
    answer = read_tests(tmp_path, SOUND, SOUND | {"id": "u"}, top={"preprocessors": [{"type": "xlsx"}]})
    assert len(answer.cannot_run) == 1
    assert [task.cannot_run for task in answer.tasks] == [tuple(map(str, answer.complaints.cannot_run))] * 2


@pytest.mark.parametrize(
    ("top", "said", "name", "suite", "assumed"),
    [
        ({"suite": "adversarial"}, {}, "EVAL.yaml", Suite.ADVERSARIAL, False),
        ({"metadata": {"suite": "open_ended"}}, {}, "EVAL.yaml", Suite.OPEN_ENDED, False),
        ({"tags": ["x", "failure_replays"]}, {}, "EVAL.yaml", Suite.FAILURE_REPLAYS, False),
        ({"suite": "adversarial"}, {"metadata": {"suite": "golden"}}, "EVAL.yaml", Suite.GOLDEN, False),
        ({}, {}, "adversarial/chat/EVAL.yaml", Suite.ADVERSARIAL, False),
        ({}, {}, "EVAL.yaml", Suite.GOLDEN, True),
        ({"suite": "math-tests"}, {}, "EVAL.yaml", Suite.GOLDEN, True),
    ],
)
def test_a_file_or_a_test_names_its_suite_else_the_folder_does_else_it_is_golden(
    tmp_path: Path, top: Any, said: Any, name: str, suite: Suite, assumed: bool
) -> None:
    task = read_tests(tmp_path, SOUND | said, top=top, name=name).one
    assert (task.suite, task.suite_assumed, task.k) == (suite, assumed, SHIPPED.suites[suite].k)


def test_a_suite_of_another_folder_or_that_the_policy_does_not_know_is_a_problem(tmp_path: Path) -> None:
    assert read_tests(tmp_path, SOUND, top={"suite": "golden"}, name="adversarial/EVAL.yaml").problems == [
        "tests[0]: the file lies in the folder of adversarial; move it or write `suite: adversarial`"
    ]
    policy = SHIPPED.model_copy(update={"suites": {Suite.ADVERSARIAL: SHIPPED.suites[Suite.ADVERSARIAL]}})
    assert read_tests(tmp_path, SOUND, policy=policy).problems == [
        "tests[0]: the gates file says nothing of the suite golden under `suites:`"
    ]


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("golden/chat.eval.yaml", "chat/t"),
        ("golden/deep/chat.eval.yml", "deep/chat/t"),
        ("golden/review/EVAL.yaml", "review/t"),
        ("EVAL.yaml", "t"),
        ("review/dataset.jsonl", "review/dataset/t"),
        ("a.b.EVAL.yaml", "a.b/t"),
        ("../outside/x.yaml", "outside/x/t"),
    ],
)
def test_a_test_is_named_by_its_file(tmp_path: Path, file: str, name: str) -> None:
    place = tmp_path / "suites" / file, Ground(tmp_path / "suites", tmp_path)
    assert (full_id("t", *place), full_id("t", *place, "short")) == (name, f"{name}#short")


def test_tests_of_an_include_are_named_by_the_file_that_is_run(tmp_path: Path) -> None:
    files = {"golden/cases.yaml": "- {id: a, input: x, criteria: c}\n"}
    task = read_file(tmp_path, {"tests": ["./cases.yaml"]}, name="golden/all.eval.yaml", files=files).one
    assert (task.task_id, task.file, task.line) == ("all/a", "golden/cases.yaml", 1)


def test_metadata_of_the_file_lies_under_that_of_the_test(tmp_path: Path) -> None:
    top = {
        "metadata": {"tags": ["a", "b"], "owner": {"team": "x", "since": 1}, "level": 1},
        "governance": {"risk_tier": "high"},
        "tags": ["top"],
    }
    own = {"tags": ["b", "c"], "owner": {"team": "y"}, "level": 2}
    task = read_test(tmp_path, top, metadata=own, governance={"owner": "me"}).one
    assert task.metadata == {
        "tags": ["a", "b", "c"],
        "owner": {"team": "y", "since": 1},
        "level": 2,
        "governance": {"risk_tier": "high", "owner": "me"},
    }
    assert task.tags == ("top", "a", "b", "c")
    assert read_test(tmp_path, {"tags": {"experiment": "x", "n": 1}}).one.tags == ("experiment=x", "n=1")


def test_lists_are_joined_without_repeating_and_a_suite_of_another_tool_is_kept(tmp_path: Path) -> None:
    assert merge({"a": [1, True, {"b": 1}]}, {"a": [True, 1.0, {"b": 1}, 2]}) == {"a": [1, True, {"b": 1}, 2]}
    assert read_test(tmp_path).one.metadata == {}
    assert read_test(tmp_path, {"suite": "math-tests"}).one.metadata == {"suite": "math-tests"}


ALICE = {"type": "contains", "value": "Alice"}
CHAT: dict[str, Any] = {
    "id": "t",
    "mode": "conversation",
    "turns": [{"input": "I am Alice.", "assert": [ALICE]}, {"input": "Who am I?", "expected_output": "Alice"}],
}


def test_the_first_turn_is_asked_and_the_others_are_what_the_user_says_then(tmp_path: Path) -> None:
    turns = [{"input": "I am {{name}}.", "expected_output": "Hi {{name}}"}, {"input": "{{name}}?", "assert": [ALICE]}]
    task = read_tests(tmp_path, CHAT | {"turns": turns, "vars": {"name": "Alice"}}).one
    assert (task.prompt, task.user and task.user.says) == ("I am Alice.", ("Alice?",))
    (grader,) = task.graders
    assert isinstance(grader, Turns)
    assert grader.turns[0].expected_output == "Hi Alice"
    system = [{"role": "system", "content": "Be short."}]
    one = read_tests(tmp_path, CHAT | {"input": system, "turns": CHAT["turns"][:1]}).one
    assert ([message.role for message in one.messages], one.user) == (["system", "user"], None)


def test_a_conversation_has_one_grader_with_those_of_its_turns(tmp_path: Path) -> None:
    whole = CHAT | {"aggregation": "min", "on_turn_failure": "stop", "assert": [{"type": "is-json"}]}
    (grader,) = read_tests(tmp_path, whole).one.graders
    assert isinstance(grader, Turns)
    assert (grader.aggregation, grader.on_turn_failure) == ("min", "stop")
    assert [[inner.type for inner in turn.assertions] for turn in grader.turns] == [["contains"], []]
    assert [turn.expected_output for turn in grader.turns] == [None, "Alice"]
    assert [inner.type for inner in grader.conversation] == ["is_json"]


def test_what_is_wrong_with_turns_is_a_problem(tmp_path: Path) -> None:
    broken = CHAT | {"aggregation": "median", "turns": [{"inputs": "x"}, {"input": "", "assert": [ALICE]}]}
    assert read_tests(tmp_path, broken).problems == [
        "tests[0].aggregation: \"median\" is not one of the allowed values; did you mean 'mean'?",
        "tests[0].turns[0].inputs: unknown key; did you mean 'input'?",
        "tests[0].turns[1].input: must not be empty",
        "tests[0]: incomplete test: it needs `input`",
    ]
