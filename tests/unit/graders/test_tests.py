import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from passgate.tasks.graders import grade
from passgate.tasks.graders.interface import Evidence
from passgate.tasks.model.grade import Grade
from passgate.tasks.model.graders import DeterministicTests

Files = Callable[[dict[str, str]], None]

APP = "def add(a, b):\n    return a + b\n"
TESTS = """\
import app

def test_adds():
    assert app.add(1, 2) == 3

def test_adds_negative():
    assert app.add(1, -2) == -1
"""


def options(*tests: str, **fields: Any) -> DeterministicTests:
    return DeterministicTests(type="deterministic_tests", tests=tests or ("test_app.py",), **fields)


def messages(result: Grade) -> str:
    return "\n".join(check.message for check in result.checks)


async def test_all_tests_pass(evidence: Evidence, leave: Files, provide: Files) -> None:
    leave({"app.py": APP})
    provide({"test_app.py": TESTS})
    result = await grade(options(), evidence)
    assert (result.passed, result.score, result.error) == (True, 1.0, None)
    assert messages(result) == "2 of 2 tests passed"


async def test_the_score_is_the_share_of_passed_tests(evidence: Evidence, leave: Files, provide: Files) -> None:
    leave({"app.py": "def add(a, b):\n    return 3\n"})
    provide({"test_app.py": TESTS})
    result = await grade(options(), evidence)
    assert (result.passed, result.score) == (False, 0.5)
    assert messages(result).startswith("test_app.py::test_adds_negative: assert 3 == -1")


async def test_a_missing_module_is_a_fail(evidence: Evidence, provide: Files) -> None:
    provide({"test_app.py": TESTS})
    result = await grade(options(), evidence)
    assert (result.passed, result.score, result.error) == (False, 0.0, None)
    assert "No module named 'app'" in messages(result)


async def test_a_conftest_that_cannot_import_the_agents_code_is_a_fail(evidence: Evidence, provide: Files) -> None:
    provide({"test_app.py": TESTS, "conftest.py": "import app\n"})
    result = await grade(options("test_app.py", "conftest.py"), evidence)
    assert (result.passed, result.error) == (False, None)
    assert "No module named 'app'" in messages(result)


async def test_a_conftest_of_the_author_is_used(evidence: Evidence, provide: Files) -> None:
    fixture = "import pytest\n\n@pytest.fixture\ndef five():\n    return 5\n"
    provide({"hidden/conftest.py": fixture, "hidden/sub/test_app.py": "def test_five(five):\n    assert five == 5\n"})
    assert (await grade(options("hidden"), evidence)).passed


async def test_the_agent_cannot_read_the_tests_beforehand_or_find_them_afterwards(
    evidence: Evidence, leave: Files, provide: Files
) -> None:
    leave({"app.py": APP})
    provide({"test_app.py": TESTS})
    await grade(options(), evidence)
    assert not list(evidence.sandbox.scratch.iterdir())
    assert [path.name for path in evidence.sandbox.workspace.iterdir()] == ["app.py"]


async def test_tests_find_their_own_folder(evidence: Evidence, provide: Files) -> None:
    test = (
        "import os, pathlib\n\ndef test_data():\n"
        "    assert pathlib.Path(os.environ['PASSGATE_TESTS'], 'data.txt').read_text() == 'here'\n"
    )
    provide({"test_app.py": test, "data.txt": "here"})
    assert (await grade(options("test_app.py", "data.txt"), evidence)).passed


async def test_tests_run_in_the_workspace(evidence: Evidence, leave: Files, provide: Files) -> None:
    leave({"made.txt": "made"})
    provide({"test_app.py": "def test_made():\n    assert open('made.txt').read() == 'made'\n"})
    assert (await grade(options(), evidence)).passed


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


async def test_nothing_planted_in_the_workspace_changes_a_fail(
    evidence: Evidence, leave: Files, provide: Files
) -> None:
    leave({"app.py": "def add(a, b):\n    return 3\n", **PLANTED})
    provide({"test_app.py": TESTS})
    result = await grade(options(), evidence)
    assert (result.passed, result.score) == (False, 0.5)
    assert "assert 3 == -1" in messages(result)


async def test_nothing_planted_in_the_workspace_changes_a_pass(
    evidence: Evidence, leave: Files, provide: Files
) -> None:
    leave({"app.py": APP, **PLANTED})
    provide({"test_app.py": TESTS})
    assert (await grade(options(), evidence)).passed


@pytest.mark.parametrize("code", [0, 1, 2, 3, 4, 5])
async def test_ending_the_process_is_a_fail_whatever_the_exit_code(
    code: int, evidence: Evidence, leave: Files, provide: Files
) -> None:
    leave({"app.py": f"import os\nos._exit({code})\n"})
    provide({"test_app.py": TESTS})
    result = await grade(options(), evidence)
    assert (result.passed, result.score, result.error) == (False, 0.0, None)
    assert f"exit code {code} and no usable report" in messages(result)


async def test_being_killed_is_a_fail(evidence: Evidence, leave: Files, provide: Files) -> None:
    leave({"app.py": "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n"})
    provide({"test_app.py": TESTS})
    result = await grade(options(), evidence)
    assert (result.passed, result.error) == (False, None)
    assert "the code under test ended the process" in messages(result)


@pytest.mark.parametrize("where", ["import", "call"])
@pytest.mark.parametrize(
    "stop", ["pytest.exit('enough', returncode=0)", "pytest.skip('enough')", "raise SystemExit(0)"]
)
async def test_stopping_the_run_from_within_is_a_fail(
    stop: str, where: str, evidence: Evidence, leave: Files, provide: Files
) -> None:
    late = f"def add(a, b):\n    if b < 0:\n        {stop}\n    return a + b\n"
    leave({"app.py": "import pytest\n" + (late if where == "call" else f"{stop}\n")})
    provide({"test_app.py": TESTS})
    result = await grade(options(), evidence)
    assert (result.passed, result.error) == (False, None)
    assert result.score == (0.5 if where == "call" else 0.0)


async def test_claiming_that_pytest_is_missing_is_a_fail(evidence: Evidence, leave: Files, provide: Files) -> None:
    lie = "import os\nos.write(2, b'No module named pytest')\nos._exit(1)\n"
    leave({"app.py": lie})
    provide({"test_app.py": TESTS})
    result = await grade(options(), evidence)
    assert (result.passed, result.error) == (False, None)


async def test_a_time_out_is_a_fail_that_names_its_cause(evidence: Evidence, leave: Files, provide: Files) -> None:
    leave({"app.py": "while True:\n    pass\n"})
    provide({"test_app.py": TESTS})
    result = await grade(options(timeout_seconds=3), evidence)
    assert (result.passed, result.score, result.error) == (False, 0.0, None)
    assert messages(result) == "the tests did not end within 3 seconds: the code under test hangs"


FORGERIES = {
    "entities": "<!DOCTYPE x [<!ENTITY a 'aaaa'>]><testsuites><testcase name='&a;' file='t'/></testsuites>",
    "utf_16": "",
    "no_xml": "all tests passed",
    "fifo": "",
}


@pytest.mark.parametrize("kind", FORGERIES)
async def test_a_forged_report_that_is_no_report_is_a_fail(
    kind: str, evidence: Evidence, leave: Files, provide: Files
) -> None:
    action = {
        "utf_16": "p.write_bytes('<!DOCTYPE x><testsuites/>'.encode('utf-16'))",
        "fifo": "os.mkfifo(p)",
    }.get(kind, f"p.write_text({FORGERIES[kind]!r})")
    forge = (
        "import os, pathlib, sys\n"
        "p = pathlib.Path(next(a for a in sys.argv if a.startswith('--junitxml=')).partition('=')[2])\n"
        f"{action}\nos._exit(0)\n"
    )
    leave({"app.py": forge})
    provide({"test_app.py": TESTS})
    result = await grade(options(), evidence)
    assert (result.passed, result.error) == (False, None)
    assert "no usable report" in messages(result)


@pytest.mark.parametrize(
    "name",
    [
        "test_adds",
        "test_app.py",
        "test_app.py::test_adds",
        "test_many",
        "test_many[2]",
        "TestGroup::test_in",
        "test_in",
    ],
)
async def test_a_required_test_that_passed(name: str, evidence: Evidence, leave: Files, provide: Files) -> None:
    more = (
        "\nimport pytest\n\n@pytest.mark.parametrize('a', [1, 2])\ndef test_many(a):\n    pass\n\n"
        "class TestGroup:\n    def test_in(self):\n        pass\n"
    )
    leave({"app.py": APP})
    provide({"hidden/test_app.py": TESTS + more})
    assert (await grade(options("hidden", required=(name,)), evidence)).passed


async def test_a_required_test_that_did_not_run(evidence: Evidence, leave: Files, provide: Files) -> None:
    leave({"app.py": APP})
    provide({"test_app.py": TESTS})
    result = await grade(options(required=("test_adds", "test_subtracts")), evidence)
    assert not result.passed
    assert messages(result) == "the required test test_subtracts did not pass"


async def test_a_skipped_test_has_not_passed(evidence: Evidence, leave: Files, provide: Files) -> None:
    leave({"app.py": APP})
    provide({"test_app.py": TESTS + "\nimport pytest\n\ndef test_later():\n    pytest.skip('not now')\n"})
    result = await grade(options(), evidence)
    assert not result.passed
    assert result.score == pytest.approx(2 / 3)
    assert "was skipped" in messages(result)


async def test_an_error_at_teardown_is_a_fail(evidence: Evidence, provide: Files) -> None:
    test = (
        "import pytest\n\n@pytest.fixture\ndef broken():\n    yield\n    raise ValueError('late')\n\n"
        "def test_it(broken):\n    pass\n"
    )
    provide({"test_app.py": test})
    result = await grade(options(), evidence)
    assert not result.passed
    assert "late" in messages(result)


async def test_failing_tests_are_bounded_in_number_and_length(evidence: Evidence, provide: Files) -> None:
    test = (
        "import pytest\n\n@pytest.mark.parametrize('n', range(50))\n"
        "def test_it(n):\n    raise ValueError('x' * 100_000)\n"
    )
    provide({"test_app.py": test})
    result = await grade(options(), evidence)
    assert len(result.checks) == 21
    assert result.checks[-1].message == "30 more tests failed"
    assert max(len(check.message) for check in result.checks) < 2100


async def test_no_test_at_all_is_an_error(evidence: Evidence, provide: Files) -> None:
    provide({"test_app.py": "x = 1\n"})
    result = await grade(options(), evidence)
    assert (result.passed, result.score) == (False, None)
    assert result.error == "deterministic_tests: no test was found in test_app.py"


async def test_a_missing_test_file_is_an_error(evidence: Evidence) -> None:
    result = await grade(options("nowhere.py"), evidence)
    assert result.error
    assert "nowhere.py cannot be copied" in result.error


async def test_two_files_of_one_name_are_an_error(evidence: Evidence, provide: Files) -> None:
    provide({"a/test_app.py": TESTS, "b/test_app.py": TESTS})
    result = await grade(options("a/test_app.py", "b/test_app.py"), evidence)
    assert result.error == "deterministic_tests: two tests have the file name test_app.py: rename one"


@pytest.mark.usefixtures("bare_python")
async def test_a_missing_pytest_is_an_error_with_its_remedy(evidence: Evidence, leave: Files, provide: Files) -> None:
    leave({"app.py": APP, "pytest.py": "", "pytest/__main__.py": ""})
    provide({"test_app.py": TESTS})
    result = await grade(options(), evidence)
    assert (result.passed, result.score) == (False, None)
    assert result.error == "pytest is not installed: pip install 'passgate[graders]'"


async def test_a_pytest_that_breaks_is_an_error(evidence: Evidence, provide: Files) -> None:
    provide({"test_app.py": TESTS, "conftest.py": "def pytest_collection(session):\n    raise ValueError('hook')\n"})
    result = await grade(options("test_app.py", "conftest.py"), evidence)
    assert result.score is None
    assert result.error
    assert result.error.startswith("pytest failed to run: ")


async def test_a_command_passes_with_exit_code_0(evidence: Evidence, leave: Files, provide: Files) -> None:
    leave({"answer": "42\n"})
    provide({"hidden/check.sh": 'test "$(cat answer)" = 42 && test "$PASSGATE_TESTS" = "$1"\n'})
    result = await grade(options("hidden", command="sh {tests}/hidden/check.sh {tests}"), evidence)
    assert (result.passed, result.score) == (True, 1.0)


async def test_a_command_fails_with_any_other(evidence: Evidence, leave: Files, provide: Files) -> None:
    leave({"answer": "41\n"})
    provide({"check.sh": 'cat answer; echo "wrong" >&2; exit 7\n'})
    result = await grade(options("check.sh", command="sh {tests}/check.sh"), evidence)
    assert (result.passed, result.score, result.error) == (False, 0.0, None)
    assert messages(result) == "the tests ended with exit code 7: 41\nwrong"


async def test_a_command_that_hangs_fails(evidence: Evidence, provide: Files) -> None:
    provide({"check.sh": "sleep 60\n"})
    result = await grade(options("check.sh", command="sh {tests}/check.sh", timeout_seconds=0.3), evidence)
    assert (result.passed, result.error) == (False, None)
    assert "did not end within 0.3 seconds" in messages(result)


async def test_a_command_that_is_not_installed_is_an_error(evidence: Evidence, provide: Files) -> None:
    provide({"check.sh": ""})
    result = await grade(options("check.sh", command="no-such-runner {tests}"), evidence)
    assert result.error
    assert result.error.endswith("cannot be run: no-such-runner is not installed")


@pytest.mark.parametrize("body", ["./made-by-the-agent", "echo 'sh: 1: cat: not found' >&2; exit 127"])
async def test_a_program_that_the_agent_owes_is_its_fail(body: str, evidence: Evidence, provide: Files) -> None:
    provide({"check.sh": body})
    result = await grade(options("check.sh", command="sh {tests}/check.sh"), evidence)
    assert (result.passed, result.error) == (False, None)


async def test_a_hidden_test_may_look_at_a_database(evidence: Evidence, workspace: Path, provide: Files) -> None:
    with sqlite3.connect(workspace / "app.db") as connection:
        connection.execute("CREATE TABLE orders (id INTEGER)")
    connection.close()
    provide(
        {
            "test_app.py": "import contextlib, sqlite3\n\ndef test_table():\n"
            "    with contextlib.closing(sqlite3.connect('app.db')) as c:\n"
            "        assert c.execute('SELECT count(*) FROM orders').fetchone() == (0,)\n"
        }
    )
    assert (await grade(options(), evidence)).passed
    assert [path.name for path in workspace.iterdir()] == ["app.db"]
