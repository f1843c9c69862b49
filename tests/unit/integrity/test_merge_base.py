"""Where a change has left the baseline branch, asked of real repositories."""

import subprocess
from pathlib import Path

import pytest

from passgate.tasks.errors import UsageError
from passgate.tasks.integrity.git import Checkout
from passgate.tasks.integrity.merge_base import MOST_ANCESTORS, ancestors_of, find_base
from passgate.tasks.model.run import Base
from tests.repositories import GitRepository


def base_of(repository: GitRepository, branch: str = "main", given: str | None = None, **environment: str) -> Base:
    return find_base(Checkout(repository.path, environment), branch, given)


@pytest.fixture
def repository(tmp_path: Path) -> GitRepository:
    """Two commits on main, and one more on the branch `change`, which is checked out."""
    made = GitRepository(tmp_path / "repository")
    for name in ("One", "Two"):
        made.commit(name)
    made.branch("change")
    made.commit("Three")
    return made


def test_the_base_is_where_the_change_has_left_the_branch(repository: GitRepository) -> None:
    two, one = repository.git("rev-list", "main").split()
    repository.checkout("main")
    repository.commit("Later on main")
    repository.checkout("change")
    tip = repository.git("rev-parse", "main")
    base = base_of(repository)
    assert (base.commit, base.ancestors, base.tip, base.judging) == (two, (two, one), tip, tip)


def test_a_change_that_left_the_branch_at_its_tip_is_judged_by_the_merge_base(repository: GitRepository) -> None:
    base = base_of(repository)
    assert (base.tip, base.judging) == ("", repository.git("rev-parse", "main"))


def test_an_old_commit_of_the_branch_is_no_change(repository: GitRepository) -> None:
    repository.git("checkout", "--quiet", "main~1")
    assert base_of(repository) == Base(
        commit=repository.git("rev-parse", "HEAD"), ancestors=base_of(repository).ancestors
    )


def test_on_the_branch_itself_the_base_is_head(repository: GitRepository) -> None:
    repository.checkout("main")
    assert base_of(repository).commit == repository.git("rev-parse", "main")


def test_a_detached_head_has_a_base_too(repository: GitRepository) -> None:
    repository.git("checkout", "--quiet", "--detach")
    assert base_of(repository).commit == repository.git("rev-parse", "main")


def test_what_the_remote_has_goes_before_the_branch_here(repository: GitRepository, tmp_path: Path) -> None:
    """A commit on the local main that nobody has reviewed judges nothing."""
    upstream = repository.git("rev-parse", "main")
    repository.git("clone", "--quiet", str(repository.path), str(tmp_path / "clone"))
    clone = GitRepository(tmp_path / "clone")
    clone.git("checkout", "--quiet", "-b", "main", "origin/main")
    clone.commit("Not pushed")
    assert base_of(clone).commit == upstream


def test_ancestors_are_the_first_parents_only(repository: GitRepository) -> None:
    repository.checkout("main")
    repository.git("merge", "--quiet", "--no-ff", "--message", "Merge", "change")
    three = repository.git("rev-parse", "change")
    base = base_of(repository)
    assert base.ancestors[0] == base.commit
    assert len(base.ancestors) == 3
    assert three not in base.ancestors
    assert ancestors_of(repository.path, "change")[0] == three


def test_ancestors_are_at_most_a_thousand(tmp_path: Path) -> None:
    repository = GitRepository(tmp_path)
    stream = "".join(
        f"commit refs/heads/main\ncommitter A <a@b> {number} +0000\ndata 1\nx\n" for number in range(MOST_ANCESTORS + 1)
    )
    subprocess.run(["git", "fast-import", "--quiet"], cwd=tmp_path, input=stream, text=True, check=True)
    base = base_of(repository)
    assert (len(base.ancestors), base.ancestors[0], base.note) == (1000, repository.git("rev-parse", "main"), "")


@pytest.mark.parametrize("name", ["main~1", "v1", "HEAD~2"])
def test_a_given_revision_is_the_base(repository: GitRepository, name: str) -> None:
    repository.git("tag", "v1", "main~1")
    wanted = repository.git("rev-parse", "main~1")
    assert base_of(repository, given=name) == Base(commit=wanted, ancestors=(wanted,))


@pytest.mark.parametrize("name", ["gone", "", "--all", "main:file", "main..change"])
def test_a_given_revision_that_is_no_commit_is_refused(repository: GitRepository, name: str) -> None:
    with pytest.raises(UsageError, match=r"has no such commit; .*fetch-depth: 0"):
        base_of(repository, given=name)


def test_a_revision_given_outside_of_a_repository_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(UsageError, match=r"--base main: the repository of .* has no such commit"):
        find_base(Checkout(tmp_path, {}), "main", "main")


@pytest.mark.parametrize("variable", ["GITHUB_BASE_REF", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME"])
def test_the_branch_that_ci_names_decides_alone(repository: GitRepository, variable: str) -> None:
    true_base = repository.git("rev-parse", "main")
    repository.git("branch", "old", "main~1")
    for branch in ("change", "old", "nowhere", "main~1"):
        assert base_of(repository, branch=branch, **{variable: "main"}).commit == true_base
    assert base_of(repository, **{variable: "old"}).commit == repository.git("rev-parse", "old")


def test_without_the_branch_that_ci_names_the_default_branch_decides(repository: GitRepository) -> None:
    base = base_of(repository, branch="change", GITHUB_BASE_REF="not-fetched")
    assert base.commit == repository.git("rev-parse", "main")
    assert base.note.startswith("the branch 'not-fetched', the target of this change, is missing here; fetch")
    repository.git("branch", "--move", "main", "trunk")
    base = base_of(repository, branch="change", GITHUB_BASE_REF="not-fetched")
    assert (base.commit, base.note[:70]) == (
        "",
        "the merge base is unknown: there is no branch 'not-fetched' here; fetc",
    )


@pytest.mark.parametrize("branch", ["change", "old", "nowhere", "main~1", "main^{/One}", "HEAD", "heads/change"])
def test_a_change_cannot_name_another_branch_than_the_default_one(repository: GitRepository, branch: str) -> None:
    repository.git("branch", "old", "main~1")
    base = base_of(repository, branch=branch)
    assert (base.commit, base.note) == (repository.git("rev-parse", "main"), "")


def test_the_default_branch_is_that_of_the_remote(repository: GitRepository, tmp_path: Path) -> None:
    repository.git("branch", "main-of-old", "main~1")
    repository.git("branch", "--move", "main", "trunk")
    repository.git("branch", "--move", "main-of-old", "main")
    repository.checkout("trunk")
    repository.git("clone", "--quiet", str(repository.path), str(tmp_path / "clone"))
    clone = GitRepository(tmp_path / "clone")
    asked: list[str] = []
    find_base(Checkout(clone.path, {}), "main", None, asked.append)
    clone.git("remote", "set-head", "origin", "--delete")
    find_base(Checkout(clone.path, {}), "main", None, asked.append)
    assert asked == [repository.git("rev-parse", name) for name in ("trunk", "main")]


def test_what_the_default_branch_names_decides_where_it_is_here(repository: GitRepository) -> None:
    asked: list[str] = []

    def develop(commit: str) -> str:
        asked.append(commit)
        return "develop"

    main = repository.git("rev-parse", "main")
    base = find_base(Checkout(repository.path, {}), "change", None, develop)
    assert base.commit == main
    assert base.note.startswith("the branch 'develop', which the gates file of 'main' names, is missing here; fetch")
    repository.git("branch", "develop", "change")
    base = find_base(Checkout(repository.path, {}), "main", None, develop)
    assert (base.commit, base.note) == (repository.git("rev-parse", "develop"), "")
    assert asked == [main, main]


def test_what_only_the_change_names_is_told(repository: GitRepository) -> None:
    told = "only this change's own gates file says that it goes into 'change': `git remote set-head origin --auto`"
    base = find_base(Checkout(repository.path, {}), "change", None, lambda _: None)
    assert base.commit == repository.git("rev-parse", "change")
    assert base.note.startswith(told)
    assert find_base(Checkout(repository.path, {}), "gone", None, lambda _: None).note == ""
    repository.git("branch", "--move", "main", "trunk")
    assert base_of(repository, branch="change").note.startswith(told)
    assert base_of(repository, branch="trunk~1").commit == ""


def test_outside_a_repository_there_is_nothing_to_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert find_base(Checkout(tmp_path, {}), "main", None) == Base()


def test_a_repository_without_a_commit_says_so(tmp_path: Path) -> None:
    base = base_of(GitRepository(tmp_path))
    assert base == Base(note="the merge base is unknown: the repository has no commit yet")


def test_a_repository_that_git_refuses_says_why(repository: GitRepository) -> None:
    (repository.path / ".git/config").write_text("[broken\n")
    base = base_of(repository)
    assert base.commit == ""
    assert "bad config" in base.note


def test_without_the_branch_the_note_says_what_to_do(repository: GitRepository) -> None:
    repository.git("branch", "--move", "main", "other")
    base = base_of(repository, branch="trunk")
    assert base.commit == ""
    assert base.note == (
        "the merge base is unknown: there is no branch 'trunk' here; fetch the history, as actions/checkout does "
        "with `fetch-depth: 0`, or name the commit with --base"
    )


def test_branches_without_a_common_commit_have_no_base(repository: GitRepository) -> None:
    repository.git("checkout", "--quiet", "--orphan", "other")
    repository.commit("Alone")
    assert base_of(repository).note.endswith("HEAD and the branch 'main' have no commit in common")


def shallow(repository: GitRepository, folder: Path, branch: str) -> GitRepository:
    url = repository.path.as_uri()
    repository.git("clone", "--quiet", "--depth", "1", "--no-single-branch", "--branch", branch, url, str(folder))
    return GitRepository(folder)


def test_a_shallow_clone_without_the_merge_base_says_what_to_do(repository: GitRepository, tmp_path: Path) -> None:
    repository.checkout("main")
    repository.commit("Later on main")
    base = base_of(shallow(repository, tmp_path / "clone", "change"))
    assert base.commit == ""
    assert base.note == (
        "the merge base is unknown: the clone is shallow; fetch the history, as actions/checkout does with "
        "`fetch-depth: 0`"
    )


def test_a_shallow_clone_of_the_branch_has_a_base_and_says_what_is_missed(
    repository: GitRepository, tmp_path: Path
) -> None:
    repository.checkout("main")
    base = base_of(shallow(repository, tmp_path / "clone", "main"))
    assert base.ancestors == (base.commit,) == (repository.git("rev-parse", "main"),)
    assert "the baseline may miss earlier runs: fetch the history" in base.note


def test_without_git_there_is_no_base(repository: GitRepository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(repository.path))
    base = find_base(Checkout(repository.path, {}), "main", None)
    assert base.commit == ""
    assert "git cannot be run" in base.note
