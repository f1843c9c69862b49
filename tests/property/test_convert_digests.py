"""What is converted keeps its digests: the shipped tasks and every eval file of the corpus, there and back."""

import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from tests.builders import SHIPPED
from tests.conformance.corpus import CORPUS
from tests.project import REPOSITORY

from passgate.tasks.commands.convert import Converted, Destination, Dialect, convert
from passgate.tasks.errors import InputError
from passgate.tasks.formats.evals.read.folder import files_of_folder
from passgate.tasks.formats.loading import load_paths

Digests = dict[str, tuple[str, str]]


def digests(paths: Iterable[Path]) -> Digests:
    """The digests of a task and of its graders, by what its file calls the task."""
    loaded = load_paths(paths, SHIPPED)
    assert loaded.problems == ()
    return {task.own_id: (task.task_digest, task.grader_digest) for task in loaded.tasks}


def written(sources: Iterable[Path], dialect: Dialect, root: Path) -> Converted:
    names = {Dialect.FOUR_SUITE: root, Dialect.EVAL: root / "there.eval.yaml", Dialect.JSONL: root / "there.jsonl"}
    return convert([*sources], Destination(dialect, names[dialect], SHIPPED, {}, overwrite=True))


def kept(sources: list[Path], dialect: Dialect, back: Dialect, root: Path) -> Iterator[Digests]:
    """The digests in the files of another dialect, and in those that are made of these."""
    there = written(sources, dialect, root)
    assert [problem for problem in there.not_comparable if "digest" in problem.message] == []
    files = there.files[: 1 if dialect is Dialect.JSONL else None]
    yield digests(files)
    again = written(files, back, root)
    yield digests(again.files[: 1 if back is Dialect.JSONL else None])


@pytest.mark.parametrize("dialect", list(Dialect))
def test_shipped_tasks_keep_their_digests(tmp_path: Path, dialect: Dialect) -> None:
    (tmp_path / ".git").mkdir()
    suites = shutil.copytree(REPOSITORY / "suites", tmp_path / "suites")
    sources = sorted(files_of_folder(suites, {}).tasks)
    before = digests(sources)
    for after in kept(sources, dialect, Dialect.FOUR_SUITE, suites):
        assert after == before


FOLDERS = ("agentevals", "agentevals-old-evalcases", "agentv/v4.42.4", "agentv/head-58f316c", "probes")


@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.skipif(not CORPUS.is_dir(), reason=f"there is no corpus at {CORPUS}")
@pytest.mark.parametrize("folder", FOLDERS)
def test_eval_files_keep_their_digests(tmp_path: Path, folder: str) -> None:
    corpus = shutil.copytree(CORPUS / folder, tmp_path / "corpus", copy_function=shutil.copyfile)
    (corpus / ".git").mkdir()
    converted = 0
    for file in sorted(files_of_folder(corpus, {}).evals):
        loaded = load_paths([file], SHIPPED)
        if loaded.problems or len({task.own_id for task in loaded.tasks}) < len(loaded.tasks):
            continue  # a test of several prompts is one of several tasks, each of which is called otherwise then
        before = digests([file])
        for dialect in Dialect:
            try:
                assert [*kept([file], dialect, Dialect.EVAL, file.parent)] == [before, before], file
                converted += 1
            except InputError:
                pass  # what a dialect cannot say is refused, and digests of nothing are compared
            finally:
                for made in (*file.parent.glob("there*"), *file.parent.glob("golden/*")):
                    made.unlink()
    assert converted > 0
