"""Phrases that neither the documentation nor the messages and comments of the code use, with better ones."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.docs.pages import PAGES
from tests.project import REPOSITORY

_NOUNS = "day|document|file|folder|gate|kind|list|mapping|method|metric|number|regular file|task|text|tool|JSON|YAML"
BETTER: Mapping[str, str] = {
    r"\b(cannot|to) be had\b": "is unavailable, passgate does not support",
    r"\bcarr(y|ies|ied|ying) ((it|the run|a run) )?on\b": "resume, continue",
    r"\bstands? (here )?(twice|a second time)\b": "duplicate key (first defined in line N)",
    rf"(?<!there )\b(is|are) no ({_NOUNS})s?\b": "is not a list",
    r"\bbuys? (\w+ )?back\b": "offset",
    r"\b(is|are|was|were) (not )?waited for\b": "while waiting for it, waits for it",
    r"\bwhoever\b": "the caller, everyone who",
    r"\bas of `": "see `Name`",
    r"\b(is|are) told\b(?! apart)": "receives, gets",
    r"\bsays? so\b(?! far)": "states it, with a note",
}
"""Regular expressions, in any case, and what to write instead."""
WRITTEN = ("*.py", "*.html")


def in_one_line(text: str) -> str:
    """Join the lines of a text, also those of comments and of strings in parts."""
    return re.sub(r'"\s*\n\s*f?"|\s*\n\s*(# )?', lambda match: "" if match[0].startswith('"') else " ", text)


def uses(text: str) -> Iterator[str]:
    """Yield each use of such a phrase with the words around it."""
    line = in_one_line(text)
    for phrase, better in BETTER.items():
        for match in re.finditer(phrase, line, re.IGNORECASE):
            yield f"...{line[max(0, match.start() - 60) : match.end() + 30]}...: better: {better}"


@pytest.mark.parametrize("page", PAGES)
def test_pages_use_better_words(page: str) -> None:
    assert list(uses(PAGES[page])) == []


@pytest.mark.parametrize("folder", ["flows", "tasks"])
def test_the_code_uses_better_words(folder: str) -> None:
    files: list[Path] = [file for pattern in WRITTEN for file in (REPOSITORY / folder).rglob(pattern)]
    found = {str(file.relative_to(REPOSITORY)): list(uses(file.read_text(encoding="utf-8"))) for file in files}
    assert {file: phrases for file, phrases in found.items() if phrases} == {}


def test_what_is_wrong_is_noticed() -> None:
    text = """
    raise ValueError("the key stands here a "
                     f"second time")
    # A prompt that a program makes is
    # not to be had.
    """
    assert len(list(uses(text))) == 2
    assert list(uses("There is no file. Tasks are told apart by their names.")) == []
