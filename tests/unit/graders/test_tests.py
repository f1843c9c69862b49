import sqlite3
from pathlib import Path
from typing import Any

import pytest

from passgate.tasks.graders.tests import Case, CaseStatus, read_report
from passgate.tasks.graders.workspace import UnusableFileError
from passgate.tasks.model.grade import Grade
from tests.unit.graders.trials import Files, Graded

APP = "def add(a, b):\n    return a + b\n"
WRONG_APP = "def add(a, b):\n    return 3\n"
TESTS = """\
import app

def test_adds():
    assert app.add(1, 2) == 3

def test_adds_negative():
    assert app.add(1, -2) == -1
"""


@pytest.fixture
def run(graded: Graded, leave: Files, provide: Files) -> Graded:
    """The grade of the files that an agent left, by hidden tests or those of them that are named."""

    async def ask(left: dict[str, str], tests: dict[str, str] | str = TESTS, *names: str, **fields: Any) -> Grade:
        hidden = {"test_app.py": tests} if isinstance(tests, str) else tests
        leave(left)
        provide(hidden)
        named = names or sorted({name.partition("/")[0] for name in hidden})
        return await graded({"type": "deterministic_tests", "tests": named, **fields})

    return ask


def messages(result: Grade) -> str:
    return "\n".join(check.message for check in result.checks)


async def test_all_tests_pass_and_leave_nothing_behind(run: Graded, workspace: Path) -> None:
    result = await run({"app.py": APP})
    assert (result.passed, result.score, messages(result)) == (True, 1.0, "2 of 2 tests passed")
    assert not list((workspace.parent / "scratch").iterdir())
    assert [path.name for path in workspace.iterdir()] == ["app.py"]


FIXTURE = "import pytest\n\n@pytest.fixture\ndef {name}():\n    {body}\n\n"
OWN_FOLDER = """\
import os, pathlib

def test_data():
    assert pathlib.Path(os.environ['PASSGATE_TESTS'], 'data.txt').read_text() == 'here'
"""


@pytest.mark.parametrize(
    "tests",
    [
        {
            "hidden/conftest.py": FIXTURE.format(name="five", body="return 5"),
            "hidden/sub/test_app.py": "def test_five(five):\n    assert five == 5\n",
        },
        {"test_app.py": OWN_FOLDER, "data.txt": "here"},
        {"test_app.py": "def test_made():\n    assert open('made.txt').read() == 'made'\n"},
    ],
    ids=["a conftest of the author", "their own folder", "the workspace"],
)
async def test_tests_find_what_they_need(tests: dict[str, str], run: Graded) -> None:
    assert (await run({"made.txt": "made"}, tests)).passed


KILLED = "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n"
CLAIM = "import os\nos.write(2, b'No module named pytest')\nos._exit(1)\n"
ENDED = "the code under test ended the process"
EXITS = "import os\nos._exit({})\n"
SKIPPED = "\nimport pytest\n\ndef test_later():\n    pytest.skip('not now')\n"
LATE = FIXTURE.format(name="broken", body="yield\n    raise ValueError('late')") + "def test_it(broken):\n    pass\n"


@pytest.mark.parametrize(
    ("left", "tests", "score", "said"),
    [
        ({"app.py": WRONG_APP}, TESTS, 0.5, "test_app.py::test_adds_negative: assert 3 == -1"),
        ({}, TESTS, 0.0, "No module named 'app'"),
        ({}, {"test_app.py": TESTS, "conftest.py": "import app\n"}, 0.0, "No module named 'app'"),
        ({"app.py": EXITS.format(0)}, TESTS, 0.0, f"exit code 0 and no usable report: {ENDED}"),
        ({"app.py": EXITS.format(3)}, TESTS, 0.0, f"exit code 3 and no usable report: {ENDED}"),
        ({"app.py": EXITS.format(5)}, TESTS, 0.0, f"exit code 5 and no usable report: {ENDED}"),
        *(({"app.py": KILLED}, TESTS, 0.0, ENDED), ({"app.py": CLAIM}, TESTS, 0.0, ENDED)),
        ({"app.py": APP}, TESTS + SKIPPED, pytest.approx(2 / 3), "was skipped"),
        ({}, LATE, 0.0, "late"),
    ],
    ids=[
        *["a wrong answer", "no module", "no module for a conftest", "exit code 0", "exit code 3", "exit code 5"],
        *["killed", "pytest is said to be missing", "skipped", "an error at teardown"],
    ],
)
async def test_what_fails_and_the_share_that_passed(left: Any, tests: Any, score: Any, said: str, run: Graded) -> None:
    result = await run(left, tests)
    assert (result.passed, result.score) == (False, score)
    assert said in messages(result)


MARKED = """
import pytest, sys

@pytest.mark.skipif(sys.platform != "win32", reason="for Windows")
def test_registry():
    raise AssertionError

class TestPlaces:
    @pytest.mark.skip
    @pytest.mark.parametrize("place", ["a", "b"])
    def test_later(self, place):
        raise AssertionError

@pytest.mark.xfail(strict=True)
def test_known_fault():
    raise AssertionError
"""


OF_UNITTEST = """\
import unittest

class AppTest(unittest.TestCase):
    def test_adds(self):
        import app
        assert app.add(1, 2) == 3

    @unittest.skipUnless(False, "elsewhere")
    def test_elsewhere(self):
        raise AssertionError

    @unittest.expectedFailure
    def test_later(self):
        self.fail()

@unittest.skip("not yet")
class LaterTest(unittest.TestCase):
    def test_later(self):
        self.fail()
"""


async def test_what_unittest_skips_does_not_count_and_only_its_author_can_mark_it(run: Graded) -> None:
    result = await run({"app.py": APP}, OF_UNITTEST)
    assert (result.passed, messages(result)) == (True, "2 of 2 tests passed")
    marks = "import unittest\nunittest.TestCase.__unittest_skip__ = True\n"
    forged = await run({"app.py": APP + marks}, OF_UNITTEST.replace("import unittest\n", "import app, unittest\n"))
    assert not forged.passed


async def test_what_its_author_skips_does_not_count_and_what_is_expected_to_fail_passes(run: Graded) -> None:
    result = await run({"app.py": APP}, TESTS + MARKED)
    assert (result.passed, result.score) == (True, 1.0)
    assert messages(result) == "3 of 3 tests passed"
    assert (await run({"app.py": WRONG_APP}, TESTS + MARKED)).score == pytest.approx(2 / 3)
    stopped = await run({"app.py": "import pytest\n" + APP + "pytest.exit('enough', returncode=0)\n"}, MARKED + TESTS)
    assert stopped.passed is False
    result = await run({}, MARKED.partition("@pytest.mark.xfail")[0])
    assert "marks skip every test on this machine" in result.error
    strict = MARKED.replace("test_known_fault():\n    raise AssertionError", "test_known_fault():\n    pass")
    assert (await run({"app.py": APP}, TESTS + strict)).passed is False


PLANTED = {
    "pytest.py": "raise SystemExit(0)\n",
    "_pytest.py": "raise SystemExit(0)\n",
    "conftest.py": "def pytest_runtest_call(item):\n    item.obj = lambda: None\n",
    "pytest.ini": "[pytest]\naddopts = --version\n",
    "pyproject.toml": "[tool.pytest.ini_options]\naddopts = '--collect-only'\n",
    "tox.ini": "[pytest]\naddopts = --version\n",
    "setup.cfg": "[tool:pytest]\naddopts = --version\n",
    "sitecustomize.py": "import os; os._exit(0)\n",
    "usercustomize.py": "import os; os._exit(0)\n",
    "evil-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: evil\nVersion: 1.0\n",
    "evil-1.0.dist-info/entry_points.txt": "[pytest11]\nevil = evil\n",
    "evil.py": "import os; os._exit(0)\n",
}


@pytest.mark.parametrize(("app", "score"), [(WRONG_APP, 0.5), (APP, 1.0)])
async def test_nothing_planted_changes_a_grade(app: str, score: float, run: Graded, plugins_of_pytest: None) -> None:
    result = await run({"app.py": app, **PLANTED})
    assert (result.passed, result.score) == (score == 1.0, score)
    assert ("assert 3 == -1" in messages(result)) is (app == WRONG_APP)


@pytest.mark.parametrize("where", ["import", "call"])
@pytest.mark.parametrize(
    "stop", ["pytest.exit('enough', returncode=0)", "pytest.skip('enough')", "raise SystemExit(0)"]
)
async def test_stopping_the_run_from_within_is_a_fail(stop: str, where: str, run: Graded) -> None:
    late = f"def add(a, b):\n    if b < 0:\n        {stop}\n    return a + b\n"
    result = await run({"app.py": "import pytest\n" + (late if where == "call" else f"{stop}\n")})
    assert (result.passed, result.score) == (False, 0.5 if where == "call" else 0.0)


HANGS = "while True:\n    pass\n"


@pytest.mark.parametrize(
    ("left", "tests", "fields"),
    [({"app.py": HANGS}, TESTS, {}), ({}, {"check.sh": "sleep 600\n"}, {"command": "sh {tests}/check.sh"})],
    ids=["the code", "a command"],
)
async def test_a_time_out_is_a_fail_that_names_its_cause(left: Any, tests: Any, fields: Any, run: Graded) -> None:
    result = await run(left, tests, timeout_seconds=0.3, **fields)
    assert (result.passed, result.score, result.error) == (False, 0.0, None)
    assert messages(result) == "the tests did not end within 0.3 seconds: the code under test hangs"


@pytest.mark.parametrize("action", ["p.write_text('all tests passed')", "os.mkfifo(p)"])
async def test_a_forged_report_that_is_no_report_is_a_fail(action: str, run: Graded) -> None:
    forge = (
        "import os, pathlib, sys\n"
        "p = pathlib.Path(next(a for a in sys.argv if a.startswith('--junitxml=')).partition('=')[2])\n"
        f"{action}\nos._exit(0)\n"
    )
    result = await run({"app.py": forge})
    assert (result.passed, result.error) == (False, None)
    assert "no usable report" in messages(result)


NAMED = (
    *("test_adds", "test_app.py", "test_app.py::test_adds"),
    *("test_many", "test_many[2]", "TestGroup::test_in", "test_in"),
)
MORE_TESTS = """
import pytest

@pytest.mark.parametrize('a', [1, 2])
def test_many(a):
    pass

class TestGroup:
    def test_in(self):
        pass
"""


async def test_required_tests_must_have_passed(run: Graded) -> None:
    tests = {"hidden/test_app.py": TESTS + MORE_TESTS}
    assert (await run({"app.py": APP}, tests, required=NAMED)).passed
    result = await run({"app.py": APP}, tests, required=(*NAMED, "test_subtracts"))
    assert not result.passed
    assert messages(result) == "the required test test_subtracts did not pass"


async def test_failing_tests_are_bounded_in_number_and_length(run: Graded) -> None:
    test = "@pytest.mark.parametrize('n', range(50))\ndef test_it(n):\n    raise ValueError('x' * 100_000)\n"
    result = await run({}, f"import pytest\n\n{test}")
    assert len(result.checks) == 21
    assert result.checks[-1].message == "30 more tests failed"
    assert max(len(check.message) for check in result.checks) < 2100


BREAKS = "def pytest_collection(session):\n    raise ValueError('hook')\n"
TWO = ["a/test_app.py", "b/test_app.py"]


@pytest.mark.parametrize(
    ("tests", "names", "error"),
    [
        ("x = 1\n", [], "deterministic_tests: no test was found in test_app.py"),
        ({}, ["nowhere.py"], "nowhere.py cannot be copied"),
        (dict.fromkeys(TWO, TESTS), TWO, "deterministic_tests: two tests have the file name test_app.py: rename one"),
        ({"test_app.py": TESTS, "conftest.py": BREAKS}, [], "pytest failed to run: "),
    ],
    ids=["no test", "no file", "one name for two files", "pytest breaks"],
)
async def test_what_cannot_be_measured_is_an_error(tests: Any, names: list[str], error: str, run: Graded) -> None:
    assert error in (await run({}, tests, *names)).error


async def test_a_program_that_is_not_installed_is_an_error(run: Graded) -> None:
    result = await run({}, command="no-such-runner {tests}")
    assert result.error.endswith("cannot be run: no-such-runner is not installed")


@pytest.mark.usefixtures("bare_python")
async def test_a_missing_pytest_is_an_error_with_its_remedy(run: Graded) -> None:
    result = await run({"app.py": APP, "pytest.py": "", "pytest/__main__.py": ""})
    assert result.error == "pytest is not installed: pip install 'passgate[graders]'"


@pytest.mark.parametrize(
    ("script", "passed", "said"),
    [
        ('test "$(cat answer)" = 42 && test "$PASSGATE_TESTS" = "$1"\n', True, "the tests ended with exit code 0"),
        ('cat answer; echo "wrong" >&2; exit 7\n', False, "the tests ended with exit code 7: 42\nwrong"),
        ("./made-by-the-agent", False, "the tests ended with exit code 127: "),
        ("echo 'sh: 1: cat: not found' >&2; exit 127", False, "the tests ended with exit code 127: sh: 1: cat: not"),
    ],
    ids=["passes", "fails", "owed by the agent", "says that a program is missing"],
)
async def test_a_command_passes_with_exit_code_0(script: str, passed: bool, said: str, run: Graded) -> None:
    result = await run({"answer": "42\n"}, {"hidden/check.sh": script}, command="sh {tests}/hidden/check.sh {tests}")
    assert (result.passed, result.score) == (passed, float(passed))
    assert messages(result).startswith(said)


async def test_a_hidden_test_may_look_at_a_database(run: Graded, workspace: Path) -> None:
    with sqlite3.connect(workspace / "app.db") as connection:
        connection.execute("CREATE TABLE orders (id INTEGER)")
    connection.close()
    test = (
        "import contextlib, sqlite3\n\ndef test_table():\n"
        "    with contextlib.closing(sqlite3.connect('app.db')) as c:\n"
        "        assert c.execute('SELECT count(*) FROM orders').fetchone() == (0,)\n"
    )
    assert (await run({}, test)).passed
    assert [path.name for path in workspace.iterdir()] == ["app.db"]


@pytest.mark.parametrize(
    ("name", "is_called"),
    [
        *(("test_x[1]", True), ("test_x[2]", False), ("sub/test_a.py", True), ("test_a.py::test_x", True)),
        ("sub/test_a.py::TestOne::test_x[1]", True),
        ("TestTwo::test_x", False),
        ("test_b.py::test_x", False),
    ],
)
def test_the_names_of_a_test(name: str, is_called: bool) -> None:
    case = Case("sub/test_a.py", "TestOne", "test_x[1]", CaseStatus.PASSED, "")
    assert case.is_called(name) is is_called


ENTITIES = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;">]><testsuites>&b;</testsuites>'


@pytest.mark.parametrize(
    "content",
    [
        ENTITIES.encode(),
        b'<?xml version="1.0" encoding="utf-7"?>+ADwAIQ-DOCTYPE x+AD4-<testsuites/>',
        *(ENTITIES.encode("utf-16"), b"<testsuites>", b"", b"\xff", b" " * 10_000_001),
    ],
    ids=["entities", "utf_7", "utf_16", "torn", "empty", "binary", "large"],
)
def test_what_is_no_report_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "report.xml").write_bytes(content)
    with pytest.raises(UnusableFileError):
        read_report(tmp_path, "report.xml")
