"""Every file of the corpus that loads, written in every dialect: nothing is lost that is not told."""

import os
import re
import shutil
from pathlib import Path

import pytest

from passgate.tasks.commands.convert import Destination, Dialect, convert
from passgate.tasks.errors import InputError
from passgate.tasks.formats.evals.read.folder import files_of_folder
from passgate.tasks.formats.loading import tasks_of_paths
from tests.builders import SHIPPED
from tests.unit.formats.evals.schema_answers import CORPUS

FOLDERS = sorted(folder.name for folder in CORPUS.iterdir() if folder.is_dir()) if CORPUS.is_dir() else []
NOT_TO_BE_HAD = r"cannot be run, and could be then"
OUTSIDE = r"leaves the suites folder"
MISSING = r"cannot be written to .*: no file "
GONE_WITH_THEM = r"cannot be written to .*: must not be empty"
EXPECTED = {
    Dialect.EVAL: NOT_TO_BE_HAD,
    Dialect.JSONL: NOT_TO_BE_HAD,
    Dialect.FOUR_SUITE: "|".join((NOT_TO_BE_HAD, OUTSIDE, MISSING, GONE_WITH_THEM)),
}
"""What may be told: the corpus has no programs and only some of the files that its tests name, and tests in the folders
of examples name files beside those.
"""

pytestmark = [pytest.mark.skipif(not FOLDERS, reason="the corpus of eval files is not here"), pytest.mark.slow]


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_file_is_written_in_every_dialect(folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(CORPUS / folder, tmp_path / folder)
    monkeypatch.chdir(tmp_path)
    found = files_of_folder(Path(folder), os.environ)
    files = [file for file in (*found.tasks, *found.evals) if not tasks_of_paths([file], SHIPPED, os.environ).problems]
    for file in files:
        for dialect, out in _targets(file):
            for problem in _problems(file, Destination(dialect, out, SHIPPED, os.environ)):
                assert re.search(EXPECTED[dialect], problem), f"{file} as {dialect}: {problem}"


def _targets(file: Path) -> list[tuple[Dialect, Path]]:
    return [
        (Dialect.EVAL, file.parent / "written.yaml"),
        (Dialect.JSONL, file.parent / "written.jsonl"),
        (Dialect.FOUR_SUITE, file.parent),
    ]


def _problems(file: Path, target: Destination) -> list[str]:
    """What is told of a file; what was written is taken away again."""
    try:
        converted = convert([file], target)
    except InputError as error:
        return [problem.message for problem in error.problems]
    for written in converted.files:
        written.unlink()
    return []
