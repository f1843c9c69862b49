"""Texts that look alike on a screen, told apart: decomposed letters, blanks, hyphens and quotes of all kinds."""

import re
import unicodedata
from typing import Final

from passgate.tasks.errors import Raw
from passgate.tasks.model.quotes import quote, raw

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


def look_alike(wanted: str, text: str, *, whole: bool = False, ignore_case: bool = False) -> Raw:
    """Return how a text, or `whole` of it, differs from a wanted one that it lacks and only seems to have.

    Empty where it does not even seem to.
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
