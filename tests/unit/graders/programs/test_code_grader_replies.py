import json
from typing import Any

import pytest

from passgate.tasks.errors import MeasurementError
from passgate.tasks.graders.programs.code_grader import read_code_reply
from passgate.tasks.model.quotes import UNMASKED


@pytest.mark.parametrize(
    ("reply", "score"),
    [
        ({"score": 0.6, "hits": ["h"], "misses": ["m"], "reasoning": "r"}, 0.6),
        ({"score": 0.75, "assertions": [{"text": "x", "passed": True, "evidence": "e"}], "details": {"k": 1}}, 0.75),
        ({"pass": True, "score": 0.9, "reason": "r", "checks": [{"text": "x", "pass": True, "score": 1}]}, 0.9),
        ({"assertions": [{"text": "a", "passed": True}, {"text": "b", "passed": False}]}, 0.5),
        ({"checks": [{"text": "a", "pass": True}, {"text": "b", "pass": True}, {"text": "c", "pass": False}]}, 2 / 3),
        ({"score": None, "checks": [{"text": "a", "pass": True}]}, 1),
        ({"pass": True}, 1),
        ({"pass": False}, 0),
        ({"score": 0}, 0),
        ({"score": 1}, 1),
        ({"pass": True, "score": 0.1}, 0.1),
    ],
)
def test_every_form_of_a_reply_has_its_score(reply: dict[str, Any], score: float) -> None:
    assert read_code_reply(json.dumps(reply), "a warning", 0).score == pytest.approx(score)


def test_what_a_reply_says_becomes_checks() -> None:
    reply = {
        "score": 0.5,
        "hits": ["h"],
        "misses": ["m"],
        "assertions": [{"text": "a", "passed": True, "evidence": "e"}],
        "checks": [{"text": "c", "pass": False, "reason": "r"}],
        "reasoning": "so so",
    }
    read = read_code_reply(json.dumps(reply), "", 0)
    assert [(check.passed, UNMASKED.render(check.message)) for check in read.checks] == [
        (True, "a: e"),
        (False, "c: r"),
        (True, "h"),
        (False, "m"),
    ]
    assert UNMASKED.render(read.reason) == "so so"


@pytest.mark.parametrize(
    ("stdout", "exit_code", "score", "message"),
    [
        ("looks fine\n", 0, 1, "looks fine"),
        ("", 0, 1, "exit code 0"),
        ("not fine", 1, 0, "not fine"),
        ("", 1, 0, "exit code 1"),
        ('{"pass": false, "score": 0.95}', 0, 0, "`pass` is false, so the score 0.95 does not count"),
    ],
)
def test_plain_text_goes_by_the_exit_code(stdout: str, exit_code: int, score: float, message: str) -> None:
    read = read_code_reply(stdout, "", exit_code)
    assert (read.score, [UNMASKED.render(check.message) for check in read.checks]) == (score, [message])
    assert read.checks[0].passed is (score == 1)


def test_a_reply_may_come_after_lines_of_a_log() -> None:
    assert read_code_reply('loading\n  half way\n{\n "score": 0.9,\n "a": {"b": 1}\n}\n', "", 0).score == 0.9


@pytest.mark.parametrize(
    "stdout",
    [
        '{"score": 0.9',
        "{}",
        '{"score": "0.9"}',
        '{"score": true}',
        '{"score": 1.7}',
        '{"score": -3}',
        '{"score": NaN}',
        '{"score": 1, "score": 0}',
        '{"score": 1}\n{"score": 0}',
        '{"score": 1}\ndone',
        'result: {"score": 1}',
        'config {a}\n{"score": 1}',
        '[{"score": 1}]',
        "[1, 2]",
        "0.4",
        "null",
        "false",
        '"fine"',
        "fine }{",
        '{"score": 1, "pass": "yes"}',
        '{"score": 1, "hits": "h"}',
        '{"score": 1, "misses": [1]}',
        '{"score": 1, "checks": {}}',
        '{"score": 1, "checks": ["a"]}',
        '{"assertions": [{"text": "a"}]}',
        '{"assertions": [{"text": "a", "passed": "true"}]}',
        '{"assertions": []}',
        '{"score": {"value": ' + "[" * 100_000,
    ],
)
def test_a_reply_that_is_none_is_the_graders_error(stdout: str) -> None:
    with pytest.raises(MeasurementError, match="the grader's reply is unusable"):
        read_code_reply(stdout, "", 0)


@pytest.mark.parametrize(
    ("stdout", "stderr", "exit_code", "message"),
    [
        ("", "boom", 2, "the grader crashed with exit code 2: boom"),
        ("not fine", "Traceback", 1, "the grader crashed with exit code 1: Traceback"),
        ("", "", -9, "the grader crashed with exit code -9"),
        ("", "", 137, "the grader crashed with exit code 137"),
        ('{"score": 1}', "", 1, "ended with exit code 1 after it had printed"),
        ('{"score"', "", 1, "ended with exit code 1 after it had printed"),
        ("0.4", "", 1, "ended with exit code 1 after it had printed"),
    ],
)
def test_a_grader_that_crashes_says_nothing(stdout: str, stderr: str, exit_code: int, message: str) -> None:
    with pytest.raises(MeasurementError) as caught:
        read_code_reply(stdout, stderr, exit_code)
    assert message in UNMASKED.render(caught.value.message)


def test_foreign_text_is_bounded() -> None:
    read = read_code_reply(json.dumps({"score": 0, "misses": ["x" * 10_000] * 1000, "reason": "y" * 10_000}), "", 0)
    assert len(read.checks) == 100
    assert all(len(UNMASKED.render(check.message)) < 3000 for check in read.checks)
    assert len(UNMASKED.render(read.reason)) < 3000
