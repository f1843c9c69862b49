"""A program of its own that looks for a regular expression in a text.

The engine holds the interpreter's lock while it searches and knows no time limit, and some patterns take forever on
some texts. So each search has a process that the system can end. The arguments are the folder of the engine and the
seconds of CPU time. Standard input is JSON: pattern, flags, text, whether the match must begin the text. It prints
`true` or `false`.
"""

import contextlib
import json
import resource
import sys

MEMORY = 1 << 30


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
    sys.path.append(engine_folder)
    import regress

    pattern, flags, text, at_start = json.load(sys.stdin.buffer)
    match = regress.Regex(pattern, flags).find(text)
    found = match is not None and not (at_start and match.range().start)
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
