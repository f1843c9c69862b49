"""Which state of a repository is run, asked of real repositories."""

import subprocess
from pathlib import Path

import pytest

from passgate.tasks.integrity.git import Checkout, user_name
from passgate.tasks.model.run import Revision

VARIABLES = ("GITHUB_HEAD_REF", "GITHUB_REF_NAME", "CI_COMMIT_REF_NAME", "BUILDKITE_BRANCH", "BRANCH_NAME")


def git(folder: Path, *arguments: str) -> str:
    settings = ("-c", "user.name=Test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false")
    result = subprocess.run(["git", *settings, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return result.stdout.strip()


@pytest.fixture(autouse=True)
def _no_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "--quiet", "--initial-branch", "trunk")
    (tmp_path / "file").write_text("1")
    (tmp_path / "deep").mkdir()
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message", "One")
    return tmp_path


def test_the_commit_and_the_branch(repository: Path) -> None:
    commit = git(repository, "rev-parse", "HEAD")
    assert Checkout(repository).revision == Revision(commit=commit, branch="trunk", dirty=False)
    assert Checkout(repository / "deep").revision == Revision(commit=commit, branch="trunk", folder="deep")


def test_a_branch_with_a_slash(repository: Path) -> None:
    git(repository, "checkout", "--quiet", "-b", "feature/login")
    assert Checkout(repository).revision.branch == "feature/login"


def test_a_changed_file_is_dirt_and_a_new_one_is_not(repository: Path) -> None:
    (repository / "new").write_text("")
    assert Checkout(repository).revision.dirty is False
    (repository / "file").write_text("2")
    assert Checkout(repository).revision.dirty is True


def test_a_detached_head_has_no_branch(repository: Path) -> None:
    git(repository, "checkout", "--quiet", "--detach")
    assert Checkout(repository).revision == Revision(commit=git(repository, "rev-parse", "HEAD"))


@pytest.mark.parametrize("variable", VARIABLES)
def test_the_branch_of_a_detached_head_is_what_ci_says(
    repository: Path, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(repository, "checkout", "--quiet", "--detach")
    monkeypatch.setenv(variable, "feature")
    assert Checkout(repository).revision.branch == "feature"


def test_the_head_of_a_pull_request_goes_before_its_merge(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git(repository, "checkout", "--quiet", "--detach")
    monkeypatch.setenv("GITHUB_REF_NAME", "7/merge")
    monkeypatch.setenv("GITHUB_HEAD_REF", "")
    assert Checkout(repository).revision.branch == "7/merge"
    monkeypatch.setenv("GITHUB_HEAD_REF", "feature")
    assert Checkout(repository).revision.branch == "feature"


def test_the_branch_that_is_checked_out_goes_before_what_ci_says(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_HEAD_REF", "feature")
    assert Checkout(repository).revision.branch == "trunk"


def test_outside_a_repository_there_is_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_HEAD_REF", "feature")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert Checkout(tmp_path).revision == Revision()


def test_a_repository_without_a_commit_is_nothing(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    assert Checkout(tmp_path).revision == Revision()


def test_without_git_there_is_nothing(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(repository))
    assert Checkout(repository).revision == Revision()


class TestUserName:
    @pytest.fixture(autouse=True)
    def _no_settings(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """As for a user whom git has not met."""
        monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "none"))
        monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")

    def test_it_is_the_one_that_git_knows(self, repository: Path) -> None:
        git(repository, "config", "user.name", "Zoë")
        assert user_name(repository / "deep") == "Zoë"

    def test_else_it_is_that_of_the_login(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("getpass.getuser", lambda: "zoe")
        assert user_name(tmp_path) == "zoe"

    @pytest.mark.parametrize("error", [KeyError("uid"), OSError("no user")])
    def test_where_nobody_knows_it_is_empty(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
    ) -> None:
        def unknown() -> str:
            raise error

        monkeypatch.setattr("getpass.getuser", unknown)
        assert user_name(tmp_path) == ""
