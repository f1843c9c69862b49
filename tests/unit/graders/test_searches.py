import asyncio
from typing import Any
from unittest.mock import Mock

import pytest

from passgate.tasks.files.search_worker import OVERLAP, WINDOW
from passgate.tasks.graders.searches import found, found_in, look_alike
from passgate.tasks.model.quotes import UNMASKED
from tests.unit.graders.options import output
from tests.unit.graders.trials import Files, Graded


@pytest.mark.parametrize("start", [0, WINDOW - 3, WINDOW - OVERLAP - 3, 2 * (WINDOW - OVERLAP) + 1, 3 * WINDOW])
async def test_a_match_is_found_wherever_it_lies(start: int) -> None:
    assert await found("need+le", "x" * start + "needle" + "x" * (3 * WINDOW - start))


@pytest.mark.parametrize(
    ("pattern", "text", "is_found"),
    [
        ("needle", "x" * (3 * WINDOW), False),
        ("^needle", "x" * (WINDOW - OVERLAP) + "needle", False),
        ("^$", "", True),
        ("NEEDLE", "a needle", False),
    ],
    ids=["no match in a long text", "the beginning is only the beginning", "an empty text", "another case"],
)
async def test_what_is_found(pattern: str, text: str, is_found: bool) -> None:
    assert bool(await found(pattern, text)) is is_found


async def test_case_can_be_ignored() -> None:
    assert await found("NEEDLE", "a needle", ignore_case=True)


NESTED = r"^(([0-9]:)?[a-zA-Z-]+\s*)+$"
WORDS = "the quick brown foxes are jumping over?"


@pytest.mark.parametrize(
    "options",
    [
        {"type": "output_check", "matches": NESTED},
        {"type": "output_check", "matches": NESTED, "ignore_case": True},
        {"type": "policy_check", "deny_output": [NESTED]},
        {"type": "state_check", "expect": [{"file": "a.txt", "matches": NESTED}]},
        {"type": "state_check", "expect": [{"command": "cat a.txt", "stdout_matches": NESTED}]},
    ],
)
async def test_an_expression_that_takes_for_ever_is_an_error_of_every_grader(
    options: dict[str, Any], graded: Graded, leave: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("passgate.tasks.files.bounded_search.CPU_SECONDS", 1)
    leave({"a.txt": WORDS})
    result = await graded(options, WORDS)
    assert (result.score, NESTED[:20] in result.error) == (None, True)
    assert "takes more than 1 s on this text: simplify it" in result.error


async def test_the_messages_of_a_long_trial_are_searched_in_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[object] = []

    async def start(*command: object, **settings: Any) -> Any:
        started.append(command)
        return await asyncio.create_subprocess_exec(*command, **settings)  # type: ignore[arg-type]

    monkeypatch.setattr(
        "passgate.tasks.files.bounded_search.asyncio", Mock(wraps=asyncio, create_subprocess_exec=start)
    )
    texts = [f"message {number}" for number in range(3000)]
    assert await found_in("message [0-9]+9$", texts) == {text for text in texts if text.endswith("9")} - {"message 9"}
    assert len(started) == 1


@pytest.mark.parametrize(
    ("wanted", "text", "says"),
    [
        ("Zürich", "in Zu\u0308rich.", r"'Zu\u0308rich' only looks like 'Z\xfcrich'"),
        ("Zu\u0308rich", "in Zürich.", r"'Z\xfcrich' only looks like 'Zu\u0308rich'"),
        ("12 000 CHF", "12\u00a0000\u202fCHF", r"'12\xa0000\u202fCHF' only looks like '12 000 CHF'"),
        ("a-b's", "a\u2011b\u2019s", r"'a\u2011b\u2019s' only looks like"),
        ("token", "to\u200bken", r"'to\u200bken' only looks like 'token'"),
        *(("12 000", "12_000", ""), ("", "x", "")),
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
        *({"type": "contains", "value": "Zü-W"}, {"type": "equals", "value": "Zü-W"}),
        {"type": "state_check", "expect": [{"file": "a.txt", "contains": ["Zü-W"]}]},
        {"type": "state_check", "expect": [{"file": "a.txt", "equals": "Zü-W"}]},
    ],
)
async def test_graders_of_texts_say_so(options: object, graded: Graded, leave: Files) -> None:
    leave({"a.txt": "Zu\u0308\u2011W"})
    grade = await graded(options, "Zu\u0308\u2011W")
    assert not grade.passed
    assert r"'Zu\u0308\u2011W' only looks like" in grade.checks[0].message


@pytest.mark.parametrize(
    ("answer", "is_told"),
    [("in Zu\u0308rich 12", True), ("Zürich\u00a012", True), ("Zurich\u00a012", False), ("Bern", False)],
)
async def test_a_text_that_would_match_as_it_is_seen_says_so(answer: str, is_told: bool, graded: Graded) -> None:
    grade = await graded(output(matches="Zürich 12"), answer)
    assert not grade.passed
    assert ("it would with composed letters (NFC) and plain spaces" in grade.checks[0].message) is is_told


async def test_the_hint_never_turns_a_failure_into_an_error(graded: Graded) -> None:
    grade = await graded(output(matches="^([a ]+)+$"), "a\u00a0" * 40 + "!")
    assert (grade.passed, grade.error) == (False, None)
