"""What holds for the whole command line: exit codes, help, start-up."""

import subprocess
import sys

import pytest

from passgate import __version__
from passgate.flows.cli import main
from tests.cli.test_validate import GOOD
from tests.project import Project

COMMANDS = ("run", "try", "validate", "judge", "trend", "doctor", "init")


def imported_by(project: Project, *arguments: str) -> set[str]:
    """The modules that a command has imported by its end."""
    code = (
        "import sys; from passgate.flows.cli import main; main(sys.argv[1:]); "
        "sys.stderr.write('MODULES ' + ' '.join(sys.modules))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=project.path,
        env=project.full_environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    return set(result.stderr.rpartition("MODULES ")[2].split())


@pytest.mark.parametrize("command", ["validate", "try"])
def test_commands_for_authors_start_without_the_engine(bare_project: Project, command: str) -> None:
    bare_project.write("suites/golden/one.yaml", GOOD.format(name="one"))
    modules = imported_by(bare_project, command, "suites/golden/one.yaml")
    assert "passgate.tasks.formats.loading" in modules, "the command did its work"
    assert modules.isdisjoint({"prefect", "pandas", "pyarrow", "matplotlib"})


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_who_asks_for_help_does_not_wait_for_the_models_of_a_run(bare_project: Project, option: str) -> None:
    modules = imported_by(bare_project, option)
    assert "passgate.flows.cli.app" in modules
    assert modules.isdisjoint({"pydantic", "passgate.tasks.model.task", "passgate.tasks.reports.figures"})


def test_help_names_every_command_and_the_exit_codes(bare_project: Project) -> None:
    result = bare_project.passgate("--help")
    assert result.returncode == 0
    for command in COMMANDS:
        assert command in result.stdout
        assert bare_project.passgate(command, "--help").returncode == 0
    assert "3 INCONCLUSIVE" in result.stdout


def test_the_version(bare_project: Project) -> None:
    assert bare_project.passgate("--version").stdout == f"passgate {__version__}\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ("run",),
        ("run", "no_such_gate"),
        ("run", "ci_merge", "--k", "0"),
        ("run", "ci_merge", "--agent", "orakel"),
        ("run", "ci_merge", "--resume", "last"),
        ("run", "ci_merge", "--resume", "last", "--agent", "nop"),
        ("run", "ci_merge"),
        ("judge", "last"),
        ("trend",),
        ("frobnicate",),
    ],
)
def test_what_cannot_be_done_is_exit_2_with_a_message_and_no_traceback(
    bare_project: Project, arguments: tuple[str, ...]
) -> None:
    result = bare_project.passgate(*arguments)
    assert result.returncode == 2
    assert result.stderr.strip()
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("words", [("run", "ci_merge"), ("report", "last"), ("trend",)], ids=" ".join)
def test_who_starts_passgate_below_the_project_is_told_where_it_is(
    bare_project: Project, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    below = bare_project.path / "src" / "agent"
    below.mkdir(parents=True)
    bare_project.write("gates.yaml", "version: 1\n")
    told = "passgate: there is no gates.yaml in this folder, but in ../..: start passgate there\n"
    for is_there in (True, False):
        if not is_there:
            (bare_project.path / "gates.yaml").unlink()
        monkeypatch.chdir(below)
        assert main(words) == 2
        assert capsys.readouterr().err.endswith(told) is is_there


@pytest.mark.parametrize("command", ["run", "forecast", "burn-in"])
def test_a_gate_with_a_hyphen_is_told_its_name(bare_project: Project, command: str) -> None:
    result = bare_project.passgate(command, "ci-merge")
    assert result.returncode == 2
    assert "'ci-merge' is no gate; did you mean 'ci_merge'?" in result.stderr


def test_a_value_that_an_option_does_not_have_is_told_those_that_it_has(bare_project: Project) -> None:
    result = bare_project.passgate("run", "ci_merge", "--runner", "proces")
    assert result.returncode == 2
    told = "passgate: Invalid value for '--runner': 'proces' is not one of 'process', 'dask', 'ray'."
    assert result.stderr.startswith(told), result.stderr


@pytest.mark.parametrize("command", ["validate", "show", "check-graders", "try"])
def test_an_empty_path_is_not_the_current_folder(bare_project: Project, command: str) -> None:
    bare_project.write("suites/golden/one.yaml", GOOD.format(name="one"))
    result = bare_project.passgate(command, "")
    assert (result.returncode, result.stdout) == (2, "")
    assert "a path is empty: name a file or a folder" in result.stderr
