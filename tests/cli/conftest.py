"""Commands that run in the process of their test."""

import os

import pytest

from tests.cli.commands import Here
from tests.cli.metered import set_up
from tests.project import Project, clean_environment
from tests.upstream import ScriptedUpstream


@pytest.fixture
def here(bare_project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Here:
    """The empty repository, whose commands run in this process."""
    monkeypatch.chdir(bare_project.path)
    for name in set(os.environ) - set(clean_environment()):
        monkeypatch.delenv(name)
    return Here(bare_project.path, capture=capsys)


@pytest.fixture
def metered(bare_project: Project, upstream: ScriptedUpstream) -> Project:
    """A gate whose agent calls the scripted model through the meter."""
    set_up(bare_project, upstream)
    return bare_project
