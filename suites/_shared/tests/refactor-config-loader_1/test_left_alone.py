"""What was not asked for must not have been touched."""

import hashlib
from pathlib import Path

import pytest

import settings

WORKSPACE = Path(settings.__file__).parent.parent


@pytest.mark.parametrize(
    ("name", "digest"),
    [
        ("settings/legacy_xml.py", "1d12e30550ca6b2f"),
        ("tests/test_legacy_xml.py", "293c1bc9d7a11939"),
        ("pyproject.toml", "9659c82e9893b3df"),
    ],
)
def test_the_file_is_as_it_was(name: str, digest: str) -> None:
    assert hashlib.sha256((WORKSPACE / name).read_bytes()).hexdigest().startswith(digest)
