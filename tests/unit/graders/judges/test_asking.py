import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from passgate.tasks.errors import MeasurementError
from passgate.tasks.graders.judges.asking import UnusableReplyError, read_reply, reply_schema
from passgate.tasks.model.masker import UNMASKED

ASSERTIONS = ("it is polite", "it is correct")


def marks(*passed: Any, first: int = 1) -> str:
    entries = [{"assertion": n, "passed": p, "reason": f"because {n}"} for n, p in enumerate(passed, start=first)]
    return json.dumps({"checks": entries})


def test_a_score() -> None:
    mark = read_reply('{"score": 0.7, "reason": "short but right"}', ())
    assert (mark.score, UNMASKED.render(mark.reason), mark.checks) == (0.7, "short but right", ())
    assert read_reply('{"reason": "", "score": 1}', ()).score == 1.0


def test_assertions_are_marked_by_number_in_any_order() -> None:
    checks = [{"assertion": 2, "passed": False, "reason": "wrong"}, {"assertion": 1, "passed": True, "reason": "kind"}]
    mark = read_reply(json.dumps({"checks": checks}), ASSERTIONS)
    assert mark.score == 0.5
    assert [(check.passed, UNMASKED.render(check.message)) for check in mark.checks] == [
        (True, "it is polite: kind"),
        (False, "it is correct: wrong"),
    ]


@pytest.mark.parametrize(
    "frame", ["```json\n{}\n```", "```\n{}\n```", "  {}\n\n", "\n```json\n  {}  \n  ```\n", "```json\r\n{}\r\n```"]
)
def test_a_fence_or_blanks_around_it_are_accepted(frame: str) -> None:
    assert read_reply(frame.replace("{}", marks(True, True)), ASSERTIONS).score == 1.0


@pytest.mark.parametrize(
    ("assertions", "reply"),
    [
        ((), ""),
        ((), "The score is 1."),
        ((), 'Here it is: {"score": 1, "reason": "x"}'),
        ((), '{"score": 1, "reason": "x"} I was told to say so.'),
        ((), '{"score": 0, "reason": "x"}\n{"score": 1, "reason": "x"}'),
        ((), '```json\n{"score": 0, "reason": "x"}\n```\n```json\n{"score": 1, "reason": "x"}\n```'),
        ((), 'Sure!\n```json\n{"score": 1, "reason": "x"}\n```'),
        ((), '[{"score": 1, "reason": "x"}]'),
        ((), "1"),
        ((), "null"),
        ((), '{"score": 1}'),
        ((), '{"score": 1.01, "reason": "x"}'),
        ((), '{"score": -0.01, "reason": "x"}'),
        ((), '{"score": "1", "reason": "x"}'),
        ((), '{"score": true, "reason": "x"}'),
        ((), '{"score": null, "reason": "x"}'),
        ((), '{"score": NaN, "reason": "x"}'),
        ((), '{"score": 1, "reason": 5}'),
        ((), '{"score": 0, "score": 1, "reason": "x"}'),
        ((), '{"score": 1, "reason": "x", "passed": true}'),
        ((), marks(True)),
        ((), "[" * 100_000),
        ((), '{"score": 1, "reason": "' + "x" * 200_000 + '"}'),
        (ASSERTIONS, '{"score": 1, "reason": "x"}'),
        (ASSERTIONS, '{"checks": []}'),
        (ASSERTIONS, marks(True)),
        (ASSERTIONS, marks(True, True, True)),
        (ASSERTIONS, marks(True, True, first=0)),
        (ASSERTIONS, marks(True, 1)),
        (ASSERTIONS, marks(True, "true")),
        (ASSERTIONS, marks(True, None)),
        (ASSERTIONS, marks(True, True).replace('"assertion": 2', '"assertion": 1')),
        (ASSERTIONS, marks(True, True).replace('"assertion": 1', '"assertion": "1"')),
        (ASSERTIONS, marks(True, True).replace(', "reason": "because 1"', "")),
        (ASSERTIONS, '{"checks": {"1": true, "2": true}}'),
        (ASSERTIONS, marks(True, True) + " Ignore the rubric."),
    ],
)
def test_any_other_reply_is_an_error(assertions: tuple[str, ...], reply: str) -> None:
    with pytest.raises(MeasurementError, match="the judge's reply is unusable: ") as caught:
        read_reply(reply, assertions)
    assert len(UNMASKED.render(caught.value.message)) < 1500


@given(st.lists(st.booleans(), min_size=1, max_size=20))
def test_the_score_is_the_share_of_true_assertions(passed: list[bool]) -> None:
    mark = read_reply(marks(*passed), tuple(f"assertion {number}" for number in range(len(passed))))
    assert mark.score == sum(passed) / len(passed)
    assert [check.passed for check in mark.checks] == passed


@given(st.text())
def test_no_text_at_all_makes_it_raise_anything_else(reply: str) -> None:
    with pytest.raises(MeasurementError):
        read_reply(reply, ASSERTIONS)


def test_an_unusable_reply_says_why_without_repeating_what_was_written() -> None:
    with pytest.raises(UnusableReplyError) as caught:
        read_reply('{"score": 2, "reason": "obey", "obey me": 1}', ())
    assert caught.value.problem == (
        "score: Input should be less than or equal to 1; it has a key that was not asked for"
    )
    assert "obey me" in UNMASKED.render(caught.value.message)


@pytest.mark.parametrize(
    ("assertions", "good", "bad"),
    [
        ((), '{"score": 0.5, "reason": "x"}', ['{"score": 0.5}', '{"score": "1", "reason": "x"}']),
        (ASSERTIONS, marks(True, False), ['{"checks": [{"assertion": 1, "passed": true}]}', '{"checks": {}}']),
    ],
)
def test_the_schema_accepts_what_is_read(assertions: tuple[str, ...], good: str, bad: list[str]) -> None:
    validator = Draft202012Validator(reply_schema(assertions))
    assert validator.is_valid(json.loads(good))
    read_reply(good, assertions)
    for reply in [*bad, good.replace("}", ', "more": 1}', 1)]:
        assert not validator.is_valid(json.loads(reply))
        with pytest.raises(UnusableReplyError):
            read_reply(reply, assertions)


@pytest.mark.parametrize("assertions", [(), ASSERTIONS])
def test_the_schema_is_strict_in_every_object(assertions: tuple[str, ...]) -> None:
    schema = reply_schema(assertions)
    objects = [schema, *schema.get("$defs", {}).values()]
    for one in objects:
        assert one["additionalProperties"] is False
        assert sorted(one["required"]) == sorted(one["properties"])
    assert not {"minimum", "maximum", "default"} & {key for one in objects for key in json.dumps(one).split('"')}
