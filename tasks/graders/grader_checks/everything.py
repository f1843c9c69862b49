"""Regular expressions that are found in every text.

A search that looks neither back nor at where it stands sees, at the end of any text, what it sees in an empty one. So
an expression without `^`, `\\A`, `\\b`, `\\B` and look-behind that is found in the empty text is found in every text:
`.*`, `x?$`, and also `(?!.*password)`, which forbids nothing. One that begins with `^` and looks at nothing else is
found at the start of every text when it is found in the empty one: `^(?:yes)?`. Between `^` and `$` only what takes
every character is: `^[\\s\\S]*$`; where these are of a line, every character of one is enough: `(?m)^.*$`. Expressions
that are none of these are taken to be able to fail.
"""

import re
from collections.abc import Callable
from typing import Final

import regress

from passgate.tasks.model.javascript_regex import engine_flags

_INLINE_FLAGS: Final = re.compile(r"\(\?([aiLmsux]+)\)")
_SCOPED: Final = re.compile(r"\(\?([aiLmsux]+):([^()]*)\)")
_START: Final = re.compile(r"\^|\\A")
_END: Final = re.compile(r"(?<!\\)(?:\\\\)*(\$|\\[Zz])\Z")
_TOKEN: Final = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|\(\?<?[=!]|\(\?P=|.", re.DOTALL)
_LOOKS_BACK: Final = frozenset({"^", "\\A", "\\b", "\\B", "(?<=", "(?<!"})
_LOOKS_AHEAD: Final = frozenset({"$", "\\Z", "\\z", "(?=", "(?!"})
_BACK_REFERENCE: Final = re.compile(r"\\[1-9]|\\k|\(\?P=")
_EVERY_CHARACTER: Final = re.compile(
    r"(?:\[\\s\\S\]|\[\\S\\s\]|\[\\d\\D\]|\[\\w\\W\]|\[\^\]|\((?:\?:)?\.\|\\n\)|\((?:\?:)?\.\|\\s\))\*\??"
    r"|\(\?[aimu]*s[aimu]*:\.\*\??\)"
)
_EVERY_IF_DOT_DOES: Final = re.compile(r"\.\*\??|\((?:\?:)?\.\*\)")


def python_finds_everything(pattern: str, *, ignore_case: bool = False) -> bool:
    """Whether an expression of Python's `re` is found in every text. False for one that is none, or that is too large
    for such a look.
    """
    inline = _INLINE_FLAGS.match(pattern)
    flags = inline[1] if inline else ""
    body = pattern[inline.end() :] if inline else pattern

    def in_nothing() -> bool:
        try:
            return re.search(pattern, "", re.IGNORECASE if ignore_case else 0) is not None
        except (re.error, OverflowError, RecursionError):
            return False

    scoped = _SCOPED.fullmatch(body)
    if scoped is not None:
        flags, body = flags + scoped[1], scoped[2]
    return "x" not in flags and _finds_everything(body, in_nothing, flags)


def javascript_finds_everything(pattern: str, flags: str = "") -> bool:
    """The same of an expression as JavaScript knows them."""

    def in_nothing() -> bool:
        try:
            return regress.Regex(pattern, engine_flags(flags)).find("") is not None
        except (regress.RegressError, UnicodeEncodeError):
            return False

    if "y" in flags:  # it is looked for at the start alone
        tokens = _tokens(pattern)
        return not tokens & (_LOOKS_AHEAD | _LOOKS_BACK) and not _BACK_REFERENCE.search(pattern) and in_nothing()
    return _finds_everything(pattern, in_nothing, flags)


def _finds_everything(body: str, in_nothing: Callable[[], bool], flags: str) -> bool:
    if not in_nothing():
        return False
    tokens = _tokens(body)
    if not tokens & _LOOKS_BACK:
        return True
    start = _START.match(body)
    if start is None:
        return False
    rest = body[start.end() :]
    if not _tokens(rest) & (_LOOKS_BACK | _LOOKS_AHEAD):
        return _BACK_REFERENCE.search(rest) is None
    end = _END.search(rest)
    core = rest[: end.start(1)] if end else rest
    of_lines = "m" in flags and (start[0] == "^" or (end is not None and end[1] == "$"))
    dot_is_enough = "s" in flags or of_lines
    return bool(_EVERY_CHARACTER.fullmatch(core) or (dot_is_enough and _EVERY_IF_DOT_DOES.fullmatch(core)))


def _tokens(pattern: str) -> frozenset[str]:
    """The parts of an expression that say where something stands, beside others; classes and escapes are one each."""
    return frozenset(_TOKEN.findall(pattern))
