"""A program of its own that looks for a regular expression in a text.

The engines hold the interpreter's lock while they search and know no time limit, and some patterns take forever on some
texts. So each search has a process that the system can end. The arguments are the folder of the engine for JavaScript
and the seconds of CPU time. Standard input is JSON: pattern, language, flags, text, whether the match must begin the
text. It prints `true` or `false`.
"""

import contextlib
import json
import re
import resource
import sys

MEMORY = 1 << 30
WINDOW = 1_000_000  # Characters that an expression of Python sees at once
OVERLAP = 10_000  # Characters that two neighbouring windows share, so that a match across the border is found


def main(engine_folder: str, cpu_seconds: str) -> None:
    """Do one search within the limits; the system kills the process that passes them."""
    for limit, value in (
        (resource.RLIMIT_CPU, int(cpu_seconds)),
        (resource.RLIMIT_AS, MEMORY),
        (resource.RLIMIT_CORE, 0),
    ):
        # Some systems know a limit but take no value for it; then the time limit of the caller is left.
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(limit, (value, value))
    pattern, language, flags, text, at_start = json.load(sys.stdin.buffer)
    if language == "python":
        found = matches_somewhere(re.compile(pattern, re.IGNORECASE if flags else 0), text)
    else:
        sys.path.append(engine_folder)
        import regress

        match = regress.Regex(pattern, flags).find(text)
        found = match is not None and not (at_start and match.range().start)
    sys.stdout.write(json.dumps(found))


def matches_somewhere(expression: "re.Pattern[str]", text: str) -> bool:
    """Return whether an expression matches in a text. It is searched in windows, because the time that some expressions
    take grows with the square of it.
    """
    starts = range(0, max(len(text), 1), WINDOW - OVERLAP)
    return any(expression.search(text, start, start + WINDOW) for start in starts)


if __name__ == "__main__":
    main(*sys.argv[1:])
