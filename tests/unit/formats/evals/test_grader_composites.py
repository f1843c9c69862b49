"""Graders that are made of others, with every aggregator."""

from pathlib import Path
from typing import Any

import pytest

from passgate.tasks.model.assertions import TextAssertion
from passgate.tasks.model.graders import Aggregator
from tests.unit.formats.evals.grader_lists import Graders, read

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


def test_composites_nest_and_sets_pass_from_their_threshold(tmp_path: Path) -> None:
    inner = {"type": "composite", "evaluators": [{"type": "contains", "value": "a", "weight": 3}]}
    one = read(tmp_path, {"type": "composite", "evaluators": [inner, {"type": "is-json"}]}).one
    assert one.assertions[0].assertions == (TextAssertion(type="contains", value="a", weight=3),)
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
        ({"type": "safety_gate", "required": ["bb"]}, ".required[0]: 'bb' is the name of no member; did you mean 'b'?"),
        ({"type": "safety_gate"}, ": this gate guards nothing: name its members under `required`"),
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
