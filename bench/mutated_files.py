"""What reading says of broken files: `python -m bench.mutated_files [--files 10000] [--seed 0] [CORPUS]`.

Takes the shipped suites, gates.yaml, prices, an agents.yaml, a quarantine.yaml, the examples of the tests, and the eval
files of CORPUS where one is given; breaks copies of them, and reads each as `passgate validate` does. Prints every
mutation that ends in an exception, takes more than 5 s of CPU, or has a problem without file, line and column. The
broken file is kept. Exit code 1 where there is one.
"""

import argparse
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import chdir, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from bench.mutations import MUTATIONS
from passgate.tasks.commands.validate import readers_of_settings
from passgate.tasks.errors import InputError, Problem
from passgate.tasks.formats.loading import load_paths, policy_or_default
from passgate.tasks.formats.project_files import QUARANTINE_FILE, read_quarantine
from passgate.tasks.planning.requirements import problems_at_gates

REPOSITORY = Path(__file__).parents[1]
MOST_SECONDS = 5
PLACE = re.compile(r".+:[1-9]\d*:[1-9]\d*: .", re.DOTALL)
SUFFIXES = {".yaml", ".yml", ".jsonl", ".json", ".csv"}
AGENTS = """\
version: 1
agents:
  bot: {agent: 'openai:gpt-x', base_url: 'http://127.0.0.1:1/v1'}
  tool: {agent: 'cli:my-agent {prompt_file}'}
"""
QUARANTINE = """\
tasks:
- {task: golden/round-half-cents_1, owner: Ann, reason: flaky, issue: 'https://host/1', expires: 2026-12-31}
"""


@dataclass(frozen=True)
class Found:
    """What is wrong with reading a file."""

    what: str
    detail: str


class OverTimeError(Exception):
    """A file took too much CPU."""


@contextmanager
def bounded(seconds: int) -> Iterator[None]:
    """Raises `OverTimeError` after so many seconds of CPU."""

    def end(*_: object) -> None:
        raise OverTimeError

    before = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def problems_of(file: Path) -> Sequence[Problem]:
    """What `passgate validate` finds wrong with a file."""
    read = readers_of_settings("gates.yaml").get(file.name, _read_quarantine if file.name == QUARANTINE_FILE else None)
    if read is not None:
        try:
            read(file)
        except InputError as error:
            return error.problems
        return ()
    policy = policy_or_default(Path("gates.yaml"))
    loaded = load_paths([file], policy)
    runnable = [task for task in loaded.tasks if not task.cannot_run]
    return [*problems_at_gates(runnable, policy), *loaded.problems, *loaded.cannot_run, *loaded.warnings]


def _read_quarantine(file: Path) -> None:
    answer = read_quarantine(file, file.name, datetime.now(UTC).date())
    if isinstance(answer, list):
        raise InputError(answer)


def look(file: Path) -> Found | None:
    """What is wrong with reading a file; `None` where it is as it should be."""
    try:
        with bounded(MOST_SECONDS):
            found = problems_of(file)
    except OverTimeError:
        return Found("too long", "".join(traceback.format_exc(limit=-3)))
    except BaseException as error:  # noqa: BLE001 - this is what is looked for
        return Found(type(error).__name__, "".join(traceback.format_exc(limit=-4)))
    without = [str(problem) for problem in found if not PLACE.match(str(problem))]
    return Found("no place", without[0]) if without else None


def sources(project: Path, corpus: Path | None) -> list[Path]:
    """The files that are broken, in a project of their own."""
    for name in ("suites", "gates.yaml"):
        origin = REPOSITORY / name
        shutil.copytree(origin, project / name) if origin.is_dir() else shutil.copy(origin, project / name)
    shutil.copy(REPOSITORY / "tasks/metering/prices.yaml", project / "prices.yaml")
    (project / "agents.yaml").write_text(AGENTS, encoding="utf-8")
    (project / "quarantine.yaml").write_text(QUARANTINE, encoding="utf-8")
    shutil.copytree(REPOSITORY / "tests/examples/valid", project / "examples")
    if corpus is not None:
        shutil.copytree(corpus, project / "corpus", symlinks=True)
    files = (file for file in project.rglob("*") if file.suffix in SUFFIXES and file.is_file())
    return sorted(file for file in files if "_shared" not in file.parts and file.stat().st_size < 200_000)


def broken(files: Sequence[Path], count: int, chance: random.Random) -> Iterator[tuple[Path, str, bytes]]:
    """Files, each with the name of a mutation and its bytes after it."""
    for _ in range(count):
        file = chance.choice(files)
        name, mutate = chance.choice(sorted(MUTATIONS.items()))
        content = file.read_bytes()
        for _ in range(chance.choice((1, 1, 1, 2, 4))):
            content = mutate(content, chance)
        yield file, name, content


def tried(file: Path, content: bytes) -> Found | None:
    """What is wrong with reading a file with other bytes, which it has only while it is read."""
    whole = file.read_bytes()
    try:
        file.write_bytes(content)
        return look(file)
    finally:
        file.write_bytes(whole)


@dataclass
class CheckCounts:
    """What is found, each kind told and kept once."""

    project: Path
    kept: Path
    kinds: Counter[str] = field(default_factory=Counter)

    def add(self, name: str, file: Path, content: bytes, found: Found) -> None:
        kind = f"{found.what}: {found.detail.strip().splitlines()[-1][:200]}"
        self.kinds[kind] += 1
        if self.kinds[kind] == 1:
            kept = self.kept / f"{len(self.kinds)}-{file.name}"
            kept.write_bytes(content)
            print(f"{kept} of {file.relative_to(self.project)}, {name}: {found.what}\n{found.detail}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", type=Path, nargs="?")
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    # A file that blows up is an exception then, and not the end of the machine.
    resource.setrlimit(resource.RLIMIT_AS, (4 * 2**30, 4 * 2**30))
    corpus = options.corpus.absolute() if options.corpus else None
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        project = Path(folder).resolve()
        files = sources(project, corpus)
        tally = CheckCounts(project, Path(tempfile.mkdtemp(prefix="mutated-")))
        for file, name, content in broken(files, options.files, random.Random(options.seed)):
            found = tried(file, content)
            if found is not None:
                tally.add(name, file, content, found)
    wrong = tally.kinds.total()
    print(f"{options.files} mutations of {len(files)} files: {wrong} not as they should be")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
