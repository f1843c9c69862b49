"""Lists of graders in every spelling, and graders that are made of lists."""

from pathlib import Path
from typing import Any

import pytest

from passgate.tasks.formats.document import read_document
from passgate.tasks.formats.evals.map.graders import rubric_grader
from passgate.tasks.formats.evals.map.sources import Sources
from passgate.tasks.formats.evals.read.node import Complaints, Node
from passgate.tasks.formats.evals.read.paths import Ground
from passgate.tasks.model.assertions import Equals, Regex, Rubrics, TextAssertion, Unavailable
from passgate.tasks.model.graders import Aggregator
from tests.unit.formats.evals.grader_lists import FILE, Graders, read


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
        ({"type": "is_json"}, "is_json"),
        ({"type": "code_judge", "script": ["true"]}, "code_grader"),
        ({"type": "code-judge", "script": ["true"]}, "code_grader"),
        ({"type": "code_grader", "command": ["true"]}, "code_grader"),
        ({"type": "code-grader", "command": "true"}, "code_grader"),
        ({"type": "script", "command": ["true"]}, "code_grader"),
        ({"type": "llm_judge", "prompt": "Is it good?"}, "llm_grader"),
        ({"type": "llm-judge", "prompt": "Is it good?"}, "llm_grader"),
        ({"type": "llm-grader"}, "llm_grader"),
        ({"type": "llm-rubric", "value": "It is good."}, "llm_grader"),
        ({"type": "llm_rubric", "value": ["It is good."]}, "rubrics"),
        ({"type": "rubric", "rubrics": ["It is good."]}, "rubrics"),
        ({"type": "rubrics", "criteria": ["It is good."]}, "rubrics"),
        ({"type": "composite", "assertions": [{"type": "is-json"}]}, "composite"),
        ({"type": "assert-set", "assert": [{"type": "is-json"}]}, "composite"),
        ({"type": "tool_trajectory", "minimums": {"a": 1}}, "tool_trajectory"),
        ({"type": "tool-trajectory", "mode": "exact", "expected": [{"tool": "a"}]}, "tool_trajectory"),
        ({"type": "trajectory:tool-used", "value": "a"}, "tool_used"),
        ({"type": "trajectory:tool-sequence", "value": ["a"]}, "tool_sequence"),
        ({"type": "trajectory:tool-args-match", "value": {"name": "a", "args": {}}}, "tool_arguments"),
        ({"type": "trajectory:step-count", "value": {"max": 3}}, "step_count"),
        ({"type": "trajectory:goal-success", "value": "A flight is booked."}, "llm_grader"),
        ({"type": "field_accuracy", "fields": [{"path": "a"}]}, "field_accuracy"),
        ({"type": "field-accuracy", "fields": [{"path": "a"}]}, "field_accuracy"),
        ({"type": "execution_metrics", "max_tokens": 9}, "execution_metrics"),
        ({"type": "execution-metrics", "maxToolCalls": 9}, "execution_metrics"),
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
    assert graders.one.type == type_name
    assert (graders.one.name, graders.one.weight, graders.one.required, graders.one.min_score) == (
        "mine",
        2.5,
        True,
        0.5,
    )
    assert graders.cannot_run == []


def test_order_is_kept_and_the_texts_are_one_rubric_in_the_place_of_the_first(tmp_path: Path) -> None:
    graders = read(tmp_path, {"type": "is-json"}, "It is kind.", {"type": "contains", "value": "a"}, "It is short.")
    assert [grader.type for grader in graders.graders] == ["is_json", "rubrics", "contains"]
    rubric = graders.graders[1]
    assert isinstance(rubric, Rubrics)
    assert [(item.id, item.outcome) for item in rubric.criteria] == [
        ("rubric-1", "It is kind."),
        ("rubric-2", "It is short."),
    ]
    assert rubric.weight == 2
    assert rubric.name is None


def test_an_empty_text_is_no_rubric(tmp_path: Path) -> None:
    assert read(tmp_path, "").problems == ["[0]: must not be empty"]


@pytest.mark.parametrize(
    ("said", "negated"), [({}, True), ({"negate": False}, True), ({"type": "contains", "negate": True}, True)]
)
def test_not_before_a_type_negates_it(tmp_path: Path, said: dict[str, Any], negated: bool) -> None:
    assertion = {"type": "not-contains", "value": "a", **said}
    assert read(tmp_path, assertion).one == TextAssertion(type="contains", value="a", negate=negated)


def test_to_negate_twice_is_refused(tmp_path: Path) -> None:
    graders = read(tmp_path, {"type": "not-contains", "value": "a", "negate": True})
    assert graders.problems == ["[0].negate: the type says 'not' already; keep one of them"]


def test_not_goes_with_every_type(tmp_path: Path) -> None:
    one = read(tmp_path, {"type": "not-trajectory:tool-used", "value": ["shell", "bash"]}).one
    assert (one.type, one.tools, one.negate) == ("tool_used", ("shell", "bash"), True)


@pytest.mark.parametrize(
    ("said", "required", "min_score"),
    [
        ({"required": False}, False, None),
        ({"required": True}, True, None),
        ({"required": 0.6}, True, 0.6),
        ({"required": 0.6, "min_score": 0.6}, True, 0.6),
        ({"min_score": 0.6}, False, 0.6),
        ({"minScore": 1}, False, 1),
    ],
)
def test_required_as_a_number_is_the_least_score_too(
    tmp_path: Path, said: dict[str, Any], required: bool, min_score: float | None
) -> None:
    one = read(tmp_path, {"type": "is-json", **said}).one
    assert (one.required, one.min_score) == (required, min_score)


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ({"metric": "m", "id": "i"}, "m"),
        ({"id": "i"}, "i"),
        ({"name": "n", "metric": "m"}, "n"),
        ({}, None),
        ({"name": None}, None),
    ],
)
def test_a_grader_has_a_name_only_where_it_says_one(tmp_path: Path, said: dict[str, Any], name: str | None) -> None:
    assert read(tmp_path, {"type": "is-json", **said}).one.name == name


@pytest.mark.parametrize(
    ("assertion", "problem"),
    [
        ({"type": "contians", "value": "a"}, "[0].type: unknown evaluator 'contians'; did you mean 'contains'?"),
        ({"type": "llm_juge", "prompt": "a"}, "[0].type: unknown evaluator 'llm_juge'; did you mean 'llm_judge'?"),
        ({"value": "a"}, "[0]: the key 'type' is missing"),
        ({"type": 3}, "[0].type: expected a text, not 3"),
        (3, "[0]: expected a mapping or a text, not 3"),
        ({"type": "contains"}, "[0]: the key 'value' is missing"),
        ({"type": "contains", "value": None}, "[0]: the key 'value' is missing"),
        ({"type": "contains", "value": 42}, "[0].value: expected a text, not 42"),
        ({"type": "contains", "value": ""}, "[0].value: must not be empty"),
        ({"type": "contains-any", "value": "a"}, '[0].value: expected a list, not "a"'),
        ({"type": "contains-any", "value": []}, "[0].value: must not be empty"),
        ({"type": "contains-any", "value": ["a", 1]}, "[0].value[1]: expected a text, not 1"),
        ({"type": "is-json", "weight": -1}, "[0].weight: must be at least 0, not -1"),
        ({"type": "is-json", "weight": "2"}, '[0].weight: expected a number, not "2"'),
        ({"type": "is-json", "weight": True}, "[0].weight: expected a number, not true"),
        ({"type": "is-json", "min_score": 1.5}, "[0].min_score: must be at most 1, not 1.5"),
        ({"type": "is-json", "required": 1.5}, "[0].required: must be at most 1, not 1.5"),
        (
            {"type": "is-json", "required": 0.5, "min_score": 0.6},
            "[0].required: 'required' as a number and 'min_score' differ; keep one of them",
        ),
        ({"type": "is-json", "wieght": 2}, "[0].wieght: unknown key; did you mean 'weight'?"),
        (
            {"type": "latency", "threshold": 2, "max_ms": 3},
            "[0].max_ms: 'threshold' and 'max_ms' mean the same and differ; keep one of them",
        ),
    ],
)
def test_what_is_wrong_is_told_where_it_stands(tmp_path: Path, assertion: Any, problem: str) -> None:
    graders = read(tmp_path, assertion)
    assert graders.problems == [problem]
    assert graders.graders == ()


def test_a_problem_has_its_line_and_column(tmp_path: Path) -> None:
    graders = read(tmp_path, text="- type: contains\n  value: a\n  min_score: 7\n")
    assert str(graders.complaints.problems[0]) == f"{FILE}:3:14: [0].min_score: must be at most 1, not 7"


def test_all_problems_of_a_list_are_told_at_once(tmp_path: Path) -> None:
    graders = read(tmp_path, {"type": "x"}, {"type": "is-json"}, {"type": "contains"}, {"type": "cost", "budget": -1})
    assert len(graders.problems) == 3
    assert [grader.type for grader in graders.graders] == ["is_json"]


def test_two_spellings_that_say_the_same_are_fine(tmp_path: Path) -> None:
    assert read(tmp_path, {"type": "latency", "threshold": 2, "max_ms": 2.0}).one.threshold == 2


def test_config_holds_options_as_if_they_stood_beside_it(tmp_path: Path) -> None:
    assert read(tmp_path, {"type": "execution_metrics", "config": {"max_tokens": 9}}).one.max_tokens == 9
    wrong = read(tmp_path, {"type": "execution_metrics", "max_tokens": 8, "config": {"max_tokens": 9}})
    assert wrong.problems == [
        "[0].config.max_tokens: 'max_tokens' and 'max_tokens' mean the same and differ; keep one of them"
    ]


@pytest.mark.parametrize("kind", ["similar", "webhook", "rouge-n", "model-graded-closedqa", "promptfoo:redteam:bola"])
def test_an_evaluator_of_another_tool_is_kept_and_keeps_the_test_from_running(tmp_path: Path, kind: str) -> None:
    graders = read(tmp_path, {"type": kind, "value": "a", "threshold": 0.7, "required": True, "metric": "m"})
    assert graders.one == Unavailable(
        type="unavailable", kind=kind, options={"value": "a", "threshold": 0.7}, required=True, name="m"
    )
    assert graders.cannot_run == [f"[0].type: passgate has no evaluator {kind!r}"]


def test_a_list_must_be_one(tmp_path: Path) -> None:
    assert read(tmp_path, text="type: is-json\n").problems == [': expected a list, not {"type": "is-json"}']


@pytest.mark.parametrize("value", [42, "a", [1, {"b": None}], {"a": 1}, True, None, 0.5])
def test_equals_takes_any_value(tmp_path: Path, value: Any) -> None:
    assert read(tmp_path, {"type": "equals", "value": value}).one == Equals(type="equals", value=value)


def test_a_regular_expression_is_one_as_javascript_knows_them(tmp_path: Path) -> None:
    assert read(tmp_path, {"type": "regex", "value": "a(?=b)", "flags": "i"}).one == Regex(
        type="regex", value="a(?=b)", flags="i"
    )
    for value, flags in (("(?i)a", ""), ("[a", ""), ("a", "k")):
        (problem,) = read(tmp_path, {"type": "regex", "value": value, "flags": flags}).problems
        assert problem.startswith("[0].value: no regular expression as JavaScript knows them")


def rubrics_of(tmp_path: Path, text: str) -> tuple[Rubrics | None, list[str]]:
    (tmp_path / "EVAL.yaml").write_text(text, encoding="utf-8")
    document = read_document(tmp_path / "EVAL.yaml", "EVAL.yaml")
    complaints = Complaints()
    sources = Sources(Ground(tmp_path, tmp_path), complaints, lambda _: None)
    grader = rubric_grader(Node(document.data, document, tmp_path), sources)
    return grader, [str(problem) for problem in complaints.problems]


def test_the_rubrics_of_a_test_are_one_grader_of_weight_one(tmp_path: Path) -> None:
    grader, problems = rubrics_of(tmp_path, "- a\n- {id: b, outcome: c, weight: 2, required: true}\n")
    assert problems == []
    assert grader is not None
    assert (grader.weight, grader.name) == (1, None)
    assert [(item.id, item.outcome, item.weight, item.required) for item in grader.criteria] == [
        ("rubric-1", "a", 1, False),
        ("b", "c", 2, True),
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: b\n", 'EVAL.yaml:1:1: expected a list, not {"a": "b"}'),
        ("[]\n", "EVAL.yaml:1:1: invalid rubric: must not be empty"),
        ("- {id: a}\n", "EVAL.yaml:1:3: [0]: give `outcome` or `score_ranges`"),
    ],
)
def test_wrong_rubrics_of_a_test_are_refused(tmp_path: Path, text: str, problem: str) -> None:
    assert rubrics_of(tmp_path, text) == (None, [problem])


A = {"type": "contains", "value": "a", "name": "a"}
B = {"type": "contains", "value": "b", "name": "b"}


def composite(root: Path, aggregator: Any = None, *members: Any, **more: Any) -> Graders:
    said = {"type": "composite", "assertions": list(members or (A, B)), **more}
    return read(root, said if aggregator is None else {**said, "aggregator": aggregator})


@pytest.mark.parametrize("key", ["assertions", "assert", "evaluators"])
def test_members_have_several_names(tmp_path: Path, key: str) -> None:
    one = read(tmp_path, {"type": "composite", "name": "c", key: [A, "It is kind.", B]}).one
    assert [member.type for member in one.assertions] == ["contains", "rubrics", "contains"]
    assert one.aggregator == Aggregator()


def test_composites_nest_and_members_need_no_names(tmp_path: Path) -> None:
    inner = {"type": "composite", "evaluators": [{"type": "contains", "value": "a", "weight": 3}]}
    one = read(tmp_path, {"type": "composite", "evaluators": [inner, {"type": "is-json"}]}).one
    assert one.assertions[0].assertions == (TextAssertion(type="contains", value="a", weight=3),)


def test_a_set_passes_from_its_threshold(tmp_path: Path) -> None:
    one = read(tmp_path, {"type": "assert-set", "threshold": 0.5, "assert": [A], "metric": "m"}).one
    assert (one.threshold, one.name) == (0.5, "m")


@pytest.mark.parametrize(
    ("said", "aggregator"),
    [
        ({"type": "weighted_average", "weights": {"a": 2, "b": 0.5}}, Aggregator(weights={"a": 2, "b": 0.5})),
        ({"type": "minimum"}, Aggregator(type="minimum")),
        ({"type": "maximum"}, Aggregator(type="maximum")),
        ({"type": "safety-gate", "required": ["a"]}, Aggregator(type="safety_gate", required=("a",))),
        ({"type": "all_or_nothing"}, Aggregator(type="all_or_nothing")),
        ({"type": "threshold", "threshold": 0.6}, Aggregator(type="threshold", threshold=0.6)),
        ({"type": "code-grader", "path": "cat"}, Aggregator(type="code_grader", command=("sh", "-c", "cat"))),
        ({"type": "code_judge", "script": ["cat"]}, Aggregator(type="code_grader", command=("cat",))),
        ({"type": "llm_judge", "prompt": "a b"}, Aggregator(type="llm_grader", prompt="a b")),
    ],
)
def test_every_aggregator_is_read(tmp_path: Path, said: dict[str, Any], aggregator: Aggregator) -> None:
    graders = composite(tmp_path, said)
    assert graders.one.aggregator == aggregator
    assert graders.cannot_run == []


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ({"type": "median"}, '.type: "median" is not one of the allowed values; known: '),
        ({"weights": {"a": 1}}, ": the key 'type' is missing"),
        ({"type": "weighted_average", "weights": {"c": 1}}, ".weights.c: 'c' is the name of no member; known: a, b"),
        ({"type": "weighted_average", "weights": {"a": -1}}, ".weights.a: must be at least 0, not -1"),
        ({"type": "weighted_average", "weights": {"a": "1"}}, '.weights.a: expected a number, not "1"'),
        (
            {"type": "safety_gate", "required": ["a", "bb"]},
            ".required[1]: 'bb' is the name of no member; did you mean 'b'?",
        ),
        ({"type": "safety_gate"}, ": this gate guards nothing: name its members under 'required'"),
        ({"type": "threshold"}, ": the key 'threshold' is missing"),
        ({"type": "code-grader"}, ": the key 'command' is missing"),
        ({"type": "llm-grader"}, ": the key 'prompt' is missing"),
        ({"type": "all_or_nothing", "threshold": 2}, ".threshold: must be at most 1, not 2"),
        ({"type": "minimum", "treshold": 1}, ".treshold: unknown key; did you mean 'threshold'?"),
    ],
)
def test_a_wrong_aggregator_is_refused(tmp_path: Path, said: dict[str, Any], problem: str) -> None:
    (found,) = composite(tmp_path, said).problems
    assert found.startswith(f"[0].aggregator{problem}")


def test_a_safety_gate_may_go_by_what_its_members_require(tmp_path: Path) -> None:
    graders = composite(tmp_path, {"type": "safety_gate"}, {**A, "required": True}, B)
    assert graders.one.aggregator == Aggregator(type="safety_gate")


def test_a_name_that_an_aggregator_goes_by_is_there_once(tmp_path: Path) -> None:
    twice = composite(tmp_path, {"type": "safety_gate", "required": ["a"]}, A, A)
    assert twice.problems == ["[0].aggregator.required[0]: 'a' is the name of 2 members"]
    assert composite(tmp_path, {"type": "minimum"}, A, A).problems == []


def test_a_composite_has_members_and_all_must_be_right(tmp_path: Path) -> None:
    assert read(tmp_path, {"type": "composite", "assertions": []}).problems == ["[0].assertions: must not be empty"]
    assert read(tmp_path, {"type": "composite"}).problems == ["[0]: the key 'assertions' is missing"]
    wrong = composite(tmp_path, None, A, {"type": "contains"}, {"type": "nonsense"})
    assert len(wrong.problems) == 2
    assert wrong.graders == ()


def test_what_keeps_a_member_from_running_is_noted(tmp_path: Path) -> None:
    graders = composite(tmp_path, {"type": "code-grader", "path": "node ../scripts/x.js"})
    assert graders.cannot_run == ["[0].aggregator.path: no file '../scripts/x.js' in '.'"]
    prompt = composite(tmp_path, {"type": "llm-grader", "prompt": "./x.md"})
    assert prompt.cannot_run == ["[0].aggregator.prompt: no file './x.md'"]


IS_JSON = "assertions:\n  - type: is-json\n"


def test_an_include_stands_for_what_its_template_holds(tmp_path: Path) -> None:
    files = {".agentv/templates/safe.yaml": "assertions:\n  - {type: contains, value: a}\n  - {type: is-json}\n"}
    graders = read(
        tmp_path, {"type": "cost", "budget": 1}, {"include": "safe"}, {"type": "cost", "budget": 2}, files=files
    )
    assert graders.problems == []
    assert [grader.type for grader in graders.graders] == ["cost", "contains", "is_json", "cost"]


def test_the_nearest_template_of_a_name_counts(tmp_path: Path) -> None:
    files = {".agentv/templates/a.yaml": IS_JSON, "evals/.agentv/templates/a.yml": "- {type: cost, budget: 1}\n"}
    assert read(tmp_path, {"include": "a"}, files=files).one.type == "cost"


@pytest.mark.parametrize("text", [IS_JSON, "assert: [{type: is-json}]\n", "- type: is-json\n", "name: a\n" + IS_JSON])
def test_a_path_is_relative_to_the_file_and_a_template_may_be_a_list(tmp_path: Path, text: str) -> None:
    assert read(tmp_path, {"include": "./shared/a.yaml"}, files={"evals/shared/a.yaml": text}).one.type == "is_json"


def test_the_texts_of_a_template_join_those_of_the_list(tmp_path: Path) -> None:
    graders = read(tmp_path, {"include": "a"}, "Two.", files={".agentv/templates/a.yaml": "assertions: [One.]\n"})
    rubric = graders.one
    assert isinstance(rubric, Rubrics)
    assert [item.outcome for item in rubric.criteria] == ["One.", "Two."]
    assert rubric.weight == 2


def test_environment_variables_are_filled_in_and_paths_are_those_of_the_template(tmp_path: Path) -> None:
    text = "- {type: contains, value: '${{ WHERE }}'}\n- {type: llm-grader, prompt: ./p.md}\n"
    files = {"shared/a.yaml": text, "shared/p.md": "Good?"}
    contains, judge = read(tmp_path, {"include": "../shared/a.yaml"}, files=files).graders
    assert contains.value == "Paris"
    assert (judge.prompt, judge.prompt_file) == ("Good?", "../shared/p.md")


def chain(length: int) -> dict[str, str]:
    """Templates of which each includes the next."""
    files = {f".agentv/templates/t{index}.yaml": f"- include: t{index + 1}\n" for index in range(1, length)}
    return files | {f".agentv/templates/t{length}.yaml": IS_JSON}


def test_templates_nest_three_deep(tmp_path: Path) -> None:
    assert read(tmp_path, {"include": "t1"}, files=chain(3)).one.type == "is_json"
    deeper = read(tmp_path, {"include": "t1"}, files=chain(4))
    assert [str(problem) for problem in deeper.complaints.problems] == [
        ".agentv/templates/t3.yaml:1:3: [0]: templates are nested deeper than 3"
    ]


def test_templates_that_include_each_other_are_refused(tmp_path: Path) -> None:
    files = {".agentv/templates/a.yaml": "- include: b\n", ".agentv/templates/b.yaml": "- include: a\n"}
    graders = read(tmp_path, {"include": "a"}, files=files)
    assert [str(problem) for problem in graders.complaints.problems] == [
        ".agentv/templates/b.yaml:1:3: [0]: the templates include each other: a.yaml -> b.yaml -> a.yaml"
    ]


def test_one_template_may_be_included_twice(tmp_path: Path) -> None:
    graders = read(tmp_path, {"include": "a"}, {"include": "a"}, files={".agentv/templates/a.yaml": IS_JSON})
    assert [grader.type for grader in graders.graders] == ["is_json", "is_json"]


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("safe", "[0].include: no template .agentv/templates/safe.yaml here or in a folder above"),
        ("./safe.yaml", "[0].include: no file './safe.yaml'"),
    ],
)
def test_a_missing_template_keeps_the_test_from_running(tmp_path: Path, name: str, found: str) -> None:
    graders = read(tmp_path, {"include": name})
    assert graders.one == Unavailable(type="unavailable", kind="include", options={"include": name})
    assert graders.cannot_run == [found]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("name: a\n", ": the key 'assertions' is missing"),
        ("assertions: a\n", 'assertions: expected a list, not "a"'),
        ("a\n", ": a template holds 'assertions': expected a list or a mapping, not \"a\""),
        ("assertions: []\ntests: []\n", "tests: unknown key; known: assert, assertions, "),
        ("- {type: contains}\n", "[0]: the key 'value' is missing"),
        ("[\n", ": not valid YAML: "),
    ],
)
def test_what_is_wrong_with_a_template_is_told_in_it(tmp_path: Path, text: str, problem: str) -> None:
    graders = read(tmp_path, {"include": "a"}, files={".agentv/templates/a.yaml": text})
    (found,) = graders.complaints.problems
    assert found.file == ".agentv/templates/a.yaml"
    assert graders.problems[0].startswith(problem)


@pytest.mark.parametrize(
    ("include", "problem"),
    [
        ({"include": "a", "type": "suite"}, "[0].type: unknown key; known: include"),
        ({"include": 3}, "[0].include: expected a text, not 3"),
        ({"include": "../../a.yaml"}, "[0].include: '../../a.yaml' leaves the repository"),
    ],
)
def test_a_wrong_include_is_refused(tmp_path: Path, include: dict[str, object], problem: str) -> None:
    graders = read(tmp_path, include)
    assert graders.problems == [problem]
    assert graders.graders == ()
