"""Tasks of one dialect written as another."""

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from passgate.tasks.commands.convert import Converted, Destination, Dialect, convert
from passgate.tasks.errors import InputError, UsageError
from passgate.tasks.formats.evals.read.folder import files_of_folder
from passgate.tasks.formats.loading import tasks_of_paths
from passgate.tasks.formats.schema_check import schema_validator
from passgate.tasks.model.task import TaskFile
from tests.builders import SHIPPED, write_task
from tests.unit.formats.evals.schema_answers import CORPUS

TEST: dict[str, Any] = {"id": "t", "input": "Hi", "assert": [{"type": "contains", "value": "x"}]}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    return tmp_path


def add(name: str, *tests: dict[str, Any], files: dict[str, str] | None = None, **top: Any) -> Path:
    for path, text in {**(files or {}), name: yaml.safe_dump({**top, "tests": list(tests)})}.items():
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(text)
    return Path(name)


def written(source: Path, dialect: Dialect, out: str, *, lossy: bool = False, force: bool = False) -> Converted:
    return convert([source], Destination(dialect, Path(out), SHIPPED, {}, lossy=lossy, overwrite=force))


def said(file: str) -> Any:
    """What a file of YAML holds."""
    return yaml.safe_load(Path(file).read_text())


def tasks(path: str | Path) -> list[TaskFile]:
    found = tasks_of_paths([Path(path)], SHIPPED, {})
    assert found.problems == ()
    return [source.task for source in found.tasks]


def test_task_files_lie_in_the_folders_of_their_suites_and_fit_their_schema() -> None:
    source = add("in.yaml", TEST, {**TEST, "id": "a/b", "suite": "adversarial"})
    converted = written(source, Dialect.FOUR_SUITE, "suites")
    assert [str(file) for file in converted.files] == ["suites/golden/t.yaml", "suites/adversarial/a-b.yaml"]
    assert tasks("suites") == [*reversed(tasks(source))]
    for file in converted.files:
        assert schema_validator("task").is_valid(yaml.safe_load(file.read_text()))


def test_an_eval_file_has_the_words_of_agentevals_and_graders_of_other_tools() -> None:
    graders = [*TEST["assert"], {"type": "similar", "value": "x", "threshold": 0.5}]
    source = add("in.yaml", {"id": "t", "input": "Hi", "assertions": graders, "expected_outcome": "Is kind."})
    written(source, Dialect.EVAL, "out/EVAL.yaml")
    test = {"id": "t", "criteria": "Is kind.", "input": "Hi", "assert": graders}
    assert said("out/EVAL.yaml") == {"name": "out", "suite": "golden", "tests": [test]}
    assert tasks("out/EVAL.yaml") == tasks(source)


def test_an_eval_file_names_the_schema_that_the_repository_has() -> None:
    source = add("in.yaml", TEST)
    written(source, Dialect.EVAL, "a/bb.yaml")
    Path("schema").mkdir()
    Path("schema/eval.schema.json").write_text("{}")
    written(source, Dialect.EVAL, "a/c.yaml")
    first = [Path(name).read_text().splitlines()[0] for name in ("a/bb.yaml", "a/c.yaml")]
    assert first == ["name: bb", "# yaml-language-server: $schema=../schema/eval.schema.json"]


def test_lines_have_a_sidecar() -> None:
    source = add("in.yaml", TEST, {**TEST, "id": "u"}, suite="golden")
    converted = written(source, Dialect.JSONL, "out.jsonl")
    assert [str(file) for file in converted.files] == ["out.jsonl", "out.yaml"]
    assert [json.loads(line)["id"] for line in Path("out.jsonl").read_text().splitlines()] == ["t", "u"]
    assert said("out.yaml")["suite"] == "golden"
    assert tasks("out.jsonl") == tasks(source)


def test_paths_lead_to_the_same_files_from_elsewhere() -> None:
    test = {
        "id": "t",
        "input": [{"role": "user", "content": [{"type": "file", "value": "./a.md"}]}],
        "assert": [
            {"type": "llm_judge", "prompt": "./judge.md"},
            {"type": "code_judge", "script": ["python", "judge.py"]},
        ],
        "workspace": {"template": "./w"},
    }
    files = {"evals/x/a.md": "A", "evals/x/judge.md": "J", "evals/x/judge.py": "", "evals/x/w/f": ""}
    source = add("evals/x/EVAL.yaml", test, files=files)
    written(source, Dialect.EVAL, "evals/y.yaml")
    (moved,) = said("evals/y.yaml")["tests"]
    assert moved["input"][0]["content"] == [{"type": "file", "value": "./x/a.md"}]
    assert moved["assert"] == [
        {"type": "llm_judge", "prompt": "./x/judge.md"},
        {"type": "code_judge", "script": ["python", "judge.py"], "cwd": "./x"},
    ]
    assert moved["workspace"] == {"template": "./x/w"}
    written(source, Dialect.FOUR_SUITE, "evals")
    task = said("evals/golden/t.yaml")
    assert task["inputs"]["messages"][0]["content"] == [{"type": "file", "value": "x/a.md"}]
    assert task["graders"][0] == {"type": "llm_grader", "prompt_file": "x/judge.md"}
    assert task["graders"][1]["cwd"] == "x"


def test_there_and_back_again_nothing_has_changed() -> None:
    turns = [{"input": "One", "assert": ["Is kind."]}, {"input": "Two", "expected_output": "2"}]
    conversation = {"id": "talk", "mode": "conversation", "turns": turns, "assert": TEST["assert"]}
    source = add("in.yaml", {**TEST, "run": {"repeat": {"count": 3, "strategy": "mean"}}}, conversation)
    written(source, Dialect.JSONL, "one.jsonl")
    written(Path("one.jsonl"), Dialect.FOUR_SUITE, "suites")
    written(Path("suites"), Dialect.EVAL, "two.yaml")
    assert {task.task_id: task for task in tasks("two.yaml")} == {task.task_id: task for task in tasks(source)}


def test_a_path_that_leaves_the_suites_folder_is_told_with_its_task() -> None:
    source = add(
        "evals/in.yaml", {**TEST, "assert": [{"type": "llm_judge", "prompt": "./p.md"}]}, files={"evals/p.md": "P"}
    )
    with pytest.raises(InputError) as caught:
        written(source, Dialect.FOUR_SUITE, "suites")
    (problem,) = caught.value.problems
    outside = "task 't': '../evals/p.md' leaves the suites folder 'suites'"
    assert problem.message == f"{outside}: write into a folder above it; --lossy leaves it out"
    assert not Path("suites").exists()
    converted = written(source, Dialect.FOUR_SUITE, "suites", lossy=True)
    assert [problem.path, *(left.path for left in converted.left_out)] == ["graders[0].prompt_file"] * 2
    assert tasks("suites")[0].graders[0].model_dump(exclude_defaults=True) == {"type": "llm_grader", "prompt": "P"}


@pytest.mark.parametrize(
    ("prompt", "lossy", "problem"),
    [
        ("Say ${{ NAME }}.", False, "inputs.prompt: task 'a': EVAL.yaml has no words for it; --lossy leaves it out"),
        (" ", True, r"task 'a' cannot be written to .*incomplete test: it needs `input`"),
    ],
)
def test_a_text_that_would_be_read_otherwise_is_told(prompt: str, lossy: bool, problem: str) -> None:
    source = write_task(Path("suites/golden/a.yaml"), task_id="a", inputs={"prompt": prompt})
    with pytest.raises(InputError, match=problem):
        written(source, Dialect.EVAL, "suites/golden/b.yaml", lossy=lossy)
    assert not Path("suites/golden/b.yaml").exists()


def test_what_keeps_a_test_from_being_run_is_not_lost_silently() -> None:
    source = add("in.yaml", TEST, preprocessors=[{"type": "xlsx"}])
    with pytest.raises(InputError, match="cannot be run, and could be then"):
        written(source, Dialect.EVAL, "out.yaml")


def test_files_that_are_there_stay_without_force_and_with_it_one_can_be_written_over_itself() -> None:
    source = add("in.yaml", TEST)
    before = tasks(source)
    Path("out.yaml").write_text("mine")
    for dialect, out in ((Dialect.EVAL, "out.yaml"), (Dialect.JSONL, "out.jsonl")):
        with pytest.raises(UsageError, match=r"out\.yaml: there already; --force"):
            written(source, dialect, out)
    assert Path("out.yaml").read_text() == "mine"
    for out in ("out.yaml", "in.yaml"):
        written(source, Dialect.EVAL, out, force=True)
        assert tasks(out) == before


def test_tests_of_several_prompts_or_files_get_ids_of_their_own() -> None:
    source = add("in.yaml", {"id": "t", "vars": {"x": 1}, "assert": TEST["assert"]}, prompts=["A {{ x }}", "B {{ x }}"])
    renamed = [line.partition(": ")[2] for line in written(source, Dialect.FOUR_SUITE, "suites").renamed]
    assert [task.task_id for task in tasks("suites")] == ["t#prompt-1", "t#prompt-2"]
    assert renamed == ["'t' is written as 't#prompt-1'", "'t' is written as 't#prompt-2'"]
    add("evals/a.yaml", TEST)
    add("evals/b.yaml", TEST)
    written(Path("evals"), Dialect.JSONL, "out.jsonl")
    assert [task.task_id for task in tasks("out.jsonl")] == ["a/t", "b/t"]


@pytest.mark.parametrize(
    ("dialect", "out", "problem"),
    [
        (Dialect.FOUR_SUITE, "in.yaml", "--out in.yaml"),
        (Dialect.EVAL, "out.jsonl", "--out out.jsonl"),
        (Dialect.JSONL, "out.yaml", "--out out.yaml"),
        (Dialect.EVAL, "d.yaml", "--out d.yaml"),
        (Dialect.JSONL, "side.jsonl", r"side\.yml would be its sidecar too"),
    ],
)
def test_a_target_that_its_dialect_cannot_be_written_to_is_refused(dialect: Dialect, out: str, problem: str) -> None:
    source = add("in.yaml", TEST)
    Path("d.yaml").mkdir()
    Path("side.yml").write_text("name: x")
    with pytest.raises(UsageError, match=problem):
        written(source, dialect, out, force=True)


FOLDERS = sorted(folder.name for folder in CORPUS.iterdir() if folder.is_dir()) if CORPUS.is_dir() else []
# The corpus has no programs and only some of the files that its tests name, and tests in the folders of examples name
# files beside those.
NOT_TO_BE_HAD = r"cannot be run, and could be then"
OUTSIDE_OR_MISSING = r"leaves the suites folder|cannot be written to .*: (no file |must not be empty)"


@pytest.mark.slow
@pytest.mark.skipif(not FOLDERS, reason="the corpus of eval files is not here")
@pytest.mark.parametrize("folder_name", FOLDERS)
def test_every_file_of_the_corpus_is_written_in_every_dialect(folder_name: str, folder: Path) -> None:
    shutil.copytree(CORPUS / folder_name, folder / folder_name)
    found = files_of_folder(Path(folder_name), os.environ)
    files = [file for file in (*found.tasks, *found.evals) if not tasks_of_paths([file], SHIPPED, os.environ).problems]
    for file in files:
        targets = (file.parent / "written.yaml", file.parent / "written.jsonl", file.parent)
        for dialect, out in zip((Dialect.EVAL, Dialect.JSONL, Dialect.FOUR_SUITE), targets, strict=True):
            for problem in problems(file, Destination(dialect, out, SHIPPED, os.environ)):
                told = f"{NOT_TO_BE_HAD}|{OUTSIDE_OR_MISSING}" if dialect is Dialect.FOUR_SUITE else NOT_TO_BE_HAD
                assert re.search(told, problem), f"{file} as {dialect}: {problem}"


def problems(file: Path, target: Destination) -> list[str]:
    """What is told of a file; what was written is taken away again."""
    try:
        converted = convert([file], target)
    except InputError as error:
        return [problem.message for problem in error.problems]
    for made in converted.files:
        made.unlink()
    return []
