"""What the paths in an eval file lead to."""

from pathlib import Path

import pytest

from passgate.tasks.formats.document import Document
from passgate.tasks.formats.evals.documents import Documents, find_ground
from passgate.tasks.formats.evals.node import Complaints, Node


def a_file(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x", encoding="utf-8")
    return path


def found(file: Path, name: str) -> tuple[Path | None, Complaints]:
    documents = Documents(find_ground(file, file.parent), Complaints(), {}, str)
    return documents.find_path(Node(name, Document(str(file)), file.parent), name), documents.complaints


@pytest.mark.parametrize(
    ("marks", "file", "repository"),
    [
        (("outer/.git/HEAD", "outer/inner/.git/HEAD"), "outer/inner/a/b/EVAL.yaml", "outer/inner"),
        (("tree/.git",), "tree/evals/EVAL.yaml", "tree"),
        ((), "project/evals/EVAL.yaml", "project"),
        ((".agentv/x",), "p/evals/EVAL.yaml", "p"),
        (("p/.agentv/x", "p/a/b/.agentv/x"), "p/a/b/c/d/EVAL.yaml", "p"),
    ],
)
def test_the_repository(elsewhere: Path, marks: tuple[str, ...], file: str, repository: str) -> None:
    """The home folder has a `.agentv` for its settings."""
    for name in (*marks, file):
        a_file(elsewhere / name)
    assert find_ground(elsewhere / file, (elsewhere / file).parent).repository == elsewhere / repository


def test_or_it_is_the_suites_folder_or_the_working_folder(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = a_file(elsewhere / "suites/a/b/c/EVAL.yaml")
    assert find_ground(file, elsewhere / "suites").repository == elsewhere / "suites"
    monkeypatch.chdir(elsewhere)
    assert find_ground(file, file.parent).repository == elsewhere


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is not below the working folder, and the home folder."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("HOME", str(tmp_path / "place"))
    return tmp_path / "place"


@pytest.mark.parametrize(
    ("name", "leads_to"),
    [
        ("judge.md", "evals/judge.md"),
        ("./judge.md", "evals/judge.md"),
        ("../top.md", "top.md"),
        ("top.md", "top.md"),
        ("/shared/system.md", "shared/system.md"),
    ],
)
def test_relative_paths_start_at_the_file_and_absolute_ones_at_the_repository(
    elsewhere: Path, name: str, leads_to: str
) -> None:
    for path in (".git", "evals/judge.md", "top.md", "shared/system.md"):
        a_file(elsewhere / path)
    assert found(a_file(elsewhere / "evals/EVAL.yaml"), name) == (elsewhere / leads_to, Complaints())


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("../../secret.txt", "'../../secret.txt' leaves the repository"),
        ("../../../../../../../../etc/passwd", "'../../../../../../../../etc/passwd' leaves the repository"),
        ("link.md", "'link.md' leaves the repository"),
        ("a\0b", "'a\\x00b' is not a path"),
        ("x" * 5000, "is not a path"),
    ],
)
def test_what_leaves_the_repository_or_is_no_path_is_a_problem(elsewhere: Path, name: str, message: str) -> None:
    file, secret = a_file(elsewhere / "repo/evals/EVAL.yaml"), a_file(elsewhere / "secret.txt")
    a_file(elsewhere / "repo/.git")
    (file.parent / "link.md").symlink_to(secret)
    path, complaints = found(file, name)
    assert path is None
    assert message in complaints.problems[0].message


def test_a_file_that_is_not_there_cannot_be_run(elsewhere: Path) -> None:
    path, complaints = found(a_file(elsewhere / "EVAL.yaml"), "./none.md")
    assert path is None
    assert [problem.message for problem in complaints.cannot_run] == ["no file './none.md'"]


def test_places_outside_of_the_suites_folder_that_a_file_could_come_from_are_noted(elsewhere: Path) -> None:
    file = a_file(elsewhere / "team/suites/golden/EVAL.yaml")
    for name in (".git", "a.md", "desk/a"):
        a_file(elsewhere / name)
    documents = Documents(find_ground(file, elsewhere / "team/suites"), Complaints(), {}, str)
    node = Node("a.md", Document("EVAL.yaml"), file.parent)
    assert documents.find_path(node, "desk", is_read=False) == elsewhere / "desk"
    assert documents.ground.looked_at_outside() == set()
    assert documents.find_path(node, "a.md") == elsewhere / "a.md"
    assert documents.ground.looked_at_outside() == {"../a.md", "../../a.md"}


def test_tasks_hold_paths_relative_to_the_suites_folder(elsewhere: Path) -> None:
    ground = find_ground(a_file(elsewhere / "suites/golden/EVAL.yaml"), elsewhere / "suites")
    assert ground.relative(elsewhere / "suites/golden/a.md") == "golden/a.md"
    assert ground.relative(elsewhere / "shared/a.md") == "../shared/a.md"
