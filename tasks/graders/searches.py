"""Search texts from outside: for regular expressions, and for texts that only look alike on a screen.

A search that can take for ever has a process that the system can end. What looks alike: decomposed letters, blanks,
hyphens and quotes of all kinds.
"""

import contextlib
import re
import unicodedata
from collections.abc import Iterable
from typing import Final

from passgate.tasks.errors import MeasurementError, Raw, RawText
from passgate.tasks.files.bounded_search import search_javascript, search_python
from passgate.tasks.model.grader_options import engine_flags, regex_problem
from passgate.tasks.model.quotes import quote, raw

_HALF_CHARACTERS: Final = re.compile("[\ud800-\udfff]")
SPACES: Final = dict.fromkeys(map(ord, "\u00a0\u2007\u202f"), " ")
"""No-break spaces, which models write between numbers and units."""
_ALIKE: Final = (
    " \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000",
    "-\u2010\u2011\u2012\u2013\u2212",
    "'\u2018\u2019\u02bc",
    '"\u201c\u201d',
)
# No character is in two of these, and no alternative begins as another: else a search could take for ever.
_INVISIBLE: Final = "[\u200b\u200c\u200d\u2060\ufeff\u00ad]*"
_LONGEST: Final = 1_000  # Characters of a text that is looked for
_MOST: Final = 200_000  # Characters of a text that is looked through
_AROUND: Final = 10


async def found(pattern: str, text: str, *, ignore_case: bool = False) -> bool:
    """Return whether a regular expression of Python matches somewhere in a text. Raise as `found_in`."""
    return text in await found_in(pattern, [text], ignore_case=ignore_case)


async def found_in(pattern: str, texts: Iterable[str], *, ignore_case: bool = False) -> frozenset[str]:
    """Return the texts in which a regular expression of Python matches somewhere. Raise `MeasurementError` if a text is
    too long or the search takes too long.
    """
    different = list(dict.fromkeys(texts))
    # One process for all texts: to start one takes longer than most searches.
    matches = _matches(pattern, await search_python(pattern, different, ignore_case=ignore_case))
    return frozenset(text for text, is_match in zip(different, matches, strict=True) if is_match)


async def match_hint(pattern: str, text: str, *, ignore_case: bool = False) -> str:
    """Return why a text does not match that seems to: with the letters and blanks that a reader sees it would."""
    seen = unicodedata.normalize("NFC", text).translate(SPACES)
    with contextlib.suppress(MeasurementError):  # It does not match, however long this search takes
        if seen != text and await found(pattern, seen, ignore_case=ignore_case):
            return ": it would with composed letters (NFC) and plain spaces"
    return ""


async def javascript_found(pattern: str, flags: str, text: str) -> bool:
    """Return whether JavaScript finds a regular expression in a text: `new RegExp(pattern, flags).test(text)`. Raises
    `MeasurementError` when JavaScript does not take the expression, and as `found` does.
    """
    problem = regex_problem(pattern, flags)
    if problem is not None:
        raise MeasurementError(raw(shown_pattern(pattern), f": {problem}"))
    whole = _HALF_CHARACTERS.sub("\ufffd", text)
    searched = await search_javascript(pattern, [whole], engine_flags(flags), at_start="y" in flags)
    return _matches(pattern, searched)[0]


def _matches(pattern: str, searched: list[bool] | str) -> list[bool]:
    if isinstance(searched, str):
        raise MeasurementError(raw(shown_pattern(pattern), f" {searched}"))
    return searched


def shown_pattern(pattern: str) -> RawText:
    """Return a regular expression as messages show it."""
    return raw("/", quote(pattern, 500), "/")


def look_alike(wanted: str, text: str, *, whole: bool = False, ignore_case: bool = False) -> Raw:
    """Return how a text, or `whole` of it, differs from a wanted one that it lacks and only seems to have. Empty where
    it does not even seem to.
    """
    if not wanted or len(wanted) > _LONGEST or len(text) > _MOST:
        return ""
    pattern = re.compile(
        _INVISIBLE.join(map(_alike, unicodedata.normalize("NFC", wanted))), re.IGNORECASE * ignore_case
    )
    match = pattern.fullmatch(text) if whole else pattern.search(text)
    if match is None or match[0] == wanted:
        return ""
    first = next((n for n, (a, b) in enumerate(zip(match[0], wanted, strict=False)) if a != b), 0)
    window = slice(max(0, first - _AROUND), first + _AROUND)
    return raw(": ", quote(ascii(match[0][window]), 200), f" only looks like {wanted[window]!a}")


def _alike(character: str) -> str:
    """Return a pattern for a character and those that look like it."""
    group = next((group for group in _ALIKE if character in group), "")
    if group:
        return f"[{re.escape(group)}]"
    forms = dict.fromkeys((character, unicodedata.normalize("NFD", character)))
    return f"(?:{'|'.join(map(re.escape, forms))})"
