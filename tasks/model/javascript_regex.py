"""Regular expressions as JavaScript knows them, which are those of eval files."""

from typing import Final

import regress

FLAGS: Final = "dgimsuvy"
ENGINE_FLAGS: Final = frozenset("imsuv")
"""The flags that change what a pattern matches; the others say where a search begins and what it tells."""


def regex_problem(pattern: str, flags: str = "") -> str | None:
    """Return the problem of a regular expression, or `None` if JavaScript accepts it (ECMA-262, `new RegExp`)."""
    unknown = sorted(set(flags) - set(FLAGS))
    if unknown:
        problem = f"unknown flag {unknown[0]!r}, expected some of {FLAGS!r}"
    elif len(set(flags)) < len(flags):
        problem = f"a flag is there twice in {flags!r}"
    elif {"u", "v"} <= set(flags):
        problem = "the flags 'u' and 'v' exclude each other"
    else:
        problem = _pattern_problem(pattern, engine_flags(flags))
    return f"no regular expression as JavaScript knows them: {problem}" if problem else None


def engine_flags(flags: str) -> str:
    """Return the flags that change what a pattern matches."""
    return "".join(flag for flag in flags if flag in ENGINE_FLAGS)


def _pattern_problem(pattern: str, flags: str) -> str:
    try:
        regress.Regex(pattern, flags)
    except UnicodeEncodeError:
        return "it holds half of a character"
    except regress.RegressError as error:
        hint = "; give the i as a flag instead" if pattern.startswith("(?i)") else ""
        return f"{error}{hint}"
    return ""
