"""The base of a run where a commit is pinned, in a real repository."""

import pytest

from passgate.tasks.integrity.merge_base import pinned_base
from passgate.tasks.model.baseline import Pins
from passgate.tasks.model.run import Base
from tests.project import Project

BASE = Base(commit="b" * 40, ancestors=("b" * 40,), note="a note")


@pytest.fixture
def commits(bare_project: Project) -> list[str]:
    """Three commits, the oldest first; the last is HEAD."""
    for name in ("second", "third"):
        bare_project.git("commit", "-q", "--allow-empty", "-m", name)
    return bare_project.git("rev-list", "--reverse", "HEAD").split()


@pytest.mark.parametrize("pins", [None, Pins(runs=("20260101",), reason="why")])
def test_without_a_pinned_commit_the_base_stays_as_it_is(bare_project: Project, pins: Pins | None) -> None:
    assert pinned_base(BASE, pins, bare_project.path) is BASE


@pytest.mark.parametrize("name", ["hash", "short", "tag"])
def test_a_pinned_commit_brings_its_ancestors_and_the_commit_that_judges_stays(
    bare_project: Project, commits: list[str], name: str
) -> None:
    bare_project.git("tag", "good", commits[1])
    pins = Pins(commit={"hash": commits[1], "short": commits[1][:10], "tag": "good"}[name], reason="why")
    assert pinned_base(BASE, pins, bare_project.path) == BASE.model_copy(update={"ancestors": (commits[1], commits[0])})


@pytest.mark.parametrize("commit", ["f" * 40, "--all", "nowhere"])
def test_a_pinned_commit_that_is_not_known_is_told(bare_project: Project, commits: list[str], commit: str) -> None:
    base = pinned_base(BASE, Pins(commit=commit, reason="why"), bare_project.path)
    assert (base.commit, base.ancestors) == (BASE.commit, ())
    assert base.note.startswith(f"the pinned commit {commit} is not known here")
    assert "fetch" in base.note
