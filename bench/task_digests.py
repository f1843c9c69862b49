"""The digests of tasks, to compare two commits: `python -m bench.task_digests [FOLDER...]`.

Prints a line for every task of each folder, `suites` when none is named: the file, `suite/task_id`, the task's digest
and its graders' digest. A file that is refused has a line that says so. Two commits that print the same read the files
the same, and results recorded under one of them count under the other:

    python -m bench.task_digests suites CORPUS > before.txt
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

from passgate.tasks.formats.folder import folder_files
from passgate.tasks.formats.loading import load_paths, policy_or_default
from passgate.tasks.model.policy import Policy


def lines_of_folder(folder: Path, policy: Policy) -> Iterator[str]:
    """A line for every task of a folder and for every file that is refused, by the files' names."""
    found = folder_files(folder, {})
    for file in sorted((*found.tasks, *found.evals)):
        yield from lines_of_file(file, file.relative_to(folder).as_posix(), policy)


def lines_of_file(file: Path, name: str, policy: Policy) -> Iterator[str]:
    """A line for every task of a file, which is called by its name in the folder."""
    loaded = load_paths([file], policy)
    if loaded.problems:
        yield f"{name} refused"
    for task in loaded.tasks:
        yield f"{name} {task.suite}/{task.task_id} {task.task_digest} {task.grader_digest}"


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, default=[Path("suites")])
    policy = policy_or_default(Path("gates.yaml"))
    for folder in parser.parse_args().folders:
        for line in lines_of_folder(folder.absolute(), policy):
            print(line)


if __name__ == "__main__":
    main()
