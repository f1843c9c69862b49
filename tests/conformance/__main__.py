"""`python -m tests.conformance CORPUS [TYPE]`: prints how many scores agree, by grader type, and every difference.

Exit code 0 when each difference is explained, 1 when one is not, 2 without a corpus.
"""

import asyncio
import shutil
import sys
import tempfile
from pathlib import Path

from tests.conformance.compare import Compared, Finding
from tests.conformance.explained import explanation_of
from tests.conformance.rows import RESULTS
from tests.conformance.run import Corpus, compare_all, counted

EXPLAINED = "explained"


def main(arguments: list[str]) -> int:
    """See the module."""
    if not arguments or not (Path(arguments[0]) / RESULTS).is_file():
        print(f"usage: python -m tests.conformance CORPUS [TYPE]: a folder with eval files and {RESULTS}")
        return 2
    every = [one for one in compared_in(Path(arguments[0])) if one.type in arguments[1:] or not arguments[1:]]
    print(table(every))
    unexplained = [one for one in every if one.finding is Finding.DIFFERING and explanation_of(one) is None]
    for one in unexplained:
        print(f"differing: {one.type}: {one.row.label}: {one.detail}")
    return 1 if unexplained else 0


def compared_in(corpus: Path) -> list[Compared]:
    """Every score of the corpus compared, on a copy of it: graders may write beside themselves."""
    with tempfile.TemporaryDirectory(prefix="conformance-") as name:
        scratch = Path(name)
        for folder in ("workspace", "scratch"):
            (scratch / folder).mkdir()
        copy = shutil.copytree(corpus, scratch / "corpus", copy_function=shutil.copyfile)
        return asyncio.run(_all(Corpus(Path(copy), scratch)))


async def _all(corpus: Corpus) -> list[Compared]:
    return [one async for one in compare_all(corpus)]


def table(every: list[Compared]) -> str:
    """The counts by type."""
    columns = (*Finding, EXPLAINED)
    lines = [f"{'type':28}" + "".join(f"{column:>14}" for column in columns)]
    for name, counts in counted([one for one in every if not _is_explained(one)]):
        known = sum(one.type == name and _is_explained(one) for one in every)
        figures = [*(counts.get(column, 0) for column in Finding), known]
        lines.append(f"{name:28}" + "".join(f"{figure:14}" for figure in figures))
    return "\n".join(lines)


def _is_explained(one: Compared) -> bool:
    return one.finding is Finding.DIFFERING and explanation_of(one) is not None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
