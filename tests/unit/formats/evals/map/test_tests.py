"""Tests of eval files as tasks: what they must say, what they may say, and what nobody does for them."""

from pathlib import Path
from typing import Any

import pytest

from passgate.tasks.formats.evals.map.tests import merged
from passgate.tasks.formats.evals.read.paths import Ground, full_id
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
    assert (task.criteria, task.note) == ("Is kind.", "For judges.")
    assert task.scoring == Scoring(rule="weighted_average")
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


def test_a_test_without_an_id_is_a_problem(tmp_path: Path) -> None:
    for said in ({}, {"id": " "}, {"id": None}):
        answer = read_tests(tmp_path, {"input": "x", "criteria": "c", **said})
        assert answer.problems == ["tests[0]: the key 'id' is missing"]


def test_an_id_that_stands_twice_is_a_problem_that_names_both(tmp_path: Path) -> None:
    answer = read_tests(tmp_path, SOUND, SOUND | {"id": "other"}, SOUND)
    (problem,) = answer.complaints.problems
    assert str(problem) == "EVAL.yaml:8:3: tests[2]: the test 't' has the id of the one in EVAL.yaml:2"
    assert answer.ids == ["t", "other"]


def test_a_number_is_an_id_too(tmp_path: Path) -> None:
    assert read_test(tmp_path, id=7).one.task_id == "7"


@pytest.mark.parametrize(
    ("test", "missing"),
    [
        ({"id": "t", "criteria": "c"}, "`input`"),
        ({"id": "t", "criteria": "c", "input": "  "}, "`input`"),
        ({"id": "t", "criteria": "c", "input": []}, "`input`"),
        ({"id": "t", "input": "x"}, "something that tells a good answer (`criteria`, `expected_output` or `assert`)"),
        (
            {"id": "t", "assert": []},
            "`input` and something that tells a good answer (`criteria`, `expected_output` or `assert`)",
        ),
    ],
)
def test_an_incomplete_test_is_a_problem_that_says_what_is_missing(
    tmp_path: Path, test: dict[str, Any], missing: str
) -> None:
    assert read_tests(tmp_path, test).problems == [f"tests[0]: incomplete test: it needs {missing}"]


def test_criteria_that_a_missing_variable_makes_empty_keep_the_test_from_running(tmp_path: Path) -> None:
    answer = read_test(tmp_path, criteria="${{ GOAL }}")
    assert answer.problems == []
    assert answer.warnings == ["tests[0].criteria: the environment variable 'GOAL' is not set, so it is empty here"]
    assert answer.cannot_run == ["tests[0].criteria: nothing tells a good answer: the criteria are empty"]
    test = SOUND | {"criteria": "${{ GOAL }}"}
    assert read_tests(tmp_path, test, environment={"GOAL": "kind"}).one.criteria == "kind"


def test_criteria_or_an_expected_answer_alone_are_graded_by_a_judge(tmp_path: Path) -> None:
    messages = [{"role": "assistant", "content": "Yes"}]
    for said in ({"criteria": "c"}, {"expected_output": "Yes"}, {"expected_messages": messages}):
        assert read_tests(tmp_path, {"id": "t", "input": "x", **said}).one.graders == (LlmGrader(type="llm_grader"),)


def test_two_goals_that_differ_are_a_problem(tmp_path: Path) -> None:
    assert read_test(tmp_path, expected_outcome="Is kind.").one.criteria == "Is kind."
    (problem,) = read_test(tmp_path, expected_outcome="Is rude.").problems
    assert problem == (
        "tests[0].expected_outcome: 'criteria' and 'expected_outcome' mean the same and differ; keep one of them"
    )


def test_an_unknown_key_is_a_problem_with_the_nearest_name(tmp_path: Path) -> None:
    (problem,) = read_test(tmp_path, critera="x").problems
    assert problem == "tests[0].critera: unknown key; did you mean 'criteria'?"


def test_the_problems_of_all_tests_come_together(tmp_path: Path) -> None:
    answer = read_tests(tmp_path, SOUND | {"note": 3}, SOUND | {"id": "good"}, SOUND | {"id": "x", "threshold": 2})
    assert answer.problems == [
        "tests[0].note: expected a text, not 3",
        "tests[2].threshold: must be from 0 to 1, not 2",
    ]
    assert answer.ids == ["good"]


def test_graders_are_the_rubric_then_the_tests_own_then_those_of_the_file(tmp_path: Path) -> None:
    top = {"assert": [{"type": "regex", "value": "f", "name": "of file"}], "rubrics": ["Of file"]}
    own = {"rubrics": ["Own"], "assert": [{"type": "contains", "value": "x", "name": "own"}]}
    assert labels(read_test(tmp_path, top, **own).one) == ["rubrics", "own", "rubrics", "of file"]
    alone = read_test(tmp_path, top, execution={"skip_defaults": True}, **own).one
    assert labels(alone) == ["rubrics", "own"]


def test_a_test_with_the_graders_of_its_file_needs_no_criteria(tmp_path: Path) -> None:
    test = {"id": "t", "input": "x"}
    assert labels(read_tests(tmp_path, test, top={"assertions": [CONTAINS]}).one) == ["contains"]


@pytest.mark.parametrize("place", ["assert", "assertions", "evaluators"])
def test_graders_in_two_places_must_be_the_same(tmp_path: Path, place: str) -> None:
    same = {place: [CONTAINS], "execution": {"evaluators": [CONTAINS]}}
    assert labels(read_test(tmp_path, **same).one) == ["contains"]
    (problem,) = read_test(tmp_path, **(same | {place: [CONTAINS | {"value": "y"}]})).problems
    assert problem == (f"tests[0].execution.evaluators: says something else than tests[0].{place}; keep one of them")


def test_a_wrong_grader_is_not_replaced_by_a_judge(tmp_path: Path) -> None:
    answer = read_test(tmp_path, **{"assert": [{"type": "contans", "value": "x"}]})
    assert answer.tasks == ()
    assert "unknown evaluator 'contans'; did you mean 'contains'?" in answer.problems[0]


def test_a_broken_grader_of_the_file_is_told_once_and_no_test_is_a_task(tmp_path: Path) -> None:
    answer = read_tests(tmp_path, SOUND, SOUND | {"id": "u"}, top={"assert": [{"type": "contains"}]})
    assert answer.problems == ["assert[0]: the key 'value' is missing"]
    assert answer.tasks == ()


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"preprocessors": [{"type": "xlsx"}]}, "passgate runs no preprocessors of files"),
        ({"options": {"transform": "file://x.ts"}}, "passgate transforms no answers"),
        ({"options": {"storeOutputAs": "x"}}, "every trial stands alone: no test gets the answer of another"),
        ({"execution": {"sandbox": "docker"}}, "passgate has no `sandbox` of another tool"),
        ({"targets": [{"name": "a", "hooks": {}}]}, "passgate has no hooks of targets"),
    ],
)
def test_what_passgate_cannot_do_keeps_the_test_from_running(
    tmp_path: Path, said: dict[str, Any], message: str
) -> None:
    answer = read_test(tmp_path, **said)
    assert [text.split(": ", 1)[1] for text in answer.cannot_run] == [message]
    assert len(answer.one.cannot_run) == 1


@pytest.mark.parametrize("key", ["preprocessors", "extensions"])
def test_what_a_file_asks_for_in_vain_keeps_all_its_tests_from_running(tmp_path: Path, key: str) -> None:
    answer = read_tests(tmp_path, SOUND, SOUND | {"id": "u"}, top={key: ["agentv:agent-rules"]})
    assert len(answer.cannot_run) == 1
    assert [task.cannot_run for task in answer.tasks] == [tuple(map(str, answer.complaints.cannot_run))] * 2


def test_a_missing_file_keeps_only_its_own_test_from_running(tmp_path: Path) -> None:
    judge = {"type": "code_judge", "script": ["python", "./gone.py"]}
    first, second = read_tests(tmp_path, SOUND | {"assert": [judge]}, SOUND | {"id": "u"}).tasks
    assert len(first.cannot_run) == 1
    assert second.cannot_run == ()


@pytest.mark.parametrize(
    ("top", "said", "suite"),
    [
        ({"suite": "adversarial"}, {}, Suite.ADVERSARIAL),
        ({"metadata": {"suite": "open_ended"}}, {}, Suite.OPEN_ENDED),
        ({"tags": ["x", "failure_replays"]}, {}, Suite.FAILURE_REPLAYS),
        ({"suite": "adversarial"}, {"metadata": {"suite": "golden"}}, Suite.GOLDEN),
    ],
)
def test_a_file_or_a_test_names_its_suite(
    tmp_path: Path, top: dict[str, Any], said: dict[str, Any], suite: Suite
) -> None:
    task = read_test(tmp_path, top, **said).one
    assert (task.suite, task.suite_assumed) == (suite, False)


def test_else_the_folder_does(tmp_path: Path) -> None:
    task = read_tests(tmp_path, SOUND, name="adversarial/chat/EVAL.yaml").one
    assert (task.suite, task.suite_assumed, task.k) == (Suite.ADVERSARIAL, False, 10)


def test_without_any_it_is_assumed_to_be_golden(tmp_path: Path) -> None:
    task = read_test(tmp_path).one
    assert (task.suite, task.suite_assumed) == (Suite.GOLDEN, True)


def test_a_suite_of_another_name_is_the_other_tools(tmp_path: Path) -> None:
    task = read_test(tmp_path, {"suite": "math-tests"}).one
    assert (task.suite_assumed, task.metadata) == (True, {"suite": "math-tests"})


def test_a_file_in_the_folder_of_another_suite_is_a_problem(tmp_path: Path) -> None:
    answer = read_tests(tmp_path, SOUND, top={"suite": "golden"}, name="adversarial/EVAL.yaml")
    assert answer.problems == [
        "tests[0]: the file lies in the folder of adversarial; move it or write `suite: adversarial`"
    ]


def test_a_suite_that_the_policy_does_not_know_is_a_problem(tmp_path: Path) -> None:
    policy = SHIPPED.model_copy(update={"suites": {Suite.ADVERSARIAL: SHIPPED.suites[Suite.ADVERSARIAL]}})
    (problem,) = read_tests(tmp_path, SOUND, policy=policy).problems
    assert problem == "tests[0]: the gates file says nothing of the suite golden under `suites:`"


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
    ground = Ground(tmp_path / "suites", tmp_path)
    assert full_id("t", (tmp_path / "suites" / file), ground) == name
    assert full_id("t", (tmp_path / "suites" / file), ground, "short") == f"{name}#short"


def test_tests_of_an_include_are_named_by_the_file_that_is_run(tmp_path: Path) -> None:
    files = {"cases.yaml": "- {id: a, input: x, criteria: c}\n"}
    (task,) = read_file(
        tmp_path,
        {"tests": ["./cases.yaml"]},
        name="golden/all.eval.yaml",
        files=files | {"golden/cases.yaml": files["cases.yaml"]},
    ).tasks
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


def test_tags_may_have_values(tmp_path: Path) -> None:
    assert read_test(tmp_path, {"tags": {"experiment": "x", "n": 1}}).one.tags == ("experiment=x", "n=1")


def test_lists_are_joined_without_repeating() -> None:
    assert merged({"a": [1, True, {"b": 1}]}, {"a": [True, 1.0, {"b": 1}, 2]}) == {"a": [1, True, {"b": 1}, 2]}


ALICE = {"type": "contains", "value": "Alice"}
CHAT: dict[str, Any] = {
    "id": "t",
    "mode": "conversation",
    "turns": [{"input": "I am Alice.", "assert": [ALICE]}, {"input": "Who am I?", "expected_output": "Alice"}],
}


def test_the_first_turn_is_asked_and_the_others_are_what_the_user_says_then(tmp_path: Path) -> None:
    task = read_tests(tmp_path, CHAT).one
    assert task.prompt == "I am Alice."
    assert task.user is not None
    assert task.user.says == ("Who am I?",)


def test_the_input_goes_before_the_first_turn(tmp_path: Path) -> None:
    system = [{"role": "system", "content": "Be short."}]
    task = read_tests(tmp_path, CHAT | {"input": system}).one
    assert [message.role for message in task.messages] == ["system", "user"]


def test_a_conversation_has_one_grader_with_those_of_its_turns(tmp_path: Path) -> None:
    whole = CHAT | {"aggregation": "min", "on_turn_failure": "stop", "assert": [{"type": "is-json"}]}
    (grader,) = read_tests(tmp_path, whole).one.graders
    assert isinstance(grader, Turns)
    assert (grader.aggregation, grader.on_turn_failure) == ("min", "stop")
    assert [[inner.type for inner in turn.assertions] for turn in grader.turns] == [["contains"], []]
    assert [turn.expected_output for turn in grader.turns] == [None, "Alice"]
    assert [inner.type for inner in grader.conversation] == ["is_json"]


def test_a_conversation_of_one_turn_has_no_further_user(tmp_path: Path) -> None:
    assert read_tests(tmp_path, CHAT | {"turns": CHAT["turns"][:1]}).one.user is None


def test_variables_are_filled_into_turns(tmp_path: Path) -> None:
    turns = [{"input": "I am {{name}}.", "expected_output": "Hi {{name}}"}, {"input": "{{name}}?", "assert": [ALICE]}]
    task = read_tests(tmp_path, CHAT | {"turns": turns, "vars": {"name": "Alice"}}).one
    (grader,) = task.graders
    assert isinstance(grader, Turns)
    assert (task.prompt, task.user and task.user.says) == ("I am Alice.", ("Alice?",))
    assert grader.turns[0].expected_output == "Hi Alice"


def test_a_conversation_without_graders_is_incomplete(tmp_path: Path) -> None:
    (problem,) = read_tests(tmp_path, CHAT | {"turns": [{"input": "x"}]}).problems
    assert problem.startswith("tests[0]: incomplete test: it needs something that tells a good answer")


def test_what_is_wrong_with_turns_is_a_problem(tmp_path: Path) -> None:
    broken = CHAT | {"aggregation": "median", "turns": [{"inputs": "x"}, {"input": "", "assert": [ALICE]}]}
    assert read_tests(tmp_path, broken).problems == [
        "tests[0].turns[0].inputs: unknown key; did you mean 'input'?",
        "tests[0].turns[1].input: must not be empty",
        "tests[0].aggregation: \"median\" is not one of the allowed values; did you mean 'mean'?",
        "tests[0]: incomplete test: it needs `input`",
    ]


def test_a_conversation_needs_turns(tmp_path: Path) -> None:
    (problem,) = read_tests(tmp_path, {"id": "t", "input": "x", "criteria": "c", "mode": "conversation"}).problems
    assert problem == "tests[0].mode: a conversation needs `turns`"
