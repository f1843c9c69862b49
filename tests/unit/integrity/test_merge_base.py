"""Where a change has left the baseline branch, asked of real repositories."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from passgate.tasks.errors import UsageError
from passgate.tasks.integrity.checkout import TARGET_VARIABLES, Checkout
from passgate.tasks.integrity.merge_base import MOST_ANCESTORS, find_base, first_parents, pinned_base
from passgate.tasks.model.baseline import Pins
from passgate.tasks.model.run import Base
from tests.repositories import GitRepository

TARGET = {"GITHUB_BASE_REF": "main"}
UNKNOWN = "the merge base is unknown: "
NOTHING_IN_COMMON = f"{UNKNOWN}HEAD and the branch 'main' have no commit in common"
COMMIT = "commit --quiet --allow-empty --message Alone"


def base_of(
    repository: GitRepository,
    branch: str = "main",
    given: str | None = None,
    branch_at: Callable[[str], str | None] = lambda _: "main",
    **environment: str,
) -> Base:
    return find_base(Checkout(repository.path, environment), branch, given, branch_at)


def git(repository: GitRepository, *lines: str) -> None:
    for line in lines:
        repository.git(*line.split())


@pytest.fixture
def repository(tmp_path: Path) -> GitRepository:
    """Two commits on main, and one more on the branch `change`, which is checked out."""
    made = GitRepository(tmp_path / "repository")
    for name in ("One", "Two"):
        made.commit(name)
    made.branch("change")
    made.commit("Three")
    return made


@pytest.fixture
def main(repository: GitRepository) -> str:
    """The commit of main."""
    return repository.git("rev-parse", "main")


@pytest.fixture
def remote(repository: GitRepository) -> GitRepository:
    """A commit more on main, which is checked out, after the change has left it."""
    repository.checkout("main")
    repository.commit("Later on main")
    return repository


def cloned(remote: GitRepository, *options: str, branch: str = "change") -> GitRepository:
    folder = remote.path.parent / "clone"
    remote.git("clone", "--quiet", "--branch", branch, *options, remote.path.as_uri(), str(folder))
    return GitRepository(folder)


def test_the_base_is_where_the_change_has_left_the_branch_whose_tip_judges(remote: GitRepository) -> None:
    tip, two, one = remote.git("rev-list", "main").split()
    remote.checkout("change")
    base = base_of(remote)
    assert (base.commit, base.ancestors, base.tip, base.judging) == (two, (two, one), tip, tip)


@pytest.mark.parametrize("place", ["change", "main", "--detach"])
def test_without_a_later_commit_of_the_branch_the_merge_base_judges(
    repository: GitRepository, main: str, place: str
) -> None:
    repository.checkout(place)
    base = base_of(repository)
    assert (base.commit, base.tip, base.judging) == (main, "", main)


def test_an_old_commit_of_the_branch_is_no_change(repository: GitRepository) -> None:
    repository.checkout("main~1")
    one = repository.git("rev-parse", "HEAD")
    assert base_of(repository) == Base(commit=one, ancestors=(one,))


def test_what_the_remote_has_goes_before_the_branch_here(repository: GitRepository, main: str) -> None:
    """A commit on the local main that nobody has reviewed judges nothing."""
    clone = cloned(repository)
    git(clone, "checkout --quiet -b main origin/main", COMMIT)
    assert base_of(clone).commit == main


def test_ancestors_are_the_first_parents_only(repository: GitRepository) -> None:
    git(repository, "checkout --quiet main", "merge --quiet --no-ff --message Merge change")
    three = repository.git("rev-parse", "change")
    base = base_of(repository)
    assert base.ancestors[0] == base.commit
    assert len(base.ancestors) == 3
    assert three not in base.ancestors
    assert first_parents(repository.path, "change")[0] == three


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


@pytest.mark.parametrize("variable", ["GITHUB_BASE_REF", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME"])
def test_the_branch_that_ci_names_decides_alone(repository: GitRepository, main: str, variable: str) -> None:
    repository.git("branch", "old", "main~1")
    for branch in ("change", "old", "nowhere", "main~1"):
        assert base_of(repository, branch=branch, **{variable: "main"}).commit == main
    assert base_of(repository, **{variable: "old"}).commit == repository.git("rev-parse", "old")


def test_without_the_branch_that_ci_names_the_default_branch_decides(repository: GitRepository, main: str) -> None:
    base = base_of(repository, branch="change", GITHUB_BASE_REF="not-fetched")
    assert base.commit == main
    assert base.note.startswith("the branch 'not-fetched', the target of this change, is missing here; fetch")
    repository.git("branch", "--move", "main", "other")
    base = base_of(repository, branch="change", GITHUB_BASE_REF="not-fetched")
    assert base.commit == ""
    assert base.note.startswith("the merge base is unknown: there is no branch 'not-fetched' here; fetch")


@pytest.mark.parametrize("branch", ["change", "old", "nowhere", "main~1", "main^{/One}", "HEAD", "heads/change"])
def test_a_change_cannot_name_another_branch_than_the_default_one(
    repository: GitRepository, main: str, branch: str
) -> None:
    repository.git("branch", "old", "main~1")
    repository.git("branch", "two\u2028lines")
    base = base_of(repository, branch=branch)
    assert (base.commit, base.note) == (main, "")


def test_the_default_branch_is_that_of_the_remote(repository: GitRepository) -> None:
    git(repository, "branch old main~1", "branch --move main trunk", "branch --move old main", "checkout --quiet trunk")
    clone = cloned(repository, branch="trunk")
    asked: list[str] = []
    base_of(clone, branch_at=asked.append)
    clone.git("remote", "set-head", "origin", "--delete")
    base_of(clone, branch_at=asked.append)
    assert asked == [repository.git("rev-parse", name) for name in ("trunk", "main")]


@pytest.mark.parametrize("name", ["master", "trunk"])
def test_a_default_branch_of_another_name_is_found(repository: GitRepository, name: str) -> None:
    repository.git("branch", "--move", "main", name)
    for made in (repository, cloned(repository)):
        base = base_of(made, branch_at=lambda _: name)
        assert (base.commit, base.note) == (repository.git("rev-parse", name), "")


def test_where_nobody_says_which_branch_is_the_default_one_there_is_a_doubt(
    repository: GitRepository, tmp_path: Path
) -> None:
    """Whoever may push branches could make one called main."""
    git(repository, "branch --move main master", "branch main change")
    clone = cloned(repository)
    clone.git("remote", "set-head", "origin", "--delete")
    assert base_of(clone).doubt.startswith(
        "passgate does not know which is the default branch, main or master: `git remote"
    )
    event = tmp_path / "event.json"
    event.write_text('{"repository": {"default_branch": "master"}, "merge_group": {}}')
    master = repository.git("rev-parse", "master")
    for told in ({"CI_DEFAULT_BRANCH": "master"}, {"GITHUB_EVENT_PATH": str(event)}):
        base = base_of(clone, branch_at=lambda _: "master", **told)
        assert (base.commit, base.doubt) == (master, "")
    event.write_text('{"merge_group": {"base_ref": "refs/heads/master"}}')
    assert base_of(clone, GITHUB_EVENT_PATH=str(event)).commit == master


def test_what_the_default_branch_names_decides_where_it_is_here(repository: GitRepository, main: str) -> None:
    asked: list[str] = []

    def develop(commit: str) -> str:
        asked.append(commit)
        return "develop"

    base = base_of(repository, "change", branch_at=develop)
    assert base.commit == main
    assert base.note.startswith("the branch 'develop', which the gates file of 'main' names, is missing here; fetch")
    repository.git("branch", "develop", "change")
    base = base_of(repository, branch_at=develop)
    assert (base.commit, base.note) == (repository.git("rev-parse", "develop"), "")
    assert asked == [main, main]


def test_what_only_the_change_names_is_told_and_leaves_a_doubt(repository: GitRepository) -> None:
    told = "only this change's own gates file says that it goes into 'change': `git remote set-head origin --auto`"
    base = base_of(repository, "change", branch_at=lambda _: None)
    assert base.commit == repository.git("rev-parse", "change")
    assert base.note == base.doubt
    assert base.note.startswith(told)
    assert base_of(repository, "gone", branch_at=lambda _: None).note == ""
    repository.git("branch", "--move", "main", "other")
    assert base_of(repository, branch="change").note.startswith(told)
    assert base_of(repository, branch="other~1").commit == ""


def test_outside_a_repository_there_is_nothing_to_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert find_base(Checkout(tmp_path, {}), "main", None) == Base()
    with pytest.raises(UsageError, match=r"--base main: the repository of .* has no such commit"):
        find_base(Checkout(tmp_path, {}), "main", "main")


def test_a_repository_without_a_commit_says_so(tmp_path: Path) -> None:
    base = base_of(GitRepository(tmp_path))
    assert base == Base(note="the merge base is unknown: the repository has no commit yet")


def test_a_repository_that_git_refuses_says_why_and_leaves_a_doubt(repository: GitRepository) -> None:
    (repository.path / ".git/config").write_text("[broken\n")
    base = base_of(repository)
    assert (base.commit, base.doubt) == ("", base.note)
    assert "bad config" in base.note


def test_without_git_there_is_no_base(repository: GitRepository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(repository.path))
    base = base_of(repository)
    assert base.commit == ""
    assert "git cannot be run" in base.note


def test_without_the_branch_the_note_says_what_to_do(repository: GitRepository) -> None:
    repository.git("branch", "--move", "main", "other")
    base = base_of(repository, branch="trunk")
    assert base.commit == ""
    assert base.note == (
        "the merge base is unknown: there is no branch 'trunk' here; fetch the history, as actions/checkout does "
        "with `fetch-depth: 0`, or name the commit with --base"
    )


def test_a_shallow_clone_of_the_branch_has_a_base_and_says_what_is_missed(remote: GitRepository) -> None:
    base = base_of(cloned(remote, "--depth", "1", branch="main"))
    assert base.ancestors == (base.commit,) == (remote.git("rev-parse", "main"),)
    assert "the baseline may miss earlier runs: fetch the history" in base.note


ONE, SHALLOW = "--single-branch", "--depth 1 --no-single-branch"
FORKED, FETCH = "branch --move change main", "fetch --quiet origin +refs/heads/main:refs/remotes/origin/main"
LOST, DETACH = "remote remove origin", "checkout --quiet --detach"
MISSING = "the branch 'main', the target of this change, is missing here; fetch the history"
LOCAL = "the remote's branch 'main' is missing here, and the local one may be of any commit: `git " + FETCH.replace(
    "--quiet ", ""
)


@pytest.mark.parametrize(
    ("options", "lines", "environment", "judging", "doubt"),
    [
        pytest.param("", [], {}, "main", "", id="whole"),
        pytest.param(ONE, [], TARGET, "", MISSING, id="one branch"),
        pytest.param(SHALLOW, [], {}, "main", f"{UNKNOWN}the clone is shallow; fetch the history, as", id="shallow"),
        pytest.param("--depth 1 --branch main", [], {}, "main", "", id="shallow, of the branch"),
        pytest.param("", ["checkout --quiet --orphan new", COMMIT], {}, "main", NOTHING_IN_COMMON, id="orphan"),
        pytest.param(ONE, [FORKED], {}, "change", LOCAL, id="local branch"),
        pytest.param(ONE, [FORKED, FETCH], {}, "main", "", id="fetched"),
        pytest.param(ONE, [LOST], {}, "", "", id="no remote"),
        pytest.param(ONE, [LOST, DETACH], {}, "", "", id="no remote, detached"),
        pytest.param(ONE, [LOST, DETACH], TARGET, "", MISSING, id="no remote, in CI"),
        pytest.param(
            ONE, [LOST, DETACH, COMMIT], {}, "", f"{UNKNOWN}there is no branch 'main' here", id="no remote, a commit"
        ),
    ],
)
def test_a_clone_leaves_a_doubt_where_it_may_not_have_the_branch_that_judges(
    remote: GitRepository, options: str, lines: list[str], environment: dict[str, str], judging: str, doubt: str
) -> None:
    """A checkout into a local `main` of what a fork calls main, for one."""
    clone = cloned(remote, *options.split())
    git(clone, *lines)
    base = base_of(clone, **environment)
    assert base.judging == (judging and remote.git("rev-parse", judging))
    assert base.doubt.startswith(doubt) if doubt else base.doubt == ""


def test_without_a_remote_only_the_branch_itself_leaves_no_doubt(remote: GitRepository) -> None:
    assert base_of(remote).doubt == ""
    assert "only a local branch" in base_of(remote, **TARGET).doubt, "it is a change: the job says so"
    remote.checkout("change")
    base = base_of(remote)
    assert base.doubt.startswith("only a local branch 'main' says what judges")
    assert base.judging == remote.git("rev-parse", "main")


def test_a_commit_that_is_given_leaves_no_doubt(remote: GitRepository) -> None:
    clone = cloned(remote, "--depth", "1", "--no-single-branch")
    assert base_of(clone, given="origin/main", CI="1").doubt == ""


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


PINNED = Base(commit="b" * 40, ancestors=("b" * 40,), note="a note")


@pytest.mark.parametrize("pins", [None, Pins(runs=("20260101",), reason="why")])
def test_without_a_pinned_commit_the_base_stays_as_it_is(repository: GitRepository, pins: Pins | None) -> None:
    assert pinned_base(PINNED, pins, repository.path) is PINNED


@pytest.mark.parametrize("name", ["hash", "short", "tag"])
def test_a_pinned_commit_brings_its_ancestors_and_the_commit_that_judges_stays(
    repository: GitRepository, name: str
) -> None:
    two, one = repository.git("rev-list", "main").split()
    repository.git("tag", "good", two)
    pins = Pins(commit={"hash": two, "short": two[:10], "tag": "good"}[name], reason="why")
    assert pinned_base(PINNED, pins, repository.path) == PINNED.model_copy(update={"ancestors": (two, one)})


@pytest.mark.parametrize("commit", ["f" * 40, "--all", "nowhere"])
def test_a_pinned_commit_that_is_not_known_is_told(repository: GitRepository, commit: str) -> None:
    base = pinned_base(PINNED, Pins(commit=commit, reason="why"), repository.path)
    assert (base.commit, base.ancestors) == (PINNED.commit, ())
    assert base.note.startswith(f"the pinned commit {commit} is not known here")
    assert "fetch" in base.note
