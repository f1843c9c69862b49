"""Laws of the graders of eval files."""

import asyncio
import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.builders import a_task
from tests.property.documents import nested
from tests.searches import costly
from tests.unit.graders.conftest import LocalSandbox

from passgate.tasks.graders import Evidence, grade
from passgate.tasks.graders.answers import BLANKS
from passgate.tasks.graders.evidence import json_in
from passgate.tasks.graders.fields import DEFAULT_FORMATS, MONTHS, read_date, within
from passgate.tasks.graders.searches import javascript_found
from passgate.tasks.model.assertions import Equals, ExecutionMetrics, FieldAccuracy, IsJson, SkillTrigger, TextAssertion
from passgate.tasks.model.grade import Grade
from passgate.tasks.model.grader_options import regex_problem
from passgate.tasks.model.quotes import UNMASKED
from passgate.tasks.model.transcript import Message, ToolCall, Transcript
from passgate.tasks.model.trial import TrialMetrics

texts = st.text(max_size=30)
json_values = nested(st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.floats(-1e9, 1e9) | texts, texts)
names = st.text(alphabet="abcde", min_size=1, max_size=3)
documents = st.dictionaries(names, json_values, min_size=1, max_size=5)


def graded(
    options: Any,
    transcript: Transcript,
    *,
    metrics: TrialMetrics | None = None,
    expected_output: Any = None,
) -> Grade:
    nowhere = LocalSandbox(Path("nowhere"), Path("nowhere"))
    evidence = Evidence(
        task=a_task(expected_output=expected_output),
        transcript=transcript,
        metrics=metrics or TrialMetrics(),
        sandbox=nowhere,
        masker=UNMASKED,
        suites_folder=Path(),
        judge=None,
    )
    return asyncio.run(grade(options, evidence))


def text_score(kind: Any, value: Any, answer: str) -> float | None:
    return graded(TextAssertion(type=kind, value=value), Transcript(output=answer)).score


@given(texts, st.lists(texts.filter(bool), min_size=1, max_size=4))
def test_all_is_each_and_any_is_one(answer: str, values: list[str]) -> None:
    each = [text_score("contains", value, answer) for value in values]
    assert each == [float(value in answer) for value in values]
    assert text_score("contains_all", tuple(values), answer) == min(each, default=None)
    assert text_score("contains_any", tuple(values), answer) == max(each, default=None)


@given(texts, st.text(alphabet="abcXYZ", min_size=1, max_size=5), texts)
def test_a_text_contains_its_parts_whatever_the_case(before: str, part: str, after: str) -> None:
    assert text_score("contains", part, before + part + after) == 1.0
    assert text_score("icontains", part.swapcase(), before + part + after) == 1.0
    assert text_score("starts_with", part, f" {part}{after}") == 1.0
    assert text_score("ends_with", part, f"{before}{part}\n") == 1.0


@given(json_values)
@example("\x1f")
def test_a_value_equals_its_own_json(value: Any) -> None:
    expected = value.strip(BLANKS) if isinstance(value, str) else json.dumps(value)
    assert graded(Equals(type="equals", value=value), Transcript(output=f" {expected}\n")).score == 1.0


@given(json_values)
def test_whatever_json_writes_is_json(value: Any) -> None:
    assert graded(IsJson(type="is_json"), Transcript(output=json.dumps(value))).score == 1.0


@given(texts, texts)
def test_every_pattern_is_taken_or_refused_with_words(pattern: str, flags: str) -> None:
    assert regex_problem(pattern, flags) is None or regex_problem(pattern, flags)


@costly
@given(texts, st.text(alphabet="ab.*+?()[]{}^$|\\", min_size=1, max_size=5))
def test_an_escaped_pattern_is_found_where_the_text_is(text: str, part: str) -> None:
    escaped = "".join(f"\\{sign}" if not sign.isalnum() else sign for sign in part)
    assert asyncio.run(javascript_found(escaped, "", text + part))
    assert asyncio.run(javascript_found(escaped, "", text)) is (part in text)


amounts = st.integers(0, 20)
LIMITS = {
    "max_tool_calls": "tool_call_count",
    "max_llm_calls": "steps",
    "max_tokens": "total_tokens",
    "max_cost_usd": "cost",
}


@given(st.dictionaries(st.sampled_from(list(LIMITS)), amounts, min_size=1), st.lists(amounts, min_size=4, max_size=4))
def test_every_limit_binds(limits: dict[str, int], found: list[int]) -> None:
    tool_calls, more_steps, tokens, cost = found
    steps = more_steps + 1
    metrics = TrialMetrics(tool_call_count=tool_calls, steps=steps, total_tokens=tokens, cost=cost)
    calls = tuple(ToolCall(tool="read") for _ in range(tool_calls))
    messages = (Message(role="assistant", tool_calls=calls), *(Message(role="assistant") for _ in range(more_steps)))
    options = ExecutionMetrics.model_validate({"type": "execution_metrics", **limits})
    transcript = Transcript(messages=messages)
    kept = [getattr(metrics, LIMITS[name]) <= most for name, most in limits.items()]
    assert graded(options, transcript, metrics=metrics).score == float(all(kept))


def fields_of(document: dict[str, Any], **options: Any) -> FieldAccuracy:
    fields = [{"path": name, "required": True, **options} for name in document]
    return FieldAccuracy.model_validate({"type": "field_accuracy", "fields": fields})


@given(documents)
def test_a_document_has_all_of_its_own_fields(document: dict[str, Any]) -> None:
    answer = Transcript(output=f"Here you are:\n```json\n{json.dumps(document)}\n```")
    assert graded(fields_of(document), answer, expected_output=document).score == 1.0


@given(documents, documents, st.floats(0.1, 100))
def test_weights_count_by_their_ratio_alone(document: dict[str, Any], expected: dict[str, Any], weight: float) -> None:
    answer = Transcript(output=json.dumps(document))
    plain = graded(fields_of(expected), answer, expected_output=expected).score
    weighted = graded(fields_of(expected, weight=weight), answer, expected_output=expected).score
    assert plain is not None
    assert 0 <= plain <= 1
    assert weighted == pytest.approx(plain)


@given(documents, documents)
def test_no_aggregation_gives_more_than_the_mean(document: dict[str, Any], expected: dict[str, Any]) -> None:
    answer = Transcript(output=json.dumps(document))
    options = fields_of(expected)
    scores = [
        graded(options.model_copy(update={"aggregation": aggregation}), answer, expected_output=expected).score
        for aggregation in ("all_or_nothing", "minimum", "weighted_average")
    ]
    assert None not in scores
    assert scores == sorted(scores, key=lambda score: score or 0)


@given(st.floats(-1e6, 1e6), st.floats(0, 1e3))
def test_a_number_is_within_its_distance(number: float, distance: float) -> None:
    assert within(number + distance, number, distance)
    assert within(number - distance, number, distance)
    assert not within(number + distance + 1, number, distance)


@given(st.dates(min_value=date(1000, 1, 1)))
def test_a_day_is_read_from_every_way_to_write_it(day: date) -> None:
    name = MONTHS[day.month - 1]
    parts = {"YYYY": f"{day.year}", "MMM": name[:3].upper(), "MM": f"{day.month:02}", "DD": f"{day.day:02}"}
    assert read_date(day.isoformat()) == day
    for form in DEFAULT_FORMATS:
        written = form
        for token, text in parts.items():
            written = written.replace(token, text)
        assert read_date(written, (form,)) == day


@given(texts, st.lists(st.sampled_from(DEFAULT_FORMATS), max_size=2))
def test_no_text_is_too_strange_for_a_date(text: str, formats: list[str]) -> None:
    found = read_date(text, tuple(formats))
    assert found is None or isinstance(found, date)


@given(st.text(alphabet='{}[]":,`1a \n', max_size=60))
def test_an_answer_holds_a_document_or_none(answer: str) -> None:
    try:
        document = json_in(answer)
    except ValueError:
        return
    assert isinstance(document, dict | list)


@given(json_values, json_values, st.sampled_from(["exact", "numeric_tolerance", "date"]))
def test_no_answer_breaks_a_grader(answered: Any, expected: Any, match: str) -> None:
    calls = (ToolCall(tool="Skill", arguments={"skill": answered}, result=answered),)
    transcript = Transcript(output=json.dumps({"x": answered}), messages=(Message(role="assistant", tool_calls=calls),))
    fields = FieldAccuracy.model_validate({"type": "field_accuracy", "fields": [{"path": "x", "match": match}]})
    for options in (fields, SkillTrigger(type="skill_trigger", skill="s"), Equals(type="equals", value=expected)):
        result = graded(options, transcript, expected_output={"x": expected})
        assert result.score is not None or "the grader raised" not in (result.error or "")
        assert result.score is not None or not result.passed
