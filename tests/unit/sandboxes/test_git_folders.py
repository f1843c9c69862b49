"""Where git keeps what a checkout shows."""

import shutil
from pathlib import Path

from tests.repositories import GitRepository

from passgate.tasks.sandboxes.workbench import git_folders, other_worktrees


def commit(repository: GitRepository) -> None:
    repository.git("commit", "-q", "--allow-empty", "-m", "Begin")


def test_a_plain_checkout_has_its_folder(tmp_path: Path) -> None:
    repository = GitRepository(tmp_path / "plain")
    assert git_folders(repository.path) == [repository.path / ".git", repository.path / ".git/objects"]
    assert git_folders(tmp_path) == []


def test_a_linked_worktree_has_that_of_its_repository_too(tmp_path: Path) -> None:
    repository = GitRepository(tmp_path / "main")
    commit(repository)
    repository.git("worktree", "add", "-q", "../linked")
    git = repository.path / ".git"
    assert git_folders(tmp_path / "linked") == [git / "worktrees/linked", git, git / "objects"]


def test_the_other_worktrees_of_a_repository_are_known_from_each(tmp_path: Path) -> None:
    main, linked, more = (tmp_path / name for name in ("main", "linked", "more"))
    repository = GitRepository(main)
    commit(repository)
    assert other_worktrees(main) == other_worktrees(tmp_path) == []
    for name in ("linked", "more", "gone"):
        repository.git("worktree", "add", "-q", f"../{name}")
    shutil.rmtree(tmp_path / "gone")
    assert set(other_worktrees(main)) == {linked, more}
    assert set(other_worktrees(linked)) == {main, more}


def test_objects_elsewhere_are_among_them(tmp_path: Path) -> None:
    repository = GitRepository(tmp_path / "main")
    commit(repository)
    repository.git("clone", "-q", "--shared", ".", "../borrows")
    repository.git(
        "clone", "-q", "--separate-git-dir", "../elsewhere.git", "--reference", "../borrows", ".", "../apart"
    )
    objects = repository.path / ".git/objects"
    assert git_folders(tmp_path / "borrows") == [
        tmp_path / "borrows/.git",
        tmp_path / "borrows/.git/objects",
        objects,
    ]
    assert git_folders(tmp_path / "apart")[:2] == [tmp_path / "elsewhere.git", tmp_path / "elsewhere.git/objects"]
    assert {tmp_path / "borrows/.git/objects", objects} <= set(git_folders(tmp_path / "apart"))


def test_what_is_no_repository_is_none(tmp_path: Path) -> None:
    for content in ("", "gitdir: gone", "gitdir", "\xff"):
        (tmp_path / ".git").write_text(content, encoding="latin-1")
        assert git_folders(tmp_path) == []
