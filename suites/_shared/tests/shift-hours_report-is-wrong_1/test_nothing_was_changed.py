"""Every file is there, as it was, and there is no other one, save for what caches leave."""

import hashlib
from pathlib import Path

import shifts

WORKSPACE = Path(shifts.__file__).parent.parent
CACHES = {"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache"}
DIGESTS = {
    "README.md": "3f9653c970b78865",
    "data/shifts-2025-03.csv": "a5b0a0175ce7d6d4",
    "docs/rules.md": "e66a1f74430ee796",
    "shifts/__init__.py": "5e2e5c4551414b79",
    "shifts/__main__.py": "a3899350a4a74580",
    "shifts/hours.py": "a4107066e7b689e2",
    "tests/test_hours.py": "fc1c15f1701d03f6",
}


def test_nothing_was_changed() -> None:
    files = [file for file in WORKSPACE.rglob("*") if file.is_file() and not CACHES & set(file.parts)]
    found = {
        file.relative_to(WORKSPACE).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()[:16] for file in files
    }
    assert found == DIGESTS
