"""The files of a commit in a folder, as they were committed."""

import os
from pathlib import Path

import pytest

from passgate.tasks.errors import UsageError
from passgate.tasks.integrity import base_checkout
from passgate.tasks.integrity.base_checkout import add_uncommitted, committed_files, write_files
from passgate.tasks.integrity.checkout import Checkout
from passgate.tasks.integrity.git import Objects
from passgate.tasks.integrity.judging_places import JudgingPlaces
from tests.repositories import GitRepository
from tests.unit.changes import change

LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 1\n"


@pytest.fixture
def repository(tmp_path: Path) -> GitRepository:
    return GitRepository(tmp_path / "repository")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "folder"
    made.mkdir()
    return made


def written(repository: GitRepository, folder: Path, *paths: str) -> dict[str, str]:
    """What stands in the folder after the files of HEAD were written into it."""
    head = repository.git("rev-parse", "HEAD")
    with Objects(repository.path) as objects:
        write_files(objects, committed_files(repository.path, head, paths), folder)
    return texts(folder)


def dependencies(repository: GitRepository, commit: str, paths: list[str]) -> list[str]:
    with Checkout(repository.path) as checkout:
        places = JudgingPlaces(paths[0], paths[-1], dict.fromkeys(paths, "policy")).add_dependencies(checkout, commit)
    return sorted(places.what)


def completed(repository: GitRepository, folder: Path, *edited: str) -> dict[str, str]:
    """What stands in the folder after what was not committed has been added."""
    written(repository, folder, "suites")
    files = committed_files(repository.path, repository.git("rev-parse", "HEAD"), ["suites"])
    add_uncommitted(repository.path, files, edited, ["suites"], folder)
    return texts(folder)


def texts(folder: Path) -> dict[str, str]:
    files = (file for file in folder.rglob("*") if file.is_file() and not file.is_symlink())
    return {file.relative_to(folder).as_posix(): file.read_bytes().decode() for file in files}


@pytest.fixture
def committed(repository: GitRepository) -> str:
    """A commit with an agent and two suites, of which the working tree has other files."""
    repository.write("agent.py", "b")
    repository.write("suites/empty", "")
    repository.write("suites/golden/a.yaml", "old\r\nlines\n")
    commit = repository.commit()
    repository.write("suites/golden/a.yaml", "new")
    repository.write("gates.yaml")
    return commit


SUITES = {"suites/golden/a.yaml": "old\r\nlines\n", "suites/empty": ""}


@pytest.mark.usefixtures("committed")
@pytest.mark.parametrize(
    ("paths", "files"),
    [
        ((), {"agent.py": "b", **SUITES}),
        ((".",), {"agent.py": "b", **SUITES}),
        ((".", "suites"), {"agent.py": "b", **SUITES}),
        (("suites", "gates.yaml"), SUITES),
    ],
)
def test_the_files_of_the_commit_and_not_of_the_working_tree(
    repository: GitRepository, folder: Path, paths: tuple[str, ...], files: dict[str, str]
) -> None:
    assert written(repository, folder, *paths) == files


def test_whether_a_commit_has_a_file_or_folder(repository: GitRepository, committed: str) -> None:
    with Objects(repository.path) as objects:
        paths = (".", "suites", "suites/golden/a.yaml", "gates.yaml")
        assert [objects.contains(committed, path) for path in paths] == [True, True, True, False]


def test_names_programs_and_many_files(repository: GitRepository, folder: Path) -> None:
    names = [f"suites/{number} *\n\t{chr(228 + number)}" for number in range(20)]
    for number, name in enumerate(names):
        repository.write(name, "x" * (10 * number)).chmod(0o755 if number % 2 else 0o644)
    repository.commit()
    assert written(repository, folder) == {name: "x" * (10 * number) for number, name in enumerate(names)}
    assert [os.access(folder / name, os.X_OK) for name in names] == [bool(number % 2) for number in range(20)]


def test_attributes_neither_leave_out_nor_convert(repository: GitRepository, folder: Path) -> None:
    """`git archive` would give none of this as it was committed."""
    repository.write("suites/a.yaml", "$Id$ $Format:%H$\n")
    repository.commit()
    repository.write(".gitattributes", "suites export-ignore\n*.yaml ident export-subst text eol=crlf\n")
    repository.commit()
    repository.write("suites/.gitattributes", "* working-tree-encoding=UTF-16 filter=gone\n")
    assert written(repository, folder, "suites")["suites/a.yaml"] == "$Id$ $Format:%H$\n"


def test_links_are_links_and_nothing_is_written_through_them(
    repository: GitRepository, folder: Path, tmp_path: Path
) -> None:
    change(repository, {"suites/real/a": "a", "suites/link": Path("real"), "outside": tmp_path})
    repository.commit()
    written(repository, folder)
    assert (folder / "suites/link/a").read_text() == "a"
    assert (folder / "outside").readlink() == tmp_path


@pytest.mark.parametrize(("name", "value"), [("MOST_FILES", 1), ("MOST_BYTES", 5)])
def test_too_much_and_a_commit_that_is_not_there_are_refused(
    repository: GitRepository, name: str, value: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.write("a", "abc")
    repository.write("b", "abc")
    commit = repository.commit()
    assert len(committed_files(repository.path, commit)) == 2
    monkeypatch.setattr(base_checkout, name, value)
    with pytest.raises(UsageError, match=r"2 files with 0 MB at \w{12} are more than"):
        committed_files(repository.path, commit)
    with pytest.raises(UsageError, match="git cannot list the files of 000000000000: fatal"):
        committed_files(repository.path, "0" * 40)


def test_content_that_was_not_fetched_is_refused(repository: GitRepository, folder: Path) -> None:
    repository.write("suites/a", "abc")
    commit = repository.commit()
    files = committed_files(repository.path, commit)
    name = files[0].hash
    (repository.path / ".git/objects" / name[:2] / name[2:]).unlink()
    message = r"git does not have suites/a of the merge base: fetch the history"
    with Objects(repository.path) as objects, pytest.raises(UsageError, match=message):
        write_files(objects, files, folder)


def test_what_git_ignores_stands_beside_what_was_committed_and_replaces_none_of_it(
    repository: GitRepository, folder: Path
) -> None:
    change(repository, {".gitignore": "data/\n__pycache__/\n.passgate/\n", "suites/a": "a", "suites/b": "committed"})
    repository.commit()
    repository.git("rm", "--quiet", "--cached", "suites/b")
    elsewhere = ("data/elsewhere", "suites/__pycache__/a.pyc", "suites/.passgate/runs/1/plan.json", "suites/new")
    change(repository, {".gitignore": "data/\n__pycache__/\n.passgate/\nb\n", "suites/b": "ignored"})
    change(repository, dict.fromkeys(elsewhere, "x"))
    repository.write("suites/data/big", "big").chmod(0o755)
    assert completed(repository, folder) == {"suites/a": "a", "suites/b": "committed", "suites/data/big": "big"}
    assert os.access(folder / "suites/data/big", os.X_OK)


def test_an_ignored_file_is_not_written_through_a_link(repository: GitRepository, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    change(repository, {"suites/data": tmp_path / "elsewhere"})
    repository.commit()
    change(repository, {"suites/data": None, ".gitignore": "secret\n", "suites/data/secret": "x"})
    completed(repository, folder)
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_what_a_filter_keeps_elsewhere_is_taken_from_the_working_tree_unless_it_was_edited(
    repository: GitRepository, folder: Path
) -> None:
    kept = {"suites/same": LFS, "suites/edited": LFS, "suites/not-fetched": LFS, "suites/text": "text"}
    change(repository, kept)
    repository.commit()
    change(repository, dict.fromkeys(("suites/same", "suites/edited", "suites/text"), "content"))
    assert completed(repository, folder, "suites/edited") == kept | {"suites/same": "content"}


def test_a_submodule_is_there_and_has_no_files(repository: GitRepository, folder: Path, tmp_path: Path) -> None:
    other = GitRepository(tmp_path / "other")
    other.write("a")
    inner = other.commit()
    repository.write("suites/b", "b")
    repository.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other.path), "suites/inner")
    commit = repository.commit()
    assert written(repository, folder, "suites") == {"suites/b": "b"}
    with Objects(repository.path) as objects:
        assert objects.contains(commit, "suites/inner")
    found = [entry for entry in committed_files(repository.path, commit) if entry.is_submodule]
    assert [(entry.path, entry.hash) for entry in found] == [("suites/inner", inner)]
    assert committed_files(repository.path, commit, ["gates.yaml"]) == []


def test_a_file_is_read_where_links_in_the_commit_lead(repository: GitRepository, tmp_path: Path) -> None:
    change(repository, {"real/gates.yaml": "old\n\n", "gates.yaml": Path("real/gates.yaml"), "out": tmp_path})
    commit = repository.commit()
    repository.write("real/gates.yaml", "new\n")
    with Objects(repository.path) as objects:
        read = [objects.file(commit, path) for path in ("gates.yaml", "real", "out", "gone")]
    assert read == [b"old\n\n", None, None, None]


def test_the_bytes_of_a_file_depend_on_attributes_and_on_what_leads_elsewhere(repository: GitRepository) -> None:
    """Git knows nothing below a link."""
    change(repository, {"a/b/suites/x": "x", "link": Path("a")})
    commit = repository.commit()
    attributes = [".gitattributes", "a/.gitattributes", "a/b/.gitattributes"]
    assert dependencies(repository, commit, ["a/b/suites", "gates.yaml"]) == [*attributes, "a/b/suites", "gates.yaml"]
    assert dependencies(repository, commit, ["link/b/suites"]) == [".gitattributes", "link"]
    repository.git("mv", "a", "c")
    change(repository, {"a": Path("c")})
    repository.commit()
    assert dependencies(repository, commit, ["a/b/suites"]) == [".gitattributes", "a"], "what has become a link"
