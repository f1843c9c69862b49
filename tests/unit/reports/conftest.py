"""The comparison with golden files."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parents[2] / "golden" / "reports"


@pytest.fixture(scope="session")
def matches_golden() -> Callable[[str, str], None]:
    """Compares a text with a golden file; PASSGATE_UPDATE_GOLDEN=1 writes the file instead."""

    def compare(text: str, name: str) -> None:
        path = GOLDEN / name
        if os.environ.get("PASSGATE_UPDATE_GOLDEN") == "1":
            path.write_bytes(text.encode())
        assert text.encode().decode() == path.read_bytes().decode()

    return compare
