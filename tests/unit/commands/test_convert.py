"""Eval files written as task files, or anew in YAML or JSONL."""

import os
import re
import shutil
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from passgate.tasks.commands.convert import Converted, Destination, TargetFormat, convert
from passgate.tasks.errors import InputError, UsageError
from passgate.tasks.formats import loading
from passgate.tasks.formats.document import SourceTexts
from passgate.tasks.formats.folder import folder_files, path_files
from passgate.tasks.formats.loading import load_paths
from passgate.tasks.formats.schema_check import schema_validator
from passgate.tasks.model.task import TaskFile
from tests.builders import SHIPPED
from tests.conformance.corpus import CORPUS

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


def written(source: Path, dialect: TargetFormat, out: str, *, lossy: bool = False, force: bool = False) -> Converted:
    return convert([source], Destination(dialect, Path(out), SHIPPED, {}, lossy=lossy, overwrite=force))


def tasks(path: str | Path) -> list[TaskFile]:
    """The tasks of files of either kind."""
    readers = {True: partial(loading.read_eval_file, environment={}), False: loading.read_task_file}
    files, _ = path_files([Path(path)], {}, SourceTexts())
    found = [readers[one.is_eval](one.file, one.root, SHIPPED) for one in files]
    assert [problem for one in found for problem in one.problems] == []
    return [source.task for one in found for source in one.tasks]


def test_task_files_lie_in_the_folders_of_their_suites_and_fit_their_schema() -> None:
    source = add("in.yaml", TEST, {**TEST, "id": "a/b", "suite": "adversarial"})
    converted = written(source, TargetFormat.FOUR_SUITE, "suites")
    assert [str(file) for file in converted.files] == ["suites/golden/t.yaml", "suites/adversarial/a-b.yaml"]
    assert tasks("suites") == [*reversed(tasks(source))]
    for file in converted.files:
        assert schema_validator("task").is_valid(yaml.safe_load(file.read_text()))


def test_the_same_tests_are_in_yaml_and_in_lines() -> None:
    source = add("in.yaml", TEST, {**TEST, "id": "u"}, suite="golden", threshold=0.5)
    converted = written(source, TargetFormat.JSONL, "out.jsonl")
    assert [str(file) for file in converted.files] == ["out.jsonl", "out.yaml"]
    assert tasks("out.jsonl") == tasks(source)
    assert tasks(written(Path("out.jsonl"), TargetFormat.EVAL, "back.yaml").files[0]) == tasks(source)


def test_paths_in_task_files_lead_to_the_same_files() -> None:
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
    written(source, TargetFormat.FOUR_SUITE, "evals")
    task = yaml.safe_load(Path("evals/golden/t.yaml").read_text())
    assert task["inputs"]["messages"][0]["content"] == [{"type": "file", "value": "x/a.md"}]
    assert task["graders"][0] == {"type": "llm_grader", "prompt_file": "x/judge.md"}
    assert task["graders"][1]["cwd"] == "x"
    assert task["environment"]["workspace"]["template"] == "x/w"


def test_a_path_that_leaves_the_suites_folder_is_told_with_its_task() -> None:
    source = add(
        "evals/in.yaml", {**TEST, "assert": [{"type": "llm_judge", "prompt": "./p.md"}]}, files={"evals/p.md": "P"}
    )
    with pytest.raises(InputError) as caught:
        written(source, TargetFormat.FOUR_SUITE, "suites")
    (problem,) = caught.value.problems
    outside = "task 't': '../evals/p.md' leaves the suites folder 'suites'"
    assert problem.message == f"{outside}: write into a folder above it; --lossy omits it"
    assert not Path("suites").exists()
    converted = written(source, TargetFormat.FOUR_SUITE, "suites", lossy=True)
    assert [problem.path, *(left.path for left in converted.left_out)] == ["graders[0].prompt_file"] * 2
    assert tasks("suites")[0].graders[0].model_dump(exclude_defaults=True) == {"type": "llm_grader", "prompt": "P"}


def test_what_keeps_a_test_from_being_run_is_not_lost_silently() -> None:
    source = add("in.yaml", TEST, preprocessors=[{"type": "xlsx"}])
    with pytest.raises(InputError, match="cannot be run, and could be then"):
        written(source, TargetFormat.FOUR_SUITE, "suites")
    written(source, TargetFormat.JSONL, "out.jsonl")
    assert len(load_paths([Path("out.jsonl")], SHIPPED).cannot_run) == 1


def test_files_that_are_there_stay_without_force_and_with_it_one_can_be_written_over_itself() -> None:
    source = add("in.yaml", TEST)
    before = tasks(source)
    Path("out.yaml").write_text("mine")
    with pytest.raises(UsageError, match=r"out\.yaml: there already; --force"):
        written(source, TargetFormat.EVAL, "out.yaml")
    assert Path("out.yaml").read_text() == "mine"
    for out in ("out.yaml", "in.yaml"):
        written(source, TargetFormat.EVAL, out, force=True)
        assert tasks(out) == before


def test_tests_of_several_prompts_or_files_get_ids_of_their_own() -> None:
    source = add("in.yaml", {"id": "t", "vars": {"x": 1}, "assert": TEST["assert"]}, prompts=["A {{ x }}", "B {{ x }}"])
    renamed = [line.partition(": ")[2] for line in written(source, TargetFormat.FOUR_SUITE, "suites").renamed]
    assert [task.task_id for task in tasks("suites")] == ["t#prompt-1", "t#prompt-2"]
    assert renamed == ["'t' is written as 't#prompt-1'", "'t' is written as 't#prompt-2'"]
    add("evals/a.yaml", TEST)
    add("evals/b.yaml", TEST)
    written(Path("evals"), TargetFormat.FOUR_SUITE, "other")
    assert [task.task_id for task in tasks("other")] == ["a/t", "b/t"]


@pytest.mark.parametrize(
    ("dialect", "source", "out", "problem"),
    [
        (TargetFormat.FOUR_SUITE, "in.yaml", "in.yaml", "--out in.yaml"),
        (TargetFormat.EVAL, "in.yaml", "out.jsonl", "--out out.jsonl: expected the name of a file that ends in .yaml"),
        (TargetFormat.JSONL, "in.yaml", "out.yaml", "--out out.yaml"),
        (TargetFormat.EVAL, "in.yaml", "d.yaml", "--out d.yaml"),
        (TargetFormat.JSONL, "in.yaml", "side.jsonl", r"side\.yml would be its sidecar too"),
        (
            TargetFormat.JSONL,
            "in.yaml",
            "sub/x.jsonl",
            r"name a file in the folder of in\.yaml, for its paths start there",
        ),
        (TargetFormat.JSONL, "many", "many/x.jsonl", "name one, not 2"),
        (TargetFormat.EVAL, "many/takes.yaml", "many/x.yaml", "no list of tests of its own"),
        (TargetFormat.EVAL, "none", "x.yaml", "no eval files in none"),
    ],
)
def test_what_cannot_be_converted_is_refused(dialect: TargetFormat, source: str, out: str, problem: str) -> None:
    add("in.yaml", TEST)
    add("many/a.yaml", TEST)
    add("many/takes.yaml", files={"many/cases.jsonl": '{"id": "x", "input": "x", "criteria": "c"}\n'})
    Path("many/takes.yaml").write_text("tests: ./cases.jsonl\n")
    for name in ("d.yaml", "sub", "none"):
        Path(name).mkdir()
    Path("side.yml").write_text("name: x")
    with pytest.raises(UsageError, match=problem):
        written(Path(source), dialect, out, force=True)


FOLDERS = sorted(folder.name for folder in CORPUS.iterdir() if folder.is_dir()) if CORPUS.is_dir() else []
# The corpus has no programs and only some of the files that its tests name, and tests in the folders of examples name
# files beside those.
UNAVAILABLE = (
    r"cannot be run, and could be then|leaves the suites folder|cannot be written to .*: (no file |must not be)"
)
NOT_ITSELF = r"no list of tests of its own"


@pytest.mark.slow
@pytest.mark.skipif(not FOLDERS, reason="the corpus of eval files is not here")
@pytest.mark.parametrize("folder_name", FOLDERS)
def test_every_file_of_the_corpus_is_written_in_every_dialect(folder_name: str, folder: Path) -> None:
    shutil.copytree(CORPUS / folder_name, folder / folder_name)
    found = folder_files(Path(folder_name), os.environ)
    converted = 0
    for file in (file for file in found.evals if not load_paths([file], SHIPPED).problems):
        digests = {task.own_id: (task.task_digest, task.grader_digest) for task in load_paths([file], SHIPPED).tasks}
        for problem in problems(file, Destination(TargetFormat.FOUR_SUITE, file.parent, SHIPPED, os.environ)):
            assert re.search(UNAVAILABLE, problem), f"{file}: {problem}"
        for dialect, out in ((TargetFormat.EVAL, "written.yaml"), (TargetFormat.JSONL, "written.jsonl")):
            made = anew(file, Destination(dialect, file.parent / out, SHIPPED, os.environ))
            if isinstance(made, str):
                assert re.search(NOT_ITSELF, made), f"{file}: {made}"
                continue
            again = load_paths(made[:1], SHIPPED).tasks
            assert {task.own_id: (task.task_digest, task.grader_digest) for task in again} == digests, file
            converted += 1
            remove(made)
    assert converted or not found.evals


def anew(file: Path, target: Destination) -> tuple[Path, ...] | str:
    """The files of the same tests, or why there are none."""
    try:
        return convert([file], target).files
    except UsageError as error:
        return str(error)


def problems(file: Path, target: Destination) -> list[str]:
    """What is told of a file; what was written is taken away again."""
    try:
        remove(convert([file], target).files)
    except InputError as error:
        return [problem.message for problem in error.problems]
    return []


def remove(files: Iterable[Path]) -> None:
    for file in files:
        file.unlink()
