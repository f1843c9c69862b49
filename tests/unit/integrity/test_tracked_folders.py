"""What a repository brings of a folder that only passgate may write, however it gets there."""

from pathlib import Path

import pytest

from passgate.tasks.errors import UsageError
from passgate.tasks.integrity.checkout import Checkout
from passgate.tasks.integrity.tracked_folders import find_tracked, open_history, refuse_tracked
from tests.repositories import GitRepository
from tests.unit.changes import change

HISTORY = Path(".passgate/history")
FILE = "trials/suite=golden/day=2026-01-31/run.parquet"


@pytest.fixture
def repository(tmp_path: Path) -> GitRepository:
    made = GitRepository(tmp_path / "repository")
    made.write("agent.py")
    made.commit()
    return made


def refusal(repository: GitRepository, place: Path | str = HISTORY, checkout: Path | None = None) -> str:
    with pytest.raises(UsageError) as refused:
        refuse_tracked("the history", Path(place), Checkout(checkout or repository.path))
    return str(refused.value)


def is_free(repository: GitRepository, place: Path = HISTORY) -> bool:
    """Whether git tracks nothing of the folder."""
    return find_tracked(place, Checkout(repository.path)) is None


def test_what_git_does_not_track_is_fine(repository: GitRepository, tmp_path: Path) -> None:
    assert is_free(repository)
    assert is_free(repository, Path("/nowhere/at/all"))
    repository.write(f"{HISTORY}/{FILE}")
    assert is_free(repository)
    repository.commit()
    repository.git("rm", "-r", "--quiet", "--cached", str(HISTORY))
    assert is_free(repository), "the remedy is one"
    (tmp_path / HISTORY).mkdir(parents=True)
    assert find_tracked(HISTORY, Checkout(tmp_path)) is None


@pytest.mark.parametrize("place", [HISTORY, "elsewhere/deep", "./elsewhere/../elsewhere"])
def test_a_file_that_git_tracks_is_refused_with_the_remedy(repository: GitRepository, place: Path | str) -> None:
    file = repository.write(f"{place}/{FILE}")
    repository.commit()
    name = file.resolve().relative_to(repository.path)
    folder = (repository.path / place).resolve().relative_to(repository.path)
    assert refusal(repository, place) == (
        f"the history must not be in git, but git tracks {name}, so a change could bring its own results: take it out "
        f"of git with `git rm -r --cached {folder}`, a line in .gitignore and a commit"
    )


def test_a_file_that_is_staged_and_ignored_is_refused(repository: GitRepository) -> None:
    change(repository, {".gitignore": ".passgate\n", f"{HISTORY}/{FILE}": "x"})
    repository.git("add", "--force", str(HISTORY))
    assert f"git tracks {HISTORY}/{FILE}" in refusal(repository)


@pytest.mark.parametrize(
    ("link", "target", "said"),
    [
        (".passgate", "evil", "git tracks "),
        (HISTORY, "../evil/history", "git tracks "),
        (".passgate", "{outside}", "git tracks the link .passgate"),
        (f"{HISTORY}/trials", "{outside}", f"git tracks the link {HISTORY}/trials,"),
        (f"{HISTORY}/trials/suite=golden", "{outside}", f"git tracks the link {HISTORY}/trials/suite=golden,"),
        (f"{HISTORY}/{FILE}", "{outside}", f"git tracks the link {HISTORY}/{FILE},"),
    ],
)
def test_a_link_that_git_tracks_is_refused(
    repository: GitRepository, tmp_path: Path, link: Path | str, target: str, said: str
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    change(repository, {f"evil/history/{FILE}": "x", str(link): Path(target.format(outside=outside))})
    repository.commit()
    assert said in refusal(repository)


def test_a_link_of_the_machine_s_own_is_fine_until_it_leads_to_what_git_tracks(
    repository: GitRepository, tmp_path: Path
) -> None:
    (tmp_path / "cache/history").mkdir(parents=True)
    repository.write(".gitignore", ".passgate\n")
    repository.commit()
    (repository.path / ".passgate").symlink_to(tmp_path / "cache")
    assert is_free(repository)
    repository.write(f"evil/{FILE}")
    repository.commit()
    (tmp_path / "cache/history/trials").symlink_to(repository.path / "evil/trials")
    assert f"git tracks evil/{FILE}" in refusal(repository)


@pytest.mark.parametrize("place", [".passgate", ".passgate/history", ".passgate/history/trials"])
def test_a_submodule_is_refused(repository: GitRepository, tmp_path: Path, place: str) -> None:
    other = GitRepository(tmp_path / "other")
    change(other, dict.fromkeys((FILE, f"history/{FILE}", "x"), "x"))
    other.commit()
    repository.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other.path), place)
    repository.commit()
    assert f"the submodule {place}" in refusal(repository) or f"git tracks {place}" in refusal(repository)


def test_a_repository_of_its_own_in_the_folder_is_the_user_s(repository: GitRepository) -> None:
    """As a job has it that keeps the history on a branch of its own."""
    repository.write(".gitignore", ".passgate\n")
    own = GitRepository(repository.path / HISTORY)
    own.write(FILE)
    own.commit()
    assert is_free(repository)


def test_the_repository_around_the_one_that_is_worked_in_counts(repository: GitRepository) -> None:
    inner = GitRepository(repository.path / "inner")
    inner.commit()
    repository.write(f"{HISTORY}/{FILE}")
    repository.git("add", str(HISTORY))
    assert "git tracks ../.passgate" in refusal(repository, repository.path / HISTORY, inner.path)


def test_names_are_told_from_the_folder_that_is_worked_in(repository: GitRepository) -> None:
    repository.write(f"service one/{HISTORY}/{FILE}")
    repository.commit()
    said = refusal(repository, checkout=repository.path / "service one")
    assert f"git tracks {HISTORY}/{FILE}," in said
    assert f"`git rm -r --cached {HISTORY}`" in said
    assert "'service one/.passgate/history'" in refusal(repository, f"service one/{HISTORY}")


def test_another_spelling_is_another_folder_where_the_file_system_says_so(repository: GitRepository) -> None:
    repository.write(f".PASSGATE/history/{FILE}")
    repository.commit()
    if (repository.path / HISTORY).exists():
        assert "git tracks .PASSGATE/history" in refusal(repository)
    else:
        assert is_free(repository)


def test_a_folder_with_other_things_in_it_is_not_to_be_taken_out(repository: GitRepository) -> None:
    change(repository, {"agent.py": None, "deep/agent.py": "x"})
    repository.commit()
    said = refusal(repository, ".")
    assert "git rm" not in said
    assert said.endswith("the history needs a folder of its own")


def test_names_that_are_no_text_are_shown(repository: GitRepository) -> None:
    repository.write(f"{HISTORY}/" + b"\xff.parquet".decode("utf-8", "surrogateescape"))
    repository.commit()
    assert "\ufffd.parquet" in refusal(repository)


def test_git_that_cannot_tell_is_refused(repository: GitRepository) -> None:
    repository.write(f"{HISTORY}/{FILE}")
    repository.commit()
    (repository.path / ".git/index").write_bytes(b"broken")
    assert refusal(repository).startswith("git cannot tell whether the history is in the repository: ")


@pytest.mark.parametrize("form", ["{folder}", "file://{folder}", "simplecache::file://{folder}"])
def test_a_history_that_git_tracks_is_refused_by_whatever_name(repository: GitRepository, form: str) -> None:
    folder = repository.path / "kept"
    repository.write(f"kept/{FILE}")
    location = form.format(folder=folder)
    assert open_history(location, Checkout(repository.path)).folder == folder
    repository.commit()
    with pytest.raises(UsageError, match=r"must not be in git, but git tracks kept/.*`git rm -r --cached kept`"):
        open_history(location, Checkout(repository.path))


def test_a_history_elsewhere_lies_in_no_repository(repository: GitRepository) -> None:
    assert open_history("memory://kept", Checkout(repository.path)).folder is None
