"""What a change edits of the files that judge it, asked of real repositories."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from passgate.tasks.errors import UsageError
from passgate.tasks.integrity.checkout import Checkout
from passgate.tasks.integrity.judging_places import What, find_edits
from tests.repositories import GitRepository

JUDGING: dict[str, What] = {
    "suites": "tasks and graders",
    "gates.yaml": "policy",
    "prices.yaml": "prices",
    "quarantine.yaml": "quarantine",
    "baseline.yaml": "baseline pins",
}


@pytest.fixture
def repository(tmp_path: Path) -> GitRepository:
    """A committed gate, and an agent that is not among what judges."""
    made = GitRepository(tmp_path / "repository")
    for name in ("suites/golden/a.yaml", "suites/golden/b.yaml", "gates.yaml", "agent.py", "agents.yaml"):
        made.write(name)
    made.commit()
    return made


def edits_of(repository: GitRepository, judging: Mapping[str, What] = JUDGING) -> list[tuple[str, str, str]]:
    edits = find_edits(Checkout(repository.path), repository.git("rev-parse", "main"), judging)
    return [(edit.path, edit.kind, edit.what) for edit in edits]


def test_neither_the_agent_nor_what_is_ignored_or_only_touched_is_an_edit(repository: GitRepository) -> None:
    for name in ("agent.py", "agents.yaml", "prices/prices.yaml"):
        repository.write(name, "y")
    repository.write(".gitignore", "*.log\n")
    repository.write("suites/golden/run.log")
    repository.write("suites/_shared/hidden/__pycache__/test.pyc")
    (repository.path / "gates.yaml").touch()
    repository.write("suites/golden/a.yaml")
    assert edits_of(repository) == []


@pytest.mark.parametrize("how", ["committed", "staged", "in the working tree"])
def test_edits_count_wherever_they_are(repository: GitRepository, how: str) -> None:
    repository.branch("change")
    repository.write("suites/golden/a.yaml", "y")
    (repository.path / "suites/golden/b.yaml").unlink()
    repository.write("suites/golden/new.yaml")
    repository.write("suites/_shared/hidden/test.py")
    for name in ("gates", "prices", "quarantine", "baseline"):
        repository.write(f"{name}.yaml", "y")
    if how == "committed":
        repository.commit()
    elif how == "staged":
        repository.git("add", "--all")
    assert edits_of(repository) == [
        ("baseline.yaml", "added", "baseline pins"),
        ("gates.yaml", "changed", "policy"),
        ("prices.yaml", "added", "prices"),
        ("quarantine.yaml", "added", "quarantine"),
        ("suites/_shared/hidden/test.py", "added", "tasks and graders"),
        ("suites/golden/a.yaml", "changed", "tasks and graders"),
        ("suites/golden/b.yaml", "deleted", "tasks and graders"),
        ("suites/golden/new.yaml", "added", "tasks and graders"),
    ]


def test_an_edit_that_was_taken_back_is_none(repository: GitRepository) -> None:
    repository.branch("change")
    repository.write("gates.yaml", "y")
    repository.commit()
    repository.write("gates.yaml")
    assert edits_of(repository) == []


def test_a_moved_file_is_deleted_and_added_and_one_that_is_no_program_any_more_changed(
    repository: GitRepository,
) -> None:
    repository.git("mv", "suites/golden/a.yaml", "suites/golden/z.yaml")
    (repository.path / "suites/golden/b.yaml").chmod(0o755)
    assert edits_of(repository) == [
        ("suites/golden/a.yaml", "deleted", "tasks and graders"),
        ("suites/golden/b.yaml", "changed", "tasks and graders"),
        ("suites/golden/z.yaml", "added", "tasks and graders"),
    ]


def test_a_file_that_git_has_forgotten_is_still_the_same_file(repository: GitRepository) -> None:
    repository.git("rm", "--quiet", "--cached", "gates.yaml")
    repository.write("gates.yaml", "y")
    assert edits_of(repository) == [("gates.yaml", "changed", "policy")]


def test_names_of_any_kind(repository: GitRepository) -> None:
    repository.write("suites/golden/naïve *?[x] \n\t.yaml")
    (repository.path / "suites/golden").joinpath("bad\udcff.yaml").write_text("")
    assert edits_of(repository) == [
        ("suites/golden/bad�.yaml", "added", "tasks and graders"),
        ("suites/golden/naïve *?[x] \n\t.yaml", "added", "tasks and graders"),
    ]


def test_a_name_with_a_pattern_in_it_is_that_name(repository: GitRepository) -> None:
    repository.write("suites/golden/a.yaml", "y")
    assert edits_of(repository, {"suit*": "tasks and graders"}) == []
    assert edits_of(repository, {}) == []


def test_the_innermost_place_says_what_a_file_is(repository: GitRepository) -> None:
    repository.write("suites/gates.yaml", "y")
    repository.write("agent.py", "y")
    assert edits_of(repository, {".": "tasks and graders", "suites/gates.yaml": "policy"}) == [
        ("agent.py", "changed", "tasks and graders"),
        ("suites/gates.yaml", "added", "policy"),
    ]


def test_the_repositorys_own_settings_run_nothing_and_hide_nothing(repository: GitRepository, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    script = tmp_path / "script.sh"
    script.write_text(f"#!/bin/sh\ntouch {mark}\n")
    script.chmod(0o755)
    for setting in ("core.fsmonitor", "diff.external", "diff.x.command", "diff.x.textconv"):
        repository.git("config", setting, str(script))
    repository.git("config", "diff.renames", "copies")
    repository.write(".gitattributes", "* diff=x\n")
    repository.write("gates.yaml", "y")
    assert edits_of(repository) == [("gates.yaml", "changed", "policy")]
    assert not mark.exists()


def test_where_git_cannot_compare_the_run_is_refused(repository: GitRepository) -> None:
    """Else it would pass for a change without edits."""
    with pytest.raises(UsageError, match="git cannot list what this change edits of the files that judge it: fatal"):
        find_edits(Checkout(repository.path), "0" * 40, JUDGING)
