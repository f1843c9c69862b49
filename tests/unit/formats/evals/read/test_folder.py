from pathlib import Path

import pytest

from passgate.tasks.formats.evals.read.folder import files_of_folder, kind_of, scalars_of
from tests.unit.formats.evals.eval_files import write

TASK = "task_id: a\nsuite: golden\n"
SAY_YES = "task_id: a\n"
GROUPS = ("tasks", "evals", "parts", "others")


def test_every_text_that_is_a_value_comes_with_its_first_keys(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("a: one\nb: [two, {c: {d: three}}]\n? [x, y]\n: four\ne: &n five\nf: *n\ng: six\n")
    assert list(scalars_of(file)) == [
        (("a",), "one"),
        (("b", None), "two"),
        (("b", None, "c"), "three"),
        (("", None), "x"),
        (("", None), "y"),
        (("",), "four"),
        (("e",), "five"),
        (("f",), ""),
        (("g",), "six"),
    ]


def test_a_broken_file_gives_what_stands_before(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("a: one\nb: [\n")
    assert list(scalars_of(file)) == [(("a",), "one")]
    assert list(scalars_of(tmp_path / "gone.yaml")) == []


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("a.yaml", TASK, "task"),
        ("a.yaml", "tags: [x]\ndescription: {task: 1}\ntask_id: a\ntests: []\n", "task"),
        ("dataset.yaml", TASK, "task"),
        ("a.yaml", "name: x\ntests:\n  - {id: a}\n", "eval"),
        ("a.yml", "{name: x, evalcases: []}", "eval"),
        ("a.yaml", "name: x\ntests: [\n", "eval"),
        ("a.yaml", "prompts: [a]\nproviders: [b]\n", "eval"),
        ("a.yaml", "prompts: [a]\n", None),
        ("a.eval.yaml", "name: x\n", "eval"),
        ("a.EVAL.yaml", "name: x\n", "eval"),
        ("EVAL.yml", "", "eval"),
        ("eval.yaml", "[", "eval"),
        ("dataset-two.yaml", "name: x\n", "eval"),
        ("a.eval.json", "{}", "eval"),
        ("package.json", '{"tests": []}', None),
        ("a.yaml", "- {id: x, input: hi}\n", "cases"),
        ("a.yaml", "id: x\ncriteria: hi\n", "cases"),
        ("case.yaml", "criteria: hi\n", "cases"),
        ("a.yaml", "criteria: hi\n", None),
        ("a.yaml", "- {id: openai, label: x}\n", None),
        ("a.yaml", "- config: []\n  tests: []\n", None),
        ("a.yaml", "- [{id: x, input: y}]\n", None),
        ("a.yaml", "nested:\n  task_id: a\n  tests: []\n", None),
        ("a.yaml", "hello\n", None),
        ("a.yaml", "", None),
        ("a.jsonl", '{"id": "x", "criteria": "y"}\n', "cases"),
        ("a.jsonl", 'broken\n\n{"id": "x", "input": "y"}\n', "cases"),
        ("a.jsonl", '{"timestamp": "x", "test_id": "y", "input": "z"}\n', None),
        ("a.jsonl", '[1]\n3\n{"id": 1}\n', None),
        ("a.jsonl", "[" * 100_000, None),
        ("README.md", "tests: []", None),
    ],
)
def test_a_file_is_told_by_its_content_and_then_by_its_name(
    tmp_path: Path, name: str, content: str, kind: str | None
) -> None:
    (tmp_path / name).write_text(content)
    assert kind_of(tmp_path / name) == kind


def test_a_file_that_cannot_be_read_is_told_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "a.eval.yaml").write_bytes(b"tests: \xff")
    assert kind_of(tmp_path / "a.eval.yaml") == "eval"
    assert kind_of(tmp_path / "gone.yaml") is None
    assert kind_of(tmp_path / "gone.jsonl") is None


def grouped(root: Path, folder: str = ".") -> dict[str, list[str]]:
    (root / ".git").mkdir(exist_ok=True)
    found = files_of_folder(root / folder, {})
    return {group: [str(file.relative_to(root)) for file in getattr(found, group)] for group in GROUPS}


def test_every_file_is_in_one_group(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "golden/task.yaml": SAY_YES,
            "golden/broken.yaml": "tsk_id: a\n",
            "golden/EVAL.yaml": "tests: ./cases/\nworkspace: {template: ./template}\n",
            "golden/cases/one/case.yaml": "input: hi\n",
            "golden/cases/one/workspace/file.yaml": "a: 1\n",
            "golden/template/config.yaml": "a: 1\n",
            "other/task.yml": SAY_YES,
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


def test_cases_that_nobody_takes_in_are_read_and_paths_are_as_the_folder_is_given(tmp_path: Path) -> None:
    write(tmp_path, {"lonely.yaml": "[{id: a, input: x}]\n", "rows.jsonl": '{"id": "c", "input": "x"}\n'})
    assert grouped(tmp_path)["evals"] == ["lonely.yaml", "rows.jsonl"]
    write(tmp_path, {"evals/EVAL.yaml": "tests: [{id: a}]\n"})
    assert files_of_folder(tmp_path / "evals", {}).evals == (tmp_path / "evals/EVAL.yaml",)


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
            "inner/task.yaml": SAY_YES,
            "x.yaml": "a: 1\n",
        },
    )
    files = grouped(tmp_path)
    assert files["evals"] == ["EVAL.yaml", "inner/EVAL.yaml"]
    assert files["tasks"] == ["inner/task.yaml"]
    assert files["others"] == ["x.yaml"]


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
