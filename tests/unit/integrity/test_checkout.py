"""Which state of a repository is run, asked of real repositories."""

from pathlib import Path

import pytest

from passgate.tasks.integrity.checkout import BRANCH_VARIABLES, Checkout
from passgate.tasks.integrity.git import user_name
from passgate.tasks.model.run import Revision
from tests.repositories import GitRepository


@pytest.fixture(autouse=True)
def _no_ci_and_no_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As for a user whom git has not met."""
    for name in BRANCH_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "none"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


@pytest.fixture
def repository(tmp_path: Path) -> GitRepository:
    made = GitRepository(tmp_path)
    made.write("file")
    made.write("deep/file")
    made.commit()
    made.branch("feature/login")
    return made


def revision(repository: GitRepository, folder: str = ".") -> Revision:
    return Checkout(repository.path / folder).revision


def test_the_commit_the_branch_and_the_folder(repository: GitRepository) -> None:
    plain = {"commit": repository.git("rev-parse", "HEAD"), "branch": "feature/login"}
    assert revision(repository) == Revision(**plain, dirty=False)
    assert revision(repository, "deep") == Revision(**plain, folder="deep")


def test_the_folder_says_which_repository_and_not_the_hook_that_has_started_passgate(
    repository: GitRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = revision(repository)
    for name in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE", "GIT_OBJECT_DIRECTORY", "GIT_NAMESPACE", "GIT_PREFIX"):
        monkeypatch.setenv(name, str(tmp_path / "nowhere"))
    assert revision(repository) == plain


def test_a_changed_file_is_dirt_and_a_new_one_is_not(repository: GitRepository) -> None:
    repository.write("new")
    assert revision(repository).dirty is False
    repository.write("file", "2")
    assert revision(repository).dirty is True
    repository.git("checkout", "--quiet", "--force", "--detach")
    assert revision(repository) == Revision(commit=repository.git("rev-parse", "HEAD")), "without a branch"


@pytest.mark.parametrize("variable", BRANCH_VARIABLES)
def test_the_branch_of_a_detached_head_is_what_ci_says(
    repository: GitRepository, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "feature")
    assert revision(repository).branch == "feature/login", "what is checked out goes before it"
    repository.checkout("--detach")
    assert revision(repository).branch == "feature"


def test_the_head_of_a_pull_request_goes_before_its_merge(
    repository: GitRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.checkout("--detach")
    monkeypatch.setenv("GITHUB_REF_NAME", "7/merge")
    for head, branch in (("", "7/merge"), ("feature", "feature")):
        monkeypatch.setenv("GITHUB_HEAD_REF", head)
        assert revision(repository).branch == branch


def test_without_a_repository_a_commit_or_git_there_is_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_HEAD_REF", "feature")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert Checkout(tmp_path).revision == Revision()
    repository = GitRepository(tmp_path)
    assert revision(repository) == Revision()
    repository.commit()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert revision(repository) == Revision()


@pytest.mark.parametrize(("value", "is_ci"), [("true", True), ("1", True), ("", False), ("false", False), ("0", False)])
def test_ci_is_what_says_so(tmp_path: Path, value: str, is_ci: bool) -> None:
    assert Checkout(tmp_path, {"CI": value}).is_ci is is_ci


@pytest.mark.parametrize("error", [KeyError("uid"), OSError("no user")])
def test_the_user_s_name_is_the_one_that_git_knows_else_that_of_the_login_else_empty(
    repository: GitRepository, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def unknown() -> str:
        raise error

    monkeypatch.setattr("getpass.getuser", unknown)
    assert user_name(repository.path) == ""
    monkeypatch.setattr("getpass.getuser", lambda: "zoe")
    assert user_name(repository.path) == "zoe"
    repository.git("config", "user.name", "Zoë")
    assert user_name(repository.path / "deep") == "Zoë"
