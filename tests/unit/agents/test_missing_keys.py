"""Programs that lack a key, each in its own words."""

import pytest

from passgate.tasks.agents.missing_keys import without_key

SET = {"OPENAI_API_KEY": "passgate", "EMPTY_API_KEY": ""}


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("Traceback (most recent call last):\n  ...\nKeyError: 'GEMINI_API_KEY'", "GEMINI_API_KEY"),
        ("agent.sh: line 3: GEMINI_API_KEY: unbound variable", "GEMINI_API_KEY"),
        ("Error: please set the environment variable HF_TOKEN", "HF_TOKEN"),
        ("the api_key client option must be set by setting the EMPTY_API_KEY environment variable", "EMPTY_API_KEY"),
        ("OPENAI_API_KEY is required, and so is\nGEMINI_API_KEY is missing", "GEMINI_API_KEY"),
    ],
)
def test_a_key_that_is_not_set_is_named_in_one_line(said: str, name: str) -> None:
    assert without_key(said, SET) == f"{name} is not set"


@pytest.mark.parametrize("said", ["KeyError: 'name'", "OPENAI_API_KEY is not set", "GEMINI_API_KEY=x works", ""])
def test_other_words_stay_as_they_are(said: str) -> None:
    assert without_key(said, SET) == said
