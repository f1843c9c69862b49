"""Search texts for a regular expression, as a program of its own.

The engines hold the interpreter's lock while they search and have no time limit, and some patterns take for ever on
some texts. So a search has a process that the system can kill. The arguments are the folder of the engine for
JavaScript and the seconds of CPU time. Standard input is JSON: pattern, language, flags, texts, whether a match must
be at the beginning. It prints a JSON list of `true` and `false`, one for each text.
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
    """Search within the limits. The system kills a process that exceeds them."""
    for limit, value in (
        (resource.RLIMIT_CPU, int(cpu_seconds)),
        (resource.RLIMIT_AS, MEMORY),
        (resource.RLIMIT_CORE, 0),
    ):
        # Some systems know a limit but take no value for it; then the time limit of the caller is left.
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(limit, (value, value))
    pattern, language, flags, texts, at_start = json.load(sys.stdin.buffer)
    if language == "python":
        expression = re.compile(pattern, re.IGNORECASE if flags else 0)
        found = [matches_somewhere(expression, text) for text in texts]
    else:
        sys.path.append(engine_folder)
        import regress

        matches = [regress.Regex(pattern, flags).find(text) for text in texts]
        found = [match is not None and not (at_start and match.range().start) for match in matches]
    sys.stdout.write(json.dumps(found))


def matches_somewhere(expression: "re.Pattern[str]", text: str) -> bool:
    """Return whether an expression matches in a text, in windows: some take time that grows with the square of it."""
    starts = range(0, max(len(text), 1), WINDOW - OVERLAP)
    return any(expression.search(text, start, start + WINDOW) for start in starts)


if __name__ == "__main__":
    main(*sys.argv[1:])
