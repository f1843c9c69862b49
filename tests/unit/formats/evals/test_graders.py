"""Lists of graders in every spelling."""

from pathlib import Path
from typing import Any

import pytest

from passgate.tasks.model.assertions import Criterion, Equals, Regex, Rubrics, TextAssertion, Unavailable
from tests.unit.formats.evals.eval_tasks import read_test
from tests.unit.formats.evals.grader_lists import FILE, read


@pytest.mark.parametrize(
    ("assertion", "type_name"),
    [
        ({"type": "contains", "value": "a"}, "contains"),
        ({"type": "icontains", "value": "a"}, "icontains"),
        ({"type": "contains-any", "value": ["a"]}, "contains_any"),
        ({"type": "contains_all", "value": ["a"]}, "contains_all"),
        ({"type": "icontains-any", "value": ["a"]}, "icontains_any"),
        ({"type": "icontains_all", "value": ["a"]}, "icontains_all"),
        ({"type": "starts-with", "value": "a"}, "starts_with"),
        ({"type": "ends_with", "value": "a"}, "ends_with"),
        ({"type": "equals", "value": "a"}, "equals"),
        ({"type": "regex", "value": "a"}, "regex"),
        ({"type": "is-json"}, "is_json"),
        ({"type": "code_judge", "script": ["true"]}, "code_grader"),
        ({"type": "code-grader", "command": "true"}, "code_grader"),
        ({"type": "script", "command": ["true"]}, "code_grader"),
        ({"type": "llm-judge", "prompt": "Is it good?"}, "llm_grader"),
        ({"type": "llm_grader"}, "llm_grader"),
        ({"type": "llm-rubric", "value": "It is good."}, "llm_grader"),
        ({"type": "llm_rubric", "value": ["It is good."]}, "rubrics"),
        ({"type": "rubric", "rubrics": ["It is good."]}, "rubrics"),
        ({"type": "rubrics", "criteria": ["It is good."]}, "rubrics"),
        ({"type": "composite", "assertions": [{"type": "is-json"}]}, "composite"),
        ({"type": "assert-set", "assert": [{"type": "is-json"}]}, "composite"),
        ({"type": "tool-trajectory", "minimums": {"a": 1}}, "tool_trajectory"),
        ({"type": "trajectory:tool-used", "value": "a"}, "tool_used"),
        ({"type": "trajectory:tool-sequence", "value": ["a"]}, "tool_sequence"),
        ({"type": "trajectory:tool-args-match", "value": {"name": "a", "args": {}}}, "tool_arguments"),
        ({"type": "trajectory:step-count", "value": {"max": 3}}, "step_count"),
        ({"type": "trajectory:goal-success", "value": "A flight is booked."}, "llm_grader"),
        ({"type": "field_accuracy", "fields": [{"path": "a"}]}, "field_accuracy"),
        ({"type": "execution-metrics", "max_tokens": 9}, "execution_metrics"),
        ({"type": "latency", "threshold": 9}, "latency"),
        ({"type": "cost", "budget": 9}, "cost"),
        ({"type": "token-usage", "max_total": 9}, "token_usage"),
        ({"type": "skill-trigger", "skill": "a"}, "skill_trigger"),
        ({"type": "skill-used", "value": "a"}, "skill_trigger"),
        ({"type": "javascript", "value": "output.length > 3"}, "javascript"),
        ({"type": "python", "value": "len(output) > 3"}, "python"),
    ],
)
def test_every_spelling_is_read(tmp_path: Path, assertion: dict[str, Any], type_name: str) -> None:
    graders = read(tmp_path, {**assertion, "name": "mine", "weight": 2.5, "required": True, "min_score": 0.5})
    one = graders.one
    assert (one.type, one.name, one.weight, one.required, one.min_score) == (type_name, "mine", 2.5, True, 0.5)
    assert graders.cannot_run == []


SAME, DIFFER = "mean the same and", "differ; keep one of them"


def test_order_is_kept_and_the_texts_are_one_rubric_in_the_place_of_the_first(tmp_path: Path) -> None:
    graders = read(tmp_path, {"type": "is-json"}, "It is kind.", {"type": "contains", "value": "a"}, "It is short.")
    assert [grader.type for grader in graders.graders] == ["is_json", "rubrics", "contains"]
    criteria = (Criterion(id="rubric-1", outcome="It is kind."), Criterion(id="rubric-2", outcome="It is short."))
    assert graders.graders[1] == Rubrics(type="rubrics", criteria=criteria, weight=2)


def test_not_before_a_type_negates_it_once(tmp_path: Path) -> None:
    for said in ({}, {"negate": False}):
        assert read(tmp_path, {"type": "not-contains", "value": "a", **said}).one == TextAssertion(
            type="contains", value="a", negate=True
        )
    one = read(tmp_path, {"type": "not-trajectory:tool-used", "value": ["shell", "bash"]}).one
    assert (one.type, one.tools, one.negate) == ("tool_used", ("shell", "bash"), True)
    assert read(tmp_path, {"type": "contains", "value": "a", "negate": True}).one.negate


@pytest.mark.parametrize(
    ("said", "read_as"),
    [
        ({"required": False}, {"required": False, "min_score": None}),
        ({"required": True}, {"required": True, "min_score": None}),
        ({"required": 0.6}, {"required": True, "min_score": 0.6}),
        ({"required": 0.6, "min_score": 0.6}, {"required": True, "min_score": 0.6}),
        ({"minScore": 1}, {"required": False, "min_score": 1}),
        ({"metric": "m", "id": "i"}, {"name": "m"}),
        ({"id": "i"}, {"name": "i"}),
        ({"name": "n", "metric": "m"}, {"name": "n"}),
        ({}, {"name": None}),
        ({"name": None}, {"name": None}),
    ],
)
def test_required_may_be_the_least_score_and_the_name_another_key(
    tmp_path: Path, said: dict[str, Any], read_as: dict[str, Any]
) -> None:
    one = read(tmp_path, {"type": "is-json", **said}).one
    assert {key: getattr(one, key) for key in read_as} == read_as


@pytest.mark.parametrize(
    ("assertion", "problem"),
    [
        ({"type": "contians", "value": "a"}, ".type: unknown evaluator 'contians'; did you mean 'contains'?"),
        ({"value": "a"}, ": the key 'type' is missing"),
        ({"type": 3}, ".type: expected a text, not 3"),
        (3, ": expected a mapping or a text, not 3"),
        ("", ": must not be empty"),
        ({"type": "contains"}, ": the key 'value' is missing"),
        ({"type": "contains", "value": None}, ": the key 'value' is missing"),
        ({"type": "contains", "value": 42}, ".value: expected a text, not 42"),
        ({"type": "contains", "value": ""}, ".value: must not be empty"),
        ({"type": "not-is-json", "negate": True}, ".negate: the type says 'not' already; keep one of them"),
        ({"type": "contains-any", "value": "a"}, '.value: expected a list, not "a"'),
        ({"type": "contains-any", "value": []}, ".value: must not be empty"),
        ({"type": "contains-any", "value": ["a", 1]}, ".value[1]: expected a text, not 1"),
        ({"type": "is-json", "weight": -1}, ".weight: must be at least 0, not -1"),
        ({"type": "is-json", "weight": "2"}, '.weight: expected a number, not "2"'),
        ({"type": "is-json", "weight": True}, ".weight: expected a number, not true"),
        ({"type": "is-json", "min_score": 1.5}, ".min_score: must be at most 1, not 1.5"),
        ({"type": "is-json", "required": 1.5}, ".required: must be at most 1, not 1.5"),
        (
            {"type": "is-json", "required": 0.5, "min_score": 0.6},
            f".required: 'required' as a number and 'min_score' {DIFFER}",
        ),
        ({"type": "is-json", "wieght": 2}, ".wieght: unknown key; did you mean 'weight'?"),
        ({"type": "cost", "budget": 2, "threshold": 3}, f".threshold: 'budget' and 'threshold' {SAME} {DIFFER}"),
        (
            {"type": "execution_metrics", "max_tokens": 8, "config": {"max_tokens": 9}},
            f".config.max_tokens: 'max_tokens' and 'max_tokens' {SAME} {DIFFER}",
        ),
    ],
)
def test_what_is_wrong_is_told_where_it_stands(tmp_path: Path, assertion: Any, problem: str) -> None:
    graders = read(tmp_path, assertion)
    assert graders.problems == [f"[0]{problem}"]
    assert graders.graders == ()


def test_all_problems_of_a_list_are_told_with_their_places(tmp_path: Path) -> None:
    graders = read(tmp_path, {"type": "x"}, {"type": "is-json"}, {"type": "contains"}, {"type": "cost", "budget": -1})
    assert len(graders.problems) == 3
    assert [grader.type for grader in graders.graders] == ["is_json"]
    graders = read(tmp_path, text="- type: contains\n  value: a\n  min_score: 7\n")
    assert str(graders.complaints.problems[0]) == f"{FILE}:3:14: [0].min_score: must be at most 1, not 7"
    assert read(tmp_path, text="type: is-json\n").problems == [': expected a list, not {"type": "is-json"}']


def test_config_holds_options_and_two_names_may_say_the_same(tmp_path: Path) -> None:
    assert read(tmp_path, {"type": "execution_metrics", "config": {"max_tokens": 9}}).one.max_tokens == 9
    assert read(tmp_path, {"type": "latency", "threshold": 2, "max_ms": 2.0}).one.threshold == 2


@pytest.mark.parametrize(
    ("kind", "instead"), [("similar", "llm-rubric"), ("rouge-n", "script"), ("promptfoo:redteam:bola", "script")]
)
def test_an_evaluator_of_another_tool_is_kept_and_keeps_the_test_from_running(
    tmp_path: Path, kind: str, instead: str
) -> None:
    graders = read(tmp_path, {"type": kind, "value": "a", "threshold": 0.7, "required": True, "metric": "m"})
    assert graders.one == Unavailable(
        type="unavailable", kind=kind, options={"value": "a", "threshold": 0.7}, required=True, name="m"
    )
    assert graders.cannot_run == [f"[0].type: passgate has no evaluator {kind!r}; write `{instead}` instead"]


@pytest.mark.parametrize("value", [42, "a", [1, {"b": None}], {"a": 1}, True, None, 0.5])
def test_equals_takes_any_value(tmp_path: Path, value: Any) -> None:
    assert read(tmp_path, {"type": "equals", "value": value}).one == Equals(type="equals", value=value)


def test_a_regular_expression_is_one_as_javascript_knows_them(tmp_path: Path) -> None:
    assert read(tmp_path, {"type": "regex", "value": "a(?=b)", "flags": "i"}).one == Regex(
        type="regex", value="a(?=b)", flags="i"
    )
    for value in ("(?i)a", "[a"):
        (problem,) = read(tmp_path, {"type": "regex", "value": value}).problems
        assert problem.startswith("[0].value: no regular expression as JavaScript knows them")
    assert (
        read(tmp_path, {"type": "regex", "value": "a", "flags": "k"}).problems[0].startswith("[0].flags: 'k' does not")
    )


def test_the_rubrics_of_a_test_are_one_grader_of_weight_one(tmp_path: Path) -> None:
    own = {"id": "b", "outcome": "c", "weight": 2, "required": True}
    criteria = (Criterion(id="rubric-1", outcome="a"), Criterion.model_validate(own))
    assert read_test(tmp_path, rubrics=["a", own]).one.graders == (Rubrics(type="rubrics", criteria=criteria),)
    wrong = read_test(tmp_path, rubrics=[{"id": "a"}]).problems + read_test(tmp_path, rubrics=[]).problems
    assert wrong == [
        "tests[0].rubrics[0]: give `outcome` or `score_ranges`",
        "tests[0].rubrics: invalid rubric: must not be empty",
    ]
