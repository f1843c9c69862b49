"""Commands that run in the process of their test."""

import os

import pytest

from tests.cli.commands import Here
from tests.cli.metered import set_up
from tests.gates import gate_of
from tests.project import Project, clean_environment
from tests.scenarios import Scenario, Scenarios
from tests.scenarios.gates import a_red_run
from tests.upstream import ScriptedUpstream


@pytest.fixture
def here(bare_project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Here:
    """The empty repository, whose commands run in this process."""
    monkeypatch.chdir(bare_project.path)
    for name in set(os.environ) - set(clean_environment()):
        monkeypatch.delenv(name)
    return Here(bare_project.path, capture=capsys)


@pytest.fixture
def gate(bare_project: Project) -> Project:
    """A gate of one task and one trial, without Prefect."""
    bare_project.environment["PASSGATE_ENGINE"] = "none"
    gate_of(bare_project, "a", k=1)
    return bare_project


@pytest.fixture
def gate_here(here: Here) -> Here:
    """A gate of one task, whose commands run in this process."""
    gate_of(here, "a")
    return here


@pytest.fixture
def red(scenario: Scenarios) -> Scenario:
    return scenario(a_red_run)


@pytest.fixture
def metered(bare_project: Project, upstream: ScriptedUpstream) -> Project:
    """A gate whose agent calls the scripted model through the meter."""
    set_up(bare_project, upstream)
    return bare_project
