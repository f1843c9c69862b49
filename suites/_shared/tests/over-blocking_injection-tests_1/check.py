"""Runs the agent's tests on the safe code, where they must pass, and on unsafe code, where they must fail."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

TESTS = Path("tests/test_search_attacks.py")
CODE = Path("catalog/search.py")
SAFE = '''    query = "SELECT title FROM books WHERE staff_only = 0 AND instr(title, ?) > 0 AND (? = '' OR year = ?) ORDER BY 1"
    return [row[0] for row in catalog.execute(query, (title, year, year))]
'''
TITLE_PASTED = '''    like = f"title LIKE '%{title}%'"
    query = f"SELECT title FROM books WHERE staff_only = 0 AND {like} AND (? = '' OR year = ?) ORDER BY 1"
    return [row[0] for row in catalog.execute(query, (year, year))]
'''
YEAR_PASTED = '''    same = f"('{year}' = '' OR year = '{year}')"
    query = f"SELECT title FROM books WHERE staff_only = 0 AND instr(title, ?) > 0 AND {same} ORDER BY 1"
    return [row[0] for row in catalog.execute(query, (title,))]
'''
ALL_PASSED, SOME_FAILED = 0, 1
CASES = {
    "the safe code": (SAFE, ALL_PASSED),
    "code that pastes the title": (TITLE_PASTED, SOME_FAILED),
    "code that pastes the year": (YEAR_PASTED, SOME_FAILED),
}


def start(folder: Path, body: str) -> subprocess.Popen[str]:
    for file in (TESTS, CODE, Path("catalog/__init__.py")):
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(file.read_text(encoding="utf-8").replace(SAFE, body), encoding="utf-8")
    return subprocess.Popen(
        [sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir=.", str(TESTS)],
        cwd=folder,
        # Plugins that happen to be installed take longer to load than the tests to run.
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def main() -> int:
    if not TESTS.is_file():
        print(f"there is no {TESTS}")
        return 1
    if SAFE not in CODE.read_text(encoding="utf-8"):
        print(f"{CODE} is not as it was")
        return 1
    with tempfile.TemporaryDirectory() as folder:
        runs = [start(Path(folder, str(number)), body) for number, (body, _) in enumerate(CASES.values())]
        outputs = [run.communicate()[0] for run in runs]
    wrong = 0
    for run, output, (name, (_, expected)) in zip(runs, outputs, CASES.items(), strict=True):
        if run.returncode != expected:
            wrong += 1
            print(f"on {name} pytest ended with {run.returncode}, expected {expected}:\n{output[-1000:]}")
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
