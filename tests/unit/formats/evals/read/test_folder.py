"""The files of a folder by what is done with them."""

from pathlib import Path

from passgate.tasks.formats.evals.read.folder import files_of_folder
from tests.unit.formats.evals.eval_files import write

TASK = "task_id: a\n"
GROUPS = ("tasks", "evals", "parts", "others")


def grouped(root: Path, folder: str = ".") -> dict[str, list[str]]:
    (root / ".git").mkdir(exist_ok=True)
    found = files_of_folder(root / folder, {})
    return {group: [str(file.relative_to(root)) for file in getattr(found, group)] for group in GROUPS}


def test_every_file_is_in_one_group(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "golden/task.yaml": TASK,
            "golden/broken.yaml": "tsk_id: a\n",
            "golden/EVAL.yaml": "tests: ./cases/\nworkspace: {template: ./template}\n",
            "golden/cases/one/case.yaml": "input: hi\n",
            "golden/cases/one/workspace/file.yaml": "a: 1\n",
            "golden/template/config.yaml": "a: 1\n",
            "other/task.yml": TASK,
            "other/settings.yaml": "a: 1\n",
            "other/results.jsonl": '{"test_id": "a"}\n',
            "other/_hidden/EVAL.yaml": "tests: []\n",
            "node_modules/EVAL.yaml": "tests: []\n",
        },
    )
    assert grouped(tmp_path) == {
        "tasks": ["golden/broken.yaml", "golden/task.yaml", "other/task.yml"],
        "evals": ["golden/EVAL.yaml"],
        "parts": ["golden/cases/one/case.yaml", "golden/cases/one/workspace/file.yaml", "golden/template/config.yaml"],
        "others": ["other/results.jsonl", "other/settings.yaml"],
    }


def test_what_an_eval_file_takes_in_is_not_read_again(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "wrap.eval.yaml": "tests: [{include: ./suites/*.eval.yaml, type: suite}, ./raw/*.yaml, ./rows.jsonl]\n",
            "suites/a.eval.yaml": "tests: file://../more.yaml\n",
            "raw/a.yaml": "[{id: a, input: x}]\n",
            "more.yaml": "[{id: b, input: x}]\n",
            "rows.jsonl": '{"id": "c", "input": "x"}\n',
            "default.yaml": "threshold: 1\n",
            "templated.yaml": "default_test: file://default.yaml\nprompts: [a]\ntests: [{id: d}]\n",
        },
    )
    files = grouped(tmp_path)
    assert files["evals"] == ["templated.yaml", "wrap.eval.yaml"]
    assert files["parts"] == ["default.yaml", "more.yaml", "raw/a.yaml", "rows.jsonl", "suites/a.eval.yaml"]
    assert files["others"] == []


def test_cases_that_nobody_takes_in_are_read(tmp_path: Path) -> None:
    write(tmp_path, {"lonely.yaml": "[{id: a, input: x}]\n", "rows.jsonl": '{"id": "c", "input": "x"}\n'})
    assert grouped(tmp_path)["evals"] == ["lonely.yaml", "rows.jsonl"]


def test_lines_and_their_sidecar_are_read_once(tmp_path: Path) -> None:
    lines = '{"id": "c", "input": "x"}\n'
    write(tmp_path, {"a.jsonl": lines, "a.eval.yaml": "name: a\n", "b.jsonl": lines, "b.yaml": "tests: ./b.jsonl\n"})
    files = grouped(tmp_path)
    assert files["evals"] == ["a.jsonl", "b.yaml"]
    assert files["parts"] == ["a.eval.yaml", "b.jsonl"]


def test_one_file_of_a_circle_is_read_so_that_the_circle_is_told(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "a.yaml": "tests: [{include: ./b.yaml, type: suite}]\n",
            "b.yaml": "tests: [{include: ./a.yaml, type: suite}]\n",
            "self.yaml": "tests: [{include: ./self.yaml, type: suite}]\n",
        },
    )
    assert grouped(tmp_path)["evals"] == ["a.yaml", "self.yaml"]
    assert grouped(tmp_path)["parts"] == ["b.yaml"]


def test_a_task_or_eval_file_is_never_swallowed_by_a_folder_that_is_named(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "EVAL.yaml": "workspace: ./inner\nmetadata: {see: ./inner/EVAL.yaml, at: ./}\ntests: [{id: a}]\n",
            "inner/EVAL.yaml": "tests: [{id: b}]\n",
            "inner/task.yaml": TASK,
            "x.yaml": "a: 1\n",
        },
    )
    files = grouped(tmp_path)
    assert files["evals"] == ["EVAL.yaml", "inner/EVAL.yaml"]
    assert files["tasks"] == ["inner/task.yaml"]
    assert files["others"] == ["x.yaml"]


def test_paths_are_as_the_folder_is_given(tmp_path: Path) -> None:
    write(tmp_path, {"evals/EVAL.yaml": "tests: [{id: a}]\n"})
    assert files_of_folder(tmp_path / "evals", {}).evals == (tmp_path / "evals/EVAL.yaml",)


def test_a_suite_of_which_tests_are_selected_is_read_for_the_others_too(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "wrap.eval.yaml": "tests: [{include: ./a.eval.yaml, type: suite, select: {test_ids: [x]}}, ./raw.yaml]\n",
            "a.eval.yaml": "tests: [{id: x, input: x}, {id: y, input: y}]\n",
            "raw.yaml": "[{id: a, input: x}]\n",
        },
    )
    files = grouped(tmp_path)
    assert files["evals"] == ["a.eval.yaml", "wrap.eval.yaml"]
    assert files["parts"] == ["raw.yaml"]
