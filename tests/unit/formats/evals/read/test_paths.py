"""What the paths in an eval file lead to."""

from pathlib import Path

import pytest

from passgate.tasks.formats.document import Document
from passgate.tasks.formats.evals.read.node import Complaints, Node
from passgate.tasks.formats.evals.read.paths import find_folder, find_path, ground_of


def a_file(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x", encoding="utf-8")
    return path


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is not below the working folder."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "place"


def found(file: Path, name: str, suites: Path | None = None) -> tuple[Path | None, Complaints]:
    complaints = Complaints()
    node = Node(name, Document(str(file)), file.parent)
    return find_path(node, name, ground_of(file, suites or file.parent), complaints), complaints


def test_the_repository_is_the_nearest_with_a_git_folder_or_file(elsewhere: Path) -> None:
    (elsewhere / "outer/.git").mkdir(parents=True)
    (elsewhere / "outer/inner/.git").mkdir(parents=True)
    file = a_file(elsewhere / "outer/inner/a/b/EVAL.yaml")
    assert ground_of(file, file.parent).repository == elsewhere / "outer/inner"
    a_file(elsewhere / "tree/.git")
    file = a_file(elsewhere / "tree/evals/EVAL.yaml")
    assert ground_of(file, file.parent).repository == elsewhere / "tree"


def test_without_one_it_is_the_folder_above_the_files_own_or_the_suites_folder(elsewhere: Path) -> None:
    file = a_file(elsewhere / "project/evals/EVAL.yaml")
    assert ground_of(file, file.parent).repository == elsewhere / "project"
    file = a_file(elsewhere / "suites/a/b/c/EVAL.yaml")
    assert ground_of(file, elsewhere / "suites").repository == elsewhere / "suites"


def test_or_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = a_file(tmp_path / "a/b/c/EVAL.yaml")
    assert ground_of(file, file.parent).repository == tmp_path


def test_or_the_outermost_project_of_agentv(elsewhere: Path) -> None:
    for folder in ("p/.agentv", "p/a/b/.agentv"):
        (elsewhere / folder).mkdir(parents=True)
    file = a_file(elsewhere / "p/a/b/c/d/EVAL.yaml")
    assert ground_of(file, file.parent).repository == elsewhere / "p"


def test_but_not_the_home_folder_for_its_settings(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (elsewhere / ".agentv").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(elsewhere))
    file = a_file(elsewhere / "p/evals/EVAL.yaml")
    assert ground_of(file, file.parent).repository == elsewhere / "p"


@pytest.mark.parametrize(
    ("name", "leads_to"),
    [("judge.md", "evals/judge.md"), ("./judge.md", "evals/judge.md"), ("../top.md", "top.md"), ("top.md", "top.md")],
)
def test_relative_paths_start_at_the_file_and_then_above_it(elsewhere: Path, name: str, leads_to: str) -> None:
    (elsewhere / ".git").mkdir(parents=True)
    for path in ("evals/judge.md", "top.md"):
        a_file(elsewhere / path)
    path, complaints = found(a_file(elsewhere / "evals/EVAL.yaml"), name)
    assert path == elsewhere / leads_to
    assert complaints == Complaints()


def test_absolute_paths_start_at_the_repository(elsewhere: Path) -> None:
    (elsewhere / ".git").mkdir(parents=True)
    a_file(elsewhere / "shared/system.md")
    path, _ = found(a_file(elsewhere / "evals/a/EVAL.yaml"), "/shared/system.md")
    assert path == elsewhere / "shared/system.md"


@pytest.mark.parametrize("name", ["../../secret.txt", "../../../../../../../../etc/passwd", "link.md"])
def test_a_path_that_leaves_the_repository_is_a_problem(elsewhere: Path, name: str) -> None:
    (elsewhere / "repo/.git").mkdir(parents=True)
    secret = a_file(elsewhere / "secret.txt")
    file = a_file(elsewhere / "repo/evals/EVAL.yaml")
    (file.parent / "link.md").symlink_to(secret)
    path, complaints = found(file, name)
    assert path is None
    assert [problem.message for problem in complaints.problems] == [f"{name!r} leaves the repository"]


def test_a_file_that_is_not_there_cannot_be_run(elsewhere: Path) -> None:
    (elsewhere / ".git").mkdir(parents=True)
    path, complaints = found(a_file(elsewhere / "EVAL.yaml"), "./none.md")
    assert path is None
    assert [problem.message for problem in complaints.cannot_run] == ["no file './none.md'"]


@pytest.mark.parametrize("name", ["a\0b", "x" * 5000])
def test_what_is_no_path_is_a_problem(elsewhere: Path, name: str) -> None:
    (elsewhere / ".git").mkdir(parents=True)
    path, complaints = found(a_file(elsewhere / "EVAL.yaml"), name)
    assert path is None
    assert "is not a path" in complaints.problems[0].message


def test_places_outside_of_the_suites_folder_that_a_file_could_come_from_are_noted(elsewhere: Path) -> None:
    (elsewhere / ".git").mkdir(parents=True)
    a_file(elsewhere / "a.md")
    (elsewhere / "desk").mkdir()
    file = a_file(elsewhere / "team/suites/golden/EVAL.yaml")
    ground = ground_of(file, elsewhere / "team/suites")
    node = Node("a.md", Document("EVAL.yaml"), file.parent)
    assert find_folder(node, "desk", ground, Complaints()) == elsewhere / "desk"
    assert ground.looked_at_outside() == set()
    assert find_path(node, "a.md", ground, Complaints()) == elsewhere / "a.md"
    assert ground.looked_at_outside() == {"../a.md", "../../a.md"}


def test_tasks_hold_paths_relative_to_the_suites_folder(elsewhere: Path) -> None:
    ground = ground_of(a_file(elsewhere / "suites/golden/EVAL.yaml"), elsewhere / "suites")
    assert ground.relative(elsewhere / "suites/golden/a.md") == "golden/a.md"
    assert ground.relative(elsewhere / "shared/a.md") == "../shared/a.md"
