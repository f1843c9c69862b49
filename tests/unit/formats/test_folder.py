from pathlib import Path

import pytest

from passgate.tasks.formats.folder import (
    file_kind,
    files_below,
    find_root,
    find_suite,
    find_suites_folder,
    folder_files,
)
from passgate.tasks.model.task import Suite
from tests.unit.formats.evals.eval_files import write

TASK = "task_id: a\nsuite: golden\n"
SAY_YES = "task_id: a\n"
CASES, LINE = "[{id: a, input: x}]\n", '{"id": "c", "input": "x"}\n'
GROUPS = ("tasks", "evals", "parts", "others")


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
        ("a.EVAL.yaml", "name: x\n", "eval"),
        ("a.eval.yaml", b"tests: \xff", "eval"),
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
        ("a.jsonl", '{"id": "x", "criteria": "y"}\n', "cases"),
        ("a.jsonl", 'broken\n\n{"id": "x", "input": "y"}\n', "cases"),
        ("a.jsonl", '{"timestamp": "x", "test_id": "y", "input": "z"}\n', None),
        ("a.jsonl", '[1]\n3\n{"id": 1}\n', None),
        ("a.jsonl", "[" * 100_000, None),
        ("a.jsonl", "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n", "cases"),
        ("README.md", "tests: []", None),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_file_is_told_by_its_content_and_then_by_its_name(
    tmp_path: Path, name: str, content: str | bytes, kind: str | None
) -> None:
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    assert file_kind(tmp_path / name) == kind


@pytest.mark.parametrize("name", ["gone.yaml", "gone.jsonl"])
def test_a_file_that_is_not_there_is_of_no_kind(tmp_path: Path, name: str) -> None:
    assert file_kind(tmp_path / name) is None


def grouped(root: Path, files: dict[str, str]) -> dict[str, list[str]]:
    """The groups of these files that are not empty."""
    write(root, {".git/HEAD": "", **files})
    found = folder_files(root, {})
    groups = {group: [str(file.relative_to(root)) for file in getattr(found, group)] for group in GROUPS}
    return {group: names for group, names in groups.items() if names}


def test_every_file_is_in_one_group(tmp_path: Path) -> None:
    files = {
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
    }
    assert grouped(tmp_path, files) == {
        "tasks": ["golden/broken.yaml", "golden/task.yaml", "other/task.yml"],
        "evals": ["golden/EVAL.yaml"],
        "parts": ["golden/cases/one/case.yaml", "golden/cases/one/workspace/file.yaml", "golden/template/config.yaml"],
        "others": ["other/results.jsonl", "other/settings.yaml"],
    }


def test_what_an_eval_file_takes_in_is_not_read_again(tmp_path: Path) -> None:
    files = {
        "wrap.eval.yaml": "tests: [{include: ./suites/*.eval.yaml, type: suite}, ./raw/*.yaml, ./rows.jsonl]\n",
        "suites/a.eval.yaml": "tests: file://../more.yaml\n",
        "raw/a.yaml": CASES,
        "more.yaml": CASES,
        "rows.jsonl": LINE,
        "default.yaml": "threshold: 1\n",
        "templated.yaml": "default_test: file://default.yaml\nprompts: [a]\ntests: [{id: d}]\n",
    }
    assert grouped(tmp_path, files) == {
        "evals": ["templated.yaml", "wrap.eval.yaml"],
        "parts": ["default.yaml", "more.yaml", "raw/a.yaml", "rows.jsonl", "suites/a.eval.yaml"],
    }


def test_cases_that_nobody_takes_in_are_read_and_paths_are_as_the_folder_is_given(tmp_path: Path) -> None:
    assert grouped(tmp_path, {"lonely.yaml": CASES, "rows.jsonl": LINE}) == {"evals": ["lonely.yaml", "rows.jsonl"]}
    write(tmp_path, {"evals/EVAL.yaml": "tests: [{id: a}]\n"})
    assert folder_files(tmp_path / "evals", {}).evals == (tmp_path / "evals/EVAL.yaml",)


def test_lines_and_their_sidecar_are_read_once(tmp_path: Path) -> None:
    files = {"a.jsonl": LINE, "a.eval.yaml": "name: a\n", "b.jsonl": LINE, "b.yaml": "tests: ./b.jsonl\n"}
    assert grouped(tmp_path, files) == {"evals": ["a.jsonl", "b.yaml"], "parts": ["a.eval.yaml", "b.jsonl"]}


def test_one_file_of_a_circle_is_read_so_that_the_circle_is_told(tmp_path: Path) -> None:
    includes = {"a": "b", "b": "a", "self": "self"}
    files = {f"{name}.yaml": f"tests: [{{include: ./{of}.yaml, type: suite}}]\n" for name, of in includes.items()}
    assert grouped(tmp_path, files) == {"evals": ["a.yaml", "self.yaml"], "parts": ["b.yaml"]}


def test_a_task_or_eval_file_is_never_swallowed_by_a_folder_that_is_named(tmp_path: Path) -> None:
    files = {
        "EVAL.yaml": "workspace: ./inner\nmetadata: {see: ./inner/EVAL.yaml, at: ./}\ntests: [{id: a}]\n",
        "inner/EVAL.yaml": "tests: [{id: b}]\n",
        "inner/task.yaml": SAY_YES,
        "x.yaml": "a: 1\n",
    }
    evals = ["EVAL.yaml", "inner/EVAL.yaml"]
    assert grouped(tmp_path, files) == {"evals": evals, "tasks": ["inner/task.yaml"], "others": ["x.yaml"]}


def test_a_suite_of_which_tests_are_selected_is_read_for_the_others_too(tmp_path: Path) -> None:
    files = {
        "wrap.eval.yaml": "tests: [{include: ./a.eval.yaml, type: suite, select: {test_ids: [x]}}, ./raw.yaml]\n",
        "a.eval.yaml": "tests: [{id: x, input: x}, {id: y, input: y}]\n",
        "raw.yaml": CASES,
    }
    assert grouped(tmp_path, files) == {"evals": ["a.eval.yaml", "wrap.eval.yaml"], "parts": ["raw.yaml"]}


def make(root: Path, *names: str) -> None:
    for name in names:
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("")


def test_files_of_every_kind_are_found_however_deep_but_no_shared_and_hidden_ones(tmp_path: Path) -> None:
    found = ["README.md", "adversarial/deep/c.yaml", "golden/a.json", "golden/b.yaml"]
    hidden = "_shared/a.yaml", "golden/_shared/a.yaml", ".git/a.yaml", ".a.yaml", "_a.yaml", "node_modules/a.yaml"
    make(tmp_path, *found, *hidden)
    assert sorted(str(file.relative_to(tmp_path)) for file in files_below(tmp_path)) == found


def test_folders_behind_links_are_not_followed(tmp_path: Path) -> None:
    make(tmp_path, "golden/a.yaml")
    (tmp_path / "golden/circle").symlink_to(tmp_path)
    (tmp_path / "golden/gone.yaml").symlink_to(tmp_path / "nowhere")
    (tmp_path / "folder.yaml").mkdir()
    assert list(files_below(tmp_path)) == [tmp_path / "golden/a.yaml"]


@pytest.mark.parametrize(
    ("file", "suite"),
    [
        ("suites/golden/a.yaml", Suite.GOLDEN),
        ("suites/golden/deep/a.yaml", Suite.GOLDEN),
        ("golden/adversarial/a.yaml", Suite.ADVERSARIAL),
        ("suites/other/a.yaml", None),
        ("suites/golden.yaml", None),
        ("golden", None),
    ],
)
def test_the_innermost_folder_with_a_suites_name_is_the_suite(file: str, suite: Suite | None) -> None:
    assert find_suite(Path(file)) is suite


def test_the_suites_folder_holds_the_suites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, "suites/golden/deep/a.yaml", "suites/golden/b.yaml", "lonely/c.yaml")
    suites = tmp_path / "suites"
    assert find_suites_folder(suites / "golden/deep/a.yaml") == suites
    assert find_suites_folder(suites / "golden/b.yaml") == suites
    assert find_suites_folder(suites / "golden") == suites
    assert find_suites_folder(tmp_path / "lonely/c.yaml") == tmp_path / "lonely"
    assert find_suites_folder(tmp_path / "lonely") == tmp_path / "lonely"
    make(tmp_path, "golden/a.yaml")
    monkeypatch.chdir(tmp_path / "golden")
    assert find_suites_folder(Path("a.yaml")) == tmp_path


def test_the_root_is_what_holds_the_suite_else_what_was_named(tmp_path: Path) -> None:
    make(tmp_path, "suites/golden/a.yaml", "evals/deep/b.yaml")
    suites, evals = tmp_path / "suites", tmp_path / "evals"
    assert find_root(suites / "golden/a.yaml", tmp_path) == suites
    assert find_root(suites / "golden/a.yaml", suites / "golden/a.yaml") == suites
    assert find_root(evals / "deep/b.yaml", evals) == evals
    assert find_root(evals / "deep/b.yaml", evals / "deep/b.yaml") == evals / "deep"
