"""Texts that look alike on a screen."""

import pytest

from passgate.tasks.graders.look_alikes import look_alike
from passgate.tasks.model.quotes import UNMASKED
from tests.unit.graders.trials import Files, Graded


@pytest.mark.parametrize(
    ("wanted", "text", "says"),
    [
        ("Zürich", "in Zu\u0308rich.", r"'Zu\u0308rich' only looks like 'Z\xfcrich'"),
        ("Zu\u0308rich", "in Zürich.", r"'Z\xfcrich' only looks like 'Zu\u0308rich'"),
        ("12 000 CHF", "12\u00a0000\u202fCHF", r"'12\xa0000\u202fCHF' only looks like '12 000 CHF'"),
        ("a-b's", "a\u2011b\u2019s", r"'a\u2011b\u2019s' only looks like"),
        ("token", "to\u200bken", r"'to\u200bken' only looks like 'token'"),
        ("Zürich", "Zurich", ""),
        ("12 000", "12_000", ""),
        ("", "x", ""),
    ],
)
def test_what_differs_is_shown(wanted: str, text: str, says: str) -> None:
    assert says in UNMASKED.render(look_alike(wanted, text))
    assert bool(UNMASKED.render(look_alike(wanted, text))) is bool(says)
    assert UNMASKED.render(look_alike(wanted, f"{text} and more", whole=True)) == ""


@pytest.mark.parametrize("wanted", ["a" * 5000 + "b", "a--------b", "a        b", "\u00fc" * 5000 + "b"])
def test_no_answer_makes_the_search_long(wanted: str) -> None:
    for text in (wanted[0] * 5000, "a" + "\u00ad" * 5000, "a" + "\u200b\u00ad-" * 2000, "u\u0308" * 5000):
        assert look_alike(wanted, text) == ""


@pytest.mark.parametrize(
    "options",
    [
        {"type": "output_check", "contains": ["Zü-W"]},
        {"type": "output_check", "equals": "zü-w", "ignore_case": True},
        {"type": "contains", "value": "Zü-W"},
        {"type": "equals", "value": "Zü-W"},
        {"type": "state_check", "expect": [{"file": "a.txt", "contains": ["Zü-W"]}]},
        {"type": "state_check", "expect": [{"file": "a.txt", "equals": "Zü-W"}]},
    ],
)
async def test_graders_of_texts_say_so(options: object, graded: Graded, leave: Files) -> None:
    leave({"a.txt": "Zu\u0308\u2011W"})
    grade = await graded(options, "Zu\u0308\u2011W")
    assert not grade.passed
    assert r"'Zu\u0308\u2011W' only looks like" in grade.checks[0].message
