"""Change the code in small wrong ways, one at a time, and say which test notices.

    python -m bench.code_mutations [--only 3 17] [--groups fast slow] [--output FILE]

The changes are in code_mutations.yaml. Each is made in the working tree and undone; the file that it changes must have
no other change. The tests of that file run first, then those of its folder, then those of `make test`, then those of
`make test-slow`, until one fails. A test counts that passes again when the change is undone.
"""

import argparse
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import yaml

REPOSITORY = Path(__file__).parent.parent
MUTATIONS = Path(__file__).with_suffix(".yaml")
FAST, SLOW = "fast", "slow"
_MARKERS = {FAST: "not slow", SLOW: "slow"}
_NO_TESTS = 5  # pytest's exit code
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+?::.*?)(?: - .*)?$", re.MULTILINE)


@dataclass(frozen=True)
class Mutation:
    """A small wrong change of one file."""

    number: int
    file: str
    right: str
    wrong: str
    effect: str

    def tests(self) -> Iterator[list[str]]:
        """Give the arguments of pytest for the tests of the file, then of its folder, then for all."""
        room, *parts = Path(self.file).parent.parts
        if room == "flows":
            folder = Path("tests", "cli" if parts == ["cli"] else "flows")
        else:
            folder = Path("tests", "unit", *parts)
        name = Path(self.file).stem
        own = [*(REPOSITORY / folder).glob(f"test_*{name}*.py"), *(REPOSITORY / folder).glob(f"{name}/")]
        if own:
            yield [str(path.relative_to(REPOSITORY)) for path in own]
        yield [str(folder)]
        yield []


@dataclass(frozen=True)
class Result:
    """What the tests have made of a mutation."""

    number: int
    file: str
    caught_by: str | None
    group: str | None
    seconds: float


def main() -> int:
    """Print a line for each mutation, and how many are caught. Return 1 if one survives."""
    options = _options()
    results = []
    for mutation in _mutations():
        if not options.only or mutation.number in options.only:
            results.append(_tried(mutation, options.groups))
            _print(results[-1], mutation)
            if options.output:
                options.output.write_text(json.dumps([asdict(one) for one in results], indent=1) + "\n")
    caught = [one for one in results if one.caught_by]
    by_group = ", ".join(f"{sum(one.group == group for one in caught)} by the {group} tests" for group in _MARKERS)
    print(f"{len(caught)} of {len(results)} caught: {by_group}")
    return 0 if len(caught) == len(results) else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", type=int, nargs="+", help="the numbers of mutations, from 1")
    parser.add_argument("--groups", nargs="+", choices=_MARKERS, default=list(_MARKERS))
    parser.add_argument("--output", type=Path, help="a JSON file for the results")
    return parser.parse_args()


def _mutations() -> list[Mutation]:
    entries = yaml.safe_load(MUTATIONS.read_text(encoding="utf-8"))
    return [
        Mutation(number, entry["file"], entry["from"], entry["to"], entry["wrong"])
        for number, entry in enumerate(entries, 1)
    ]


def _tried(mutation: Mutation, groups: Sequence[str]) -> Result:
    start = time.monotonic()
    for group in groups:
        for where in mutation.tests():
            test = _first_that_notices(mutation, group, where)
            if test is not None:
                return Result(mutation.number, mutation.file, test, group, round(time.monotonic() - start))
    return Result(mutation.number, mutation.file, None, None, round(time.monotonic() - start))


def _first_that_notices(mutation: Mutation, group: str, where: Sequence[str]) -> str | None:
    """The first test that fails because of the mutation. A test that fails without it is left out of the next try."""
    left_out: list[str] = []
    while True:
        with _mutated(mutation):
            failed = _failed_tests(
                ["-m", _MARKERS[group], "-n", "2" if where else "4", "--dist", "worksteal", "-x", *where, *left_out]
            )
        sound = [test for test in failed if not _failed_tests([test])]
        if sound or not failed:
            return sound[0] if sound else None
        left_out += [f"--deselect={test}" for test in failed]


def _failed_tests(arguments: Sequence[str]) -> list[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-r", "fE", "--tb=no", *arguments]
    ended = subprocess.run(command, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if ended.returncode in {0, _NO_TESTS}:
        return []
    found = _FAILED.findall(ended.stdout)
    if not found:
        raise SystemExit(f"no test has failed, and the tests did not pass:\n{ended.stdout[-5000:]}")
    return found


@contextmanager
def _mutated(mutation: Mutation) -> Iterator[None]:
    """The file with its change, while the context lasts."""
    file = REPOSITORY / mutation.file
    before = file.read_text(encoding="utf-8")
    if before.count(mutation.right) != 1:
        raise SystemExit(f"{mutation.file}: this must occur once, and does not: {mutation.right}")
    file.write_text(before.replace(mutation.right, mutation.wrong), encoding="utf-8")
    try:
        yield
    finally:
        file.write_text(before, encoding="utf-8")


def _print(result: Result, mutation: Mutation) -> None:
    noticed = f"{result.group}: {result.caught_by}" if result.caught_by else f"SURVIVES: {mutation.effect}"
    print(f"{result.number:3} {result.seconds:5.0f} s  {result.file}  {noticed}", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
