"""Programs that graders are written for, and the tests that need one of them."""

import os
import shutil
import sys
from pathlib import Path

import pytest


def needs(*programs: str) -> pytest.MarkDecorator:
    """Skips a test where a program is neither beside this Python nor on the PATH, as graders look for it."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    missing = [name for name in programs if shutil.which(name, path=path) is None]
    return pytest.mark.skipif(bool(missing), reason=f"{', '.join(missing)}: not on this machine")
