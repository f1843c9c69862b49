"""Folders with one test each."""

from pathlib import Path

from tests.unit.formats.evals.eval_files import read, write


def test_each_folder_is_a_test_named_as_it_is(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "EVAL.yaml": "name: a\ntests: ./cases/\n",
            "cases/b-second/case.yml": "input: hi\n",
            "cases/a-first/case.yaml": "id: own\ninput: hi\n",
            "cases/a-first/workspace/file.txt": "",
            "cases/notes/README.md": "",
        },
    )
    answer = read(tmp_path, "EVAL.yaml")
    assert answer.problems == []
    assert answer.ids == ["own", "b-second"]
    assert [test.workspace for test in answer.tests] == [tmp_path / "cases/a-first/workspace", None]
    assert answer.warnings == ["EVAL.yaml:2:8: tests: the folder 'notes' has no case.yaml: skipped"]


def test_a_folder_without_cases_is_a_problem(tmp_path: Path) -> None:
    write(tmp_path, {"EVAL.yaml": "tests: ./cases/\n", "cases/a.yaml": "[{id: x}]"})
    assert read(tmp_path, "EVAL.yaml").problems == [
        (
            "EVAL.yaml:1:8: tests: no folder of './cases/' has a case.yaml; "
            "for files of tests write a pattern, as './cases/*.yaml'"
        )
    ]


def test_two_case_files_in_a_folder_are_a_problem(tmp_path: Path) -> None:
    write(tmp_path, {"EVAL.yaml": "tests: ./c\n", "c/x/case.yaml": "input: a", "c/x/case.yml": "input: b"})
    assert read(tmp_path, "EVAL.yaml").problems == [
        "EVAL.yaml:1:8: tests: the folder 'x' has both case.yaml and case.yml"
    ]


def test_a_case_that_leaves_the_repository_is_a_problem(tmp_path: Path) -> None:
    write(
        tmp_path,
        {"repo/EVAL.yaml": "tests: ./c\n", "elsewhere/case.yaml": "input: a", "repo/c/x/case.yaml": "input: b"},
    )
    (tmp_path / "repo/c/link").symlink_to(tmp_path / "elsewhere")
    answer = read(tmp_path / "repo", "EVAL.yaml")
    assert answer.problems == ["EVAL.yaml:1:8: tests: 'link' in it leaves the repository"]
    assert answer.ids == ["x"]


def test_a_case_file_is_read_by_itself(tmp_path: Path) -> None:
    write(tmp_path, {"fix-it/case.yaml": "input: hi\n", "fix-it/workspace/a": ""})
    answer = read(tmp_path, "fix-it/case.yaml")
    assert (answer.problems, answer.ids) == ([], ["fix-it"])
    assert answer.tests[0].workspace == tmp_path / "fix-it/workspace"
