"""Commands that run in the process of their test."""

import os

import pytest

from tests.cli.commands import Here
from tests.project import Project, clean_environment


@pytest.fixture
def here(bare_project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Here:
    """The empty repository, whose commands run in this process."""
    monkeypatch.chdir(bare_project.path)
    for name in set(os.environ) - set(clean_environment()):
        monkeypatch.delenv(name)
    return Here(bare_project.path, capture=capsys)
