"""Python for commands that grade an agent's work: modules of the working folder shadow no others.

Python would look for modules in the working folder first, and so take what an agent has left there for a part of the
library. With PYTHONSAFEPATH it does not look there at all; here the folder comes last. The folder of a script, which
is left out as well, comes first again.
"""

import os
import sys


def _extend_path(program: str) -> None:
    if program in {"", "-", "-c"}:
        sys.path.append("")
    elif program == "-m":
        sys.path.append(os.getcwd())  # noqa: PTH109 - pathlib would cost every start some milliseconds
    elif os.path.isfile(program):  # noqa: PTH113
        sys.path.insert(0, os.path.dirname(os.path.realpath(program)))  # noqa: PTH120


_here = os.path.dirname(__file__)  # noqa: PTH120
sys.path[:] = [folder for folder in sys.path if folder != _here]
_own = sys.modules.pop("sitecustomize")
try:
    __import__("sitecustomize")  # the one that the interpreter has otherwise
except ModuleNotFoundError:
    sys.modules["sitecustomize"] = _own
if getattr(sys.flags, "safe_path", False):
    _extend_path(sys.argv[0] if sys.argv else "")
