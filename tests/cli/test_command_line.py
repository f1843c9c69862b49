"""What holds for the whole command line: exit codes, help, start-up."""

import os
import sys
from pathlib import Path

import pytest

from passgate import __version__
from tests.cli.commands import Here, imported_by, refused, told
from tests.cli.test_validate import write_task
from tests.gates import shell_agent
from tests.project import Project

COMMANDS = ("run", "try", "validate", "judge", "trend", "doctor", "init")
LARGE = {"prefect", "pandas", "pyarrow"}
MODELS = {"pydantic", "passgate.tasks.model.task", "passgate.tasks.reports.figures"}


@pytest.mark.cold
@pytest.mark.parametrize(
    ("arguments", "done_by", "unneeded"),
    [
        (("validate", "suites"), "tasks.formats.loading", LARGE),
        (("try", "golden/one"), "tasks.formats.loading", LARGE),
        (("check-graders",), "tasks.commands.check_graders", LARGE),
        (("doctor", "nop"), "tasks.commands.doctor", LARGE),
        (("--version",), "flows.cli", MODELS),
        (("--help",), "flows.cli", MODELS),
    ],
)
def test_commands_for_authors_and_help_start_without_what_they_do_not_need(
    bare_project: Project, arguments: tuple[str, ...], done_by: str, unneeded: set[str]
) -> None:
    write_task(bare_project, "suites/golden/one.yaml")
    modules = imported_by(bare_project, *arguments)
    assert f"passgate.{done_by}" in modules, "the command did its work"
    assert modules.isdisjoint(unneeded)


def test_help_names_every_command_and_the_exit_codes(here: Here) -> None:
    said = told(here, "--help")
    for command in COMMANDS:
        assert command in said
        told(here, command, "--help")
    assert "3 INCONCLUSIVE" in said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run",), "Missing argument 'GATE"),
        (("run", "no_such_gate"), "'no_such_gate' is not a gate"),
        (("run", "ci_merge", "--k", "0"), "Invalid value for '--k'"),
        (("run", "ci_merge", "--agent", "orakel"), "unknown agent 'orakel'; did you mean 'oracle'?"),
        (("run", "ci_merge", "--resume", "last"), "no run 'last'"),
        (("run", "ci_merge", "--resume", "last", "--agent", "nop"), "no run 'last'"),
        (("run", "ci_merge"), "no suites folder suites"),
        (("run", "ci_merge", "--runner", "proces"), "'--runner': 'proces' is not one of 'process', 'dask', 'ray'."),
        (("run", "ci_merge", "--engine", "dagster"), "'dagster' is not one of 'prefect', 'none'"),
        *(
            ((command, "ci-merge"), "'ci-merge' is not a gate; did you mean 'ci_merge'?")
            for command in ("run", "forecast", "burn-in")
        ),
        *(
            ((command, ""), "a path is empty: name a file or a folder")
            for command in ("validate", "show", "check-graders", "try")
        ),
        (("judge", "last"), "no run 'last'"),
        (("report", "none-such"), "no run 'none-such'"),
        (("view", "last"), "no run 'last'"),
        (("trend",), "passgate run"),
        (("show", "nowhere"), "no file or folder nowhere"),
        (("validate", "nowhere"), "no file or folder nowhere"),
        (("validate", "."), "no task files in ."),
        (("frobnicate",), "No such command 'frobnicate'"),
    ],
)
def test_what_cannot_be_done_is_exit_2_with_a_message_and_no_traceback(
    here: Here, arguments: tuple[str, ...], message: str
) -> None:
    assert message in refused(here, *arguments)


def test_what_is_no_utf_8_is_exit_2(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    name = os.fsdecode(b"n\xff")
    assert "the argument 'cli:echo n\\udcff' is not UTF-8 text" in refused(
        here, "run", "ci_merge", "--agent", f"cli:echo {name}"
    )
    here.write(f"suites/golden/{name}.yaml", "task_id: a\n")
    for command in (("validate", "suites"), ("run", "ci_merge", "--engine", "none")):
        assert "n\\udcff.yaml:1:1: the name of the file is not UTF-8 text" in refused(here, *command)
    (here.path / name).mkdir()
    monkeypatch.chdir(here.path / name)
    assert "the name of the working folder" in refused(here, "validate", "suites")


@pytest.mark.cold
def test_a_command_in_a_locale_without_utf_8_reads_and_writes_utf_8(bare_project: Project) -> None:
    locale = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    ended = bare_project.run([str(Path(sys.executable).with_name("passgate")), "validate", "Grüße"], **locale)
    assert (ended.returncode, "no file or folder Grüße" in ended.stderr) == (2, True)


def test_the_process_says_the_same(bare_project: Project) -> None:
    assert told(bare_project, "--version") == f"passgate {__version__}\n"
    assert "no run 'last'" in refused(bare_project, "judge", "last", "--json")


def test_commands_work_from_any_folder_below_the_project(gate_here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    below = gate_here.path / "src" / "agent"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    agent = shell_agent(gate_here, "printf ok > result.txt")
    ran = told(gate_here, "run", "ci_merge", "--engine", "none", "--history", "elsewhere", *agent)
    assert "page  .passgate/runs/" in ran
    assert [path.name for path in below.iterdir()] == ["elsewhere"], "a path is one from here"
    assert (gate_here.path / ".passgate/runs").is_dir()
    task = "../../suites/golden/a.yaml"
    assert "1 file, 1 task checked" in told(gate_here, "validate", task).replace("files", "file").replace(
        "tasks", "task"
    )
    assert told(gate_here, "try", task, *agent).startswith("golden/a  suites/golden/a.yaml")
    assert told(gate_here, "try", "golden/a", *agent).startswith("golden/a  suites/golden/a.yaml")
    assert told(gate_here, "judge", "last", "--quiet").startswith("ci_merge PASS")
    assert "golden/a" in told(gate_here, "show", "last", "--task", "golden/a")
    assert "task_id: a" in told(gate_here, "show", "golden/a") == told(gate_here, "show", task)
    told(gate_here, "trend", "--history", "elsewhere", "--output", "trend.json", "--format", "json")
    assert (below / "trend.json").is_file()
    assert Path.cwd() == below


def test_another_repository_below_is_no_part_of_the_project(gate_here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    other = gate_here.path / "vendored"
    (other / ".git").mkdir(parents=True)
    monkeypatch.chdir(other)
    assert "suites" in refused(gate_here, "run", "ci_merge", "--engine", "none")


def test_help_stands_in_groups_with_plain_values(here: Here) -> None:
    commands, options = told(here, "--help"), told(here, "run", "--help")
    groups = ("Run", "Write tasks", "Look at results", "Trust a gate", "Set up")
    assert [group for group in groups if f"─ {group} ─" not in commands] == []
    assert [group for group in ("Files and history", "Other machines", "Output") if f"─ {group} ─" not in options] == []
    assert "<int" not in options
    assert "--json   " in options
    assert "<bool>" not in options.replace("--help      -h      <bool>", "")
