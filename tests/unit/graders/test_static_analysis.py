import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from passgate.tasks.graders import grade
from passgate.tasks.graders.interface import Evidence
from passgate.tasks.model.graders import StaticAnalysis

Files = Callable[[dict[str, str]], None]

CLEAN = "def double(number: int) -> int:\n    return number * 2\n"
UNUSED_IMPORT = f"import os\n\n{CLEAN}"
WRONG_TYPE = 'number: int = "two"\n'


def options(*tools: str, **fields: Any) -> StaticAnalysis:
    return StaticAnalysis(type="static_analysis", tools=tools, **fields)


async def test_tools_that_find_nothing_pass(evidence: Evidence, leave: Files) -> None:
    leave({"app.py": CLEAN})
    result = await grade(options("ruff", "mypy", "test -f app.py"), evidence)
    assert (result.passed, result.score, result.error) == (True, 1.0, None)
    assert [check.message for check in result.checks] == [
        "ruff found no problems",
        "mypy found no problems",
        "test -f app.py found no problems",
    ]


async def test_the_score_is_the_share_of_tools_that_found_nothing(evidence: Evidence, leave: Files) -> None:
    leave({"app.py": UNUSED_IMPORT})
    result = await grade(options("ruff", "mypy"), evidence)
    assert (result.passed, result.score) == (False, 0.5)
    assert "app.py:1:8: F401" in result.checks[0].message


async def test_mypy_finds_a_wrong_type(evidence: Evidence, leave: Files) -> None:
    leave({"app.py": WRONG_TYPE})
    result = await grade(options("mypy"), evidence)
    assert (result.passed, result.score) == (False, 0.0)
    assert "Incompatible types in assignment" in result.checks[0].message


@pytest.mark.parametrize("tool", ["ruff", "mypy"])
@pytest.mark.parametrize(
    "files",
    [
        {"app.py": "def f(:\n"},
        {"app.py": "x = 1\0"},
    ],
    ids=["syntax_error", "nul"],
)
async def test_code_that_cannot_be_parsed_is_a_finding(
    tool: str, files: dict[str, str], evidence: Evidence, leave: Files
) -> None:
    leave(files)
    result = await grade(options(tool), evidence)
    assert (result.passed, result.score, result.error) == (False, 0.0, None)


@pytest.mark.parametrize("tool", ["ruff", "mypy"])
async def test_code_that_is_not_utf_8_is_a_finding(tool: str, evidence: Evidence, workspace: Path) -> None:
    (workspace / "app.py").write_bytes(b"name = '\xff\xfe'\n")
    result = await grade(options(tool), evidence)
    assert (result.passed, result.error) == (False, None)


@pytest.mark.parametrize(
    "files",
    [
        {"a/x.py": CLEAN, "b/x.py": CLEAN},
        {"not-a-name/__init__.py": "", "not-a-name/x.py": CLEAN},
    ],
    ids=["two_modules_of_one_name", "no_package_name"],
)
async def test_a_layout_that_mypy_refuses_is_a_finding(files: dict[str, str], evidence: Evidence, leave: Files) -> None:
    leave(files)
    result = await grade(options("mypy"), evidence)
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
    tool: str, code: str, configured: bool, evidence: Evidence, leave: Files, provide: Files
) -> None:
    leave({**PLANTED, "sub/app.py": code})
    provide({"ruff": '[lint]\nselect = ["F"]\n', "mypy": "[mypy]\nstrict = True\n"})
    configuration = {tool: tool} if configured else {}
    result = await grade(options(tool, configuration=configuration, paths=("sub",)), evidence)
    assert (result.passed, result.error) == (False, None)
    assert "app.py:1" in result.checks[0].message


async def test_the_configuration_of_the_author_counts(evidence: Evidence, leave: Files, provide: Files) -> None:
    leave({"app.py": "def double(number):\n    return number * 2\n"})
    provide({"strict/mypy.ini": "[mypy]\ndisallow_untyped_defs = True\n", "ruff.toml": '[lint]\nselect = ["ANN"]\n'})
    assert (await grade(options("mypy", "ruff"), evidence)).passed
    configuration = {"mypy": "strict/mypy.ini", "ruff": "ruff.toml"}
    assert (await grade(options("mypy", "ruff", configuration=configuration), evidence)).score == 0.0


@pytest.mark.parametrize(
    ("tool", "text"),
    [("ruff", "[lint\n"), ("mypy", "no sections\n"), ("mypy", "[mypy]\nno_such_option = True\n")],
)
async def test_a_broken_configuration_is_an_error(
    tool: str, text: str, evidence: Evidence, leave: Files, provide: Files
) -> None:
    leave({"app.py": CLEAN})
    provide({"settings": text})
    result = await grade(options(tool, configuration={tool: "settings"}), evidence)
    assert result.score is None
    assert result.error


async def test_a_missing_configuration_is_an_error(evidence: Evidence, leave: Files) -> None:
    leave({"app.py": CLEAN})
    result = await grade(options("ruff", configuration={"ruff": "nowhere.toml"}), evidence)
    assert result.error
    assert "the configuration of ruff cannot be read" in result.error


@pytest.mark.parametrize("tool", ["ruff", "mypy"])
async def test_nothing_to_analyse_is_no_pass(tool: str, evidence: Evidence, leave: Files) -> None:
    leave({"README.md": "nothing here"})
    result = await grade(options(tool), evidence)
    assert (result.passed, result.error) == (False, None)
    assert result.checks[0].message == f"{tool} cannot analyse the work: there is no Python file in ."


async def test_code_out_of_ruffs_sight_is_no_pass(evidence: Evidence, leave: Files) -> None:
    leave({".venv/app.py": UNUSED_IMPORT})
    result = await grade(options("ruff"), evidence)
    assert (result.passed, result.error) == (False, None)


@pytest.mark.parametrize("tool", ["ruff", "mypy"])
async def test_a_missing_path_is_a_fail(tool: str, evidence: Evidence, leave: Files) -> None:
    leave({"app.py": CLEAN})
    result = await grade(options(tool, paths=("app.py", "gone.py")), evidence)
    assert (result.passed, result.error) == (False, None)
    assert "gone.py does not exist" in result.checks[0].message


async def test_a_link_to_clean_code_elsewhere_is_a_fail(evidence: Evidence, workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "app.py").write_text(CLEAN)
    (workspace / "src").symlink_to(tmp_path / "elsewhere")
    result = await grade(options("ruff", paths=("src",)), evidence)
    assert (result.passed, result.error) == (False, None)
    assert "src is outside the workspace" in result.checks[0].message


@pytest.mark.parametrize("tool", ["ruff", "mypy"])
async def test_a_fifo_named_like_code_is_a_fail_at_once(
    tool: str, evidence: Evidence, leave: Files, workspace: Path
) -> None:
    leave({"src/app.py": CLEAN})
    os.mkfifo(workspace / "src" / "pipe.py")
    result = await grade(options(tool, timeout_seconds=30), evidence)
    assert (result.passed, result.error) == (False, None)
    assert "pipe.py is not a regular file" in result.checks[0].message


async def test_findings_are_bounded(evidence: Evidence, leave: Files) -> None:
    leave({"app.py": "".join(f"import module_{number}\n" for number in range(1000))})
    result = await grade(options("ruff"), evidence)
    assert len(result.checks[0].message) < 2100


@pytest.mark.usefixtures("bare_python")
@pytest.mark.parametrize("tool", ["ruff", "mypy"])
async def test_a_missing_tool_is_an_error_with_its_remedy(tool: str, evidence: Evidence, leave: Files) -> None:
    leave({"app.py": CLEAN})
    result = await grade(options(tool), evidence)
    assert (result.passed, result.score) == (False, None)
    assert result.error == f"{tool} is not installed: pip install 'passgate[graders]'"


@pytest.mark.usefixtures("bare_python")
async def test_a_finding_is_certain_even_beside_a_missing_tool(evidence: Evidence, leave: Files) -> None:
    leave({"app.py": CLEAN})
    result = await grade(options("mypy", "echo bad; exit 1"), evidence)
    assert (result.passed, result.score, result.error) == (False, 0.0, None)
    assert [check.message for check in result.checks] == [
        "not measured: mypy is not installed: pip install 'passgate[graders]'",
        "echo bad; exit 1 found: bad",
    ]


@pytest.mark.parametrize("tool", ["no-such-linter .", "true && no-such-linter", "./README.md", "exit 126"])
async def test_a_command_that_cannot_be_run_is_an_error(tool: str, evidence: Evidence, leave: Files) -> None:
    leave({"README.md": "not a program"})
    result = await grade(options(tool), evidence)
    assert (result.passed, result.score) == (False, None)
    assert result.error
    assert "cannot be run" in result.error


async def test_a_tool_that_does_not_end_is_an_error(evidence: Evidence) -> None:
    result = await grade(options("sleep 60", timeout_seconds=0.3), evidence)
    assert result.error == "sleep 60 did not end within 0.3 seconds: increase `timeout_seconds` of static_analysis"
