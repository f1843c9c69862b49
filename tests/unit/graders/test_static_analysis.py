import os
from pathlib import Path
from typing import Any

import pytest

from passgate.tasks.model.grade import Grade
from passgate.tasks.model.transcript import FileChanges, Transcript
from tests.unit.graders.trials import Files, Graded

CLEAN = "def double(number: int) -> int:\n    return number * 2\n"
UNTYPED = "def double(number):\n    return number * 2\n"
UNUSED_IMPORT = f"import os\n\n{CLEAN}"
WRONG_TYPE = 'number: int = "two"\n'


@pytest.fixture
def analysed(graded: Graded, leave: Files) -> Graded:
    """The grade of the files that an agent left, by these tools."""

    async def ask(left: dict[str, str], *tools: str, transcript: Transcript | None = None, **fields: Any) -> Grade:
        leave(left)
        return await graded({"type": "static_analysis", "tools": tools, **fields}, transcript)

    return ask


async def test_tools_that_find_nothing_pass(analysed: Graded) -> None:
    result = await analysed({"app.py": CLEAN}, "ruff", "mypy", "test -f app.py")
    assert (result.passed, result.score, result.error) == (True, 1.0, None)
    assert [check.message for check in result.checks] == [
        "ruff found no problems",
        "mypy found no problems",
        "test -f app.py found no problems",
    ]


async def test_the_score_is_the_share_of_tools_that_found_nothing(analysed: Graded) -> None:
    result = await analysed({"app.py": UNUSED_IMPORT}, "ruff", "mypy")
    assert (result.passed, result.score) == (False, 0.5)
    assert "app.py:1:8: F401" in result.checks[0].message


@pytest.mark.parametrize(
    ("tool", "comment", "switches"),
    [
        *(("ruff", "# ruff: noqa", True), ("ruff", "  #RUFF:NOQA: F401", True), ("ruff", "# flake8: noqa", True)),
        *(("ruff", "# ruff: disable[F401]", True), ("mypy", "# mypy: ignore-errors", True)),
        ("mypy", '# mypy: disable-error-code="assignment"', True),
        *(("mypy", "# type: ignore", True), ("ruff", "# mypy: ignore-errors", False)),
        ("ruff", "import json  # noqa: F401", False),
        ("mypy", 'number: int = "two"  # type: ignore[assignment]', False),
    ],
)
async def test_an_agent_does_not_switch_a_tool_off_for_a_file(
    tool: str, comment: str, switches: bool, analysed: Graded
) -> None:
    text, says = f"{comment}\n{CLEAN}", f"app.py switches {tool} off by a comment: {comment.strip()}"
    result = await analysed({"app.py": text}, tool)
    assert (result.checks[0].message == says) is switches
    changed = {"path": "app.py", "change": "modified", "diff": f"@@ -1 +1 @@\n {comment}\n+{CLEAN}"}
    for files in ([], [changed]):
        transcript = Transcript(file_changes=FileChanges.model_validate({"files": files}))
        told = (await analysed({"app.py": text}, tool, transcript=transcript)).checks[0].message
        assert says not in told, "it was there before"


@pytest.mark.parametrize(
    ("tool", "files", "says"),
    [
        ("mypy", {"app.py": WRONG_TYPE}, "Incompatible types in assignment"),
        *(("ruff", {"app.py": "def f(:\n"}, "ruff found: "), ("mypy", {"app.py": "def f(:\n"}, "mypy found: ")),
        *(("ruff", {"app.py": "x = 1\0"}, "ruff found: "), ("mypy", {"app.py": "x = 1\0"}, "mypy found: ")),
        ("mypy", {"a/x.py": CLEAN, "b/x.py": CLEAN}, "mypy found: "),
        ("mypy", {"not-a-name/__init__.py": "", "not-a-name/x.py": CLEAN}, "mypy found: "),
        ("ruff", {".venv/app.py": UNUSED_IMPORT}, "ruff found: "),
        ("ruff", {"README.md": "nothing here"}, "ruff cannot analyse the work: there is no Python file in ."),
        ("mypy", {"README.md": "nothing here"}, "mypy cannot analyse the work: there is no Python file in ."),
    ],
    ids=[
        *["a wrong type", "syntax of ruff", "syntax of mypy", "NUL for ruff", "NUL for mypy", "modules of one name"],
        *["no name of a package", "out of the sight of ruff", "nothing for ruff", "nothing for mypy"],
    ],
)
async def test_what_is_found(tool: str, files: dict[str, str], says: str, analysed: Graded) -> None:
    result = await analysed(files, tool)
    assert (result.passed, result.score, result.error) == (False, 0.0, None)
    assert says in result.checks[0].message


@pytest.mark.parametrize("tool", ["ruff", "mypy"])
async def test_code_that_is_not_utf_8_is_a_finding(tool: str, analysed: Graded, workspace: Path) -> None:
    (workspace / "app.py").write_bytes(b"name = '\xff\xfe'\n")
    result = await analysed({}, tool)
    assert (result.passed, result.error) == (False, None)


PLANTED = {
    "ruff.toml": 'exclude = ["*"]\n[lint]\nselect = []\n',
    ".ruff.toml": 'exclude = ["*"]\n',
    "sub/ruff.toml": 'exclude = ["*"]\n',
    "mypy.ini": "[mypy]\nignore_errors = True\n",
    ".mypy.ini": "[mypy]\nignore_errors = True\n",
    "setup.cfg": "[mypy]\nignore_errors = True\n",
    "pyproject.toml": '[tool.ruff]\nexclude = ["*"]\n[tool.mypy]\nignore_errors = true\n',
    ".gitignore": "*\n",
    ".ignore": "*\n",
    "ruff.py": "raise SystemExit(0)\n",
    "mypy.py": "raise SystemExit(0)\n",
    "ruff/__main__.py": "raise SystemExit(0)\n",
    "sitecustomize.py": "import os; os._exit(0)\n",
}


@pytest.mark.parametrize(("tool", "code"), [("ruff", UNUSED_IMPORT), ("mypy", WRONG_TYPE)])
@pytest.mark.parametrize("configured", [False, True])
async def test_nothing_planted_in_the_workspace_hides_a_finding(
    tool: str, code: str, configured: bool, analysed: Graded, provide: Files
) -> None:
    provide({"ruff": '[lint]\nselect = ["F"]\n', "mypy": "[mypy]\nstrict = True\n"})
    configuration = {tool: tool} if configured else {}
    result = await analysed({**PLANTED, "sub/app.py": code}, tool, configuration=configuration, paths=("sub",))
    assert (result.passed, result.error) == (False, None)
    assert "app.py:1" in result.checks[0].message


@pytest.mark.parametrize("hiding", ["app.pyi", "app/__init__.py", "app/__init__.pyi"])
async def test_no_other_file_hides_a_module_from_mypy(hiding: str, analysed: Graded) -> None:
    result = await analysed({"app.py": WRONG_TYPE, hiding: ""}, "mypy")
    assert (result.passed, result.error) == (False, None)
    assert "app.py:1" in result.checks[0].message


async def test_a_module_may_have_a_stub(analysed: Graded) -> None:
    assert (await analysed({"app.py": CLEAN, "app.pyi": "def double(number: int) -> int: ...\n"}, "mypy")).passed


async def test_the_configuration_of_the_author_counts(analysed: Graded, provide: Files) -> None:
    provide({"strict/mypy.ini": "[mypy]\ndisallow_untyped_defs = True\n", "ruff.toml": '[lint]\nselect = ["ANN"]\n'})
    assert (await analysed({"app.py": UNTYPED}, "mypy", "ruff")).passed
    configuration = {"mypy": "strict/mypy.ini", "ruff": "ruff.toml"}
    assert (await analysed({"app.py": UNTYPED}, "mypy", "ruff", configuration=configuration)).score == 0.0


@pytest.mark.parametrize(
    ("tool", "text"), [("ruff", "[lint\n"), ("mypy", "no sections\n"), ("mypy", "[mypy]\nno_such_option = True\n")]
)
async def test_a_broken_configuration_is_an_error(tool: str, text: str, analysed: Graded, provide: Files) -> None:
    provide({"settings": text})
    assert (await analysed({"app.py": CLEAN}, tool, configuration={tool: "settings"})).error
    missing = await analysed({"app.py": CLEAN}, tool, configuration={tool: "nowhere.toml"})
    assert f"the configuration of {tool} cannot be read" in missing.error


@pytest.mark.parametrize("tool", ["ruff", "mypy"])
@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("gone.py", "gone.py does not exist"),
        ("link", "link is outside the workspace"),
        ("src", "pipe.py is not a regular file"),
    ],
)
async def test_a_path_without_code_of_the_agent_is_a_fail_at_once(
    tool: str, path: str, says: str, analysed: Graded, workspace: Path, tmp_path: Path
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "app.py").write_text(CLEAN)
    (workspace / "link").symlink_to(tmp_path / "elsewhere")
    (workspace / "src").mkdir()
    os.mkfifo(workspace / "src" / "pipe.py")
    result = await analysed({"app.py": CLEAN}, tool, paths=("app.py", path))
    assert (result.passed, result.error) == (False, None)
    assert says in result.checks[0].message


async def test_findings_are_bounded(analysed: Graded) -> None:
    result = await analysed({"app.py": "".join(f"import module_{number}\n" for number in range(1000))}, "ruff")
    assert len(result.checks[0].message) < 2100


@pytest.mark.usefixtures("bare_python")
@pytest.mark.parametrize("tool", ["ruff", "mypy"])
async def test_a_missing_tool_is_an_error_and_a_finding_is_certain_beside_it(tool: str, analysed: Graded) -> None:
    missing = f"{tool} is not installed: pip install 'passgate[graders]'"
    assert (await analysed({"app.py": CLEAN}, tool)).error == missing
    result = await analysed({"app.py": CLEAN}, tool, "echo bad; exit 1")
    assert (result.passed, result.score, result.error) == (False, 0.0, None)
    assert [check.message for check in result.checks] == [f"not measured: {missing}", "echo bad; exit 1 found: bad"]


@pytest.mark.parametrize("tool", ["no-such-linter .", "true && no-such-linter", "./README.md", "exit 126"])
async def test_a_command_that_cannot_be_run_is_an_error(tool: str, analysed: Graded) -> None:
    assert "cannot be run" in (await analysed({"README.md": "not a program"}, tool)).error


async def test_a_tool_that_does_not_end_is_an_error(analysed: Graded) -> None:
    result = await analysed({}, "sleep 600", timeout_seconds=0.2)
    assert result.error == "sleep 600 did not end within 0.2 seconds: increase `timeout_seconds` of static_analysis"
