"""When the base of a change leaves a doubt about who judges it, asked of real repositories."""

from pathlib import Path

import pytest

from passgate.tasks.integrity.git import TARGET_VARIABLES, Checkout
from passgate.tasks.integrity.merge_base import find_base
from passgate.tasks.model.run import Base
from tests.repositories import GitRepository


def base_of(repository: GitRepository, **environment: str) -> Base:
    return find_base(Checkout(repository.path, environment), "main", None)


@pytest.fixture
def remote(tmp_path: Path) -> GitRepository:
    """Three commits on main, and one more on `change`, which has left main at its second."""
    made = GitRepository(tmp_path / "remote")
    for name in ("One", "Two", "Three"):
        made.commit(name)
    made.git("checkout", "--quiet", "-b", "change", "main~1")
    made.commit("Mine")
    made.checkout("main")
    return made


def cloned(remote: GitRepository, *options: str, branch: str = "change") -> GitRepository:
    folder = remote.path.parent / "clone"
    remote.git("clone", "--quiet", "--branch", branch, *options, remote.path.as_uri(), str(folder))
    return GitRepository(folder)


def test_a_whole_clone_leaves_none(remote: GitRepository) -> None:
    clone = cloned(remote)
    base = base_of(clone)
    assert (base.doubt, base.tip) == ("", remote.git("rev-parse", "main"))


def test_a_clone_of_one_branch_has_nobody_to_judge(remote: GitRepository) -> None:
    base = base_of(cloned(remote, "--single-branch"), GITHUB_BASE_REF="main")
    assert base.judging == ""
    assert base.doubt.startswith("the branch 'main', the target of this change, is missing here; fetch the history")


def test_a_shallow_clone_is_judged_by_the_tip_and_leaves_a_doubt(remote: GitRepository) -> None:
    base = base_of(cloned(remote, "--depth", "1", "--no-single-branch"))
    assert (base.commit, base.judging) == ("", remote.git("rev-parse", "main"))
    assert base.doubt == base.note
    assert "the clone is shallow; fetch the history" in base.doubt


def test_a_shallow_clone_of_the_branch_itself_leaves_none(remote: GitRepository) -> None:
    assert base_of(cloned(remote, "--depth", "1", branch="main")).doubt == ""


def test_a_local_branch_says_nothing_where_the_remotes_is_missing(remote: GitRepository) -> None:
    """A checkout into a local `main` of what a fork calls main."""
    clone = cloned(remote, "--single-branch")
    clone.git("branch", "--move", "change", "main")
    base = base_of(clone)
    assert base.doubt.endswith("`git fetch origin +refs/heads/main:refs/remotes/origin/main`")
    clone.git("fetch", "--quiet", "origin", "+refs/heads/main:refs/remotes/origin/main")
    assert base_of(clone).doubt == ""


def test_without_a_remote_only_the_branch_itself_leaves_none(remote: GitRepository) -> None:
    assert base_of(remote).doubt == ""
    remote.checkout("change")
    base = base_of(remote)
    assert base.doubt.startswith("only a local branch 'main' says what judges")
    assert base.judging == remote.git("rev-parse", "main")
    remote.checkout("main")
    assert "only a local branch" in base_of(remote, GITHUB_BASE_REF="main").doubt, "it is a change: the job says so"


def test_a_clone_that_has_lost_its_remote_and_its_branch_is_all_there_is(remote: GitRepository) -> None:
    clone = cloned(remote, "--single-branch")
    clone.git("remote", "remove", "origin")
    assert (base_of(clone).judging, base_of(clone).doubt) == ("", "")
    clone.git("checkout", "--quiet", "--detach")
    assert base_of(clone).doubt == ""
    assert "is missing here" in base_of(clone, GITHUB_BASE_REF="main").doubt
    clone.commit("One more")
    assert "there is no branch 'main' here" in base_of(clone).doubt


def test_an_orphan_branch_is_judged_by_the_tip_and_leaves_a_doubt(remote: GitRepository) -> None:
    clone = cloned(remote)
    clone.git("checkout", "--quiet", "--orphan", "new")
    clone.commit("Alone")
    base = base_of(clone)
    assert base.judging == remote.git("rev-parse", "main")
    assert base.doubt.endswith("HEAD and the branch 'main' have no commit in common")


def test_a_branch_that_only_the_change_names_leaves_a_doubt(remote: GitRepository) -> None:
    clone = cloned(remote)
    base = find_base(Checkout(clone.path, {}), "change", None, lambda _: None)
    assert base.doubt.startswith("only this change's own gates file says that it goes into 'change'")


def test_a_repository_that_git_refuses_leaves_a_doubt(remote: GitRepository) -> None:
    (remote.path / ".git/config").write_text("[broken\n")
    assert "bad config" in base_of(remote).doubt


def test_a_commit_that_is_given_leaves_none(remote: GitRepository) -> None:
    clone = cloned(remote, "--depth", "1", "--no-single-branch")
    assert find_base(Checkout(clone.path, {"CI": "1"}), "main", "origin/main").doubt == ""


def test_the_commit_that_gitlab_names_goes_before_the_branch(remote: GitRepository) -> None:
    clone = cloned(remote)
    clone.git("update-ref", "refs/remotes/origin/main", "change~1")  # as the workspace of an earlier job has it
    tip = remote.git("rev-parse", "main")
    told = {"CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main", "CI_MERGE_REQUEST_TARGET_BRANCH_SHA": tip}
    assert base_of(clone, **told).tip == tip
    clone.git("update-ref", "-d", "refs/remotes/origin/main")
    assert (base_of(clone, **told).tip, base_of(clone, **told).doubt) == (tip, "")
    assert base_of(clone, **{**told, "CI_MERGE_REQUEST_TARGET_BRANCH_SHA": "main"}).doubt != ""


@pytest.mark.parametrize("variable", TARGET_VARIABLES)
def test_each_ci_system_says_where_a_change_goes(remote: GitRepository, variable: str) -> None:
    clone = cloned(remote)
    remote.git("branch", "release", "main~1")
    clone.git("fetch", "--quiet", "origin")
    assert base_of(clone, **{variable: "release"}).judging == remote.git("rev-parse", "release")


@pytest.mark.parametrize(("value", "is_ci"), [("true", True), ("1", True), ("", False), ("false", False), ("0", False)])
def test_ci_is_what_says_so(tmp_path: Path, value: str, is_ci: bool) -> None:
    assert Checkout(tmp_path, {"CI": value}).is_ci is is_ci
