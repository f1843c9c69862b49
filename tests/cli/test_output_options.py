"""`--json` and `--quiet`: every command has them, and they mean the same everywhere."""

import json
from collections.abc import Mapping

import pytest

from passgate.flows.cli import main
from tests.docs.commands import COMMANDS
from tests.project import REPOSITORY, Project

WITHOUT: Mapping[str, str] = {}
"""Commands without one of the options, each with the reason."""

TASK = """
suite: golden
task_id: first
description: Says yes.
inputs: {prompt: "Say yes."}
graders: [{type: contains, value: "yes"}]
tracked_metrics: [steps]
reference: {solution: {transcript: _shared/yes.json}}
"""


def test_every_command_has_both() -> None:
    for name, command in COMMANDS.items():
        options = {flag for parameter in command.params for flag in parameter.opts}
        missing = {"--json", "--quiet"} - options
        assert not missing or WITHOUT.get(name), f"{name} has no {missing}"
    assert set(WITHOUT) <= set(COMMANDS)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project with two runs of a partial gate."""
    project = Project(tmp_path_factory.mktemp("output") / "repository")
    project.path.mkdir()
    project.git("init", "-q", "-b", "main")
    project.write("gates.yaml", (REPOSITORY / "gates.yaml").read_text())
    project.write("suites/golden/first.yaml", TASK)
    project.write("suites/_shared/yes.json", '{"messages": [{"role": "assistant", "content": "yes"}], "output": "yes"}')
    project.git("add", "-A")
    project.git("commit", "-q", "-m", "Add a task")
    for _ in range(2):
        result = project.passgate("run", "nightly", "--engine", "none", "--quiet")
        assert result.returncode == 3, result.stderr
        # Of a run only the line of the verdict, and of what goes on nothing.
        assert result.stdout == "nightly INCONCLUSIVE: the evidence is not complete\n"
        assert "trials" not in result.stderr
    return project


READING = [
    ("judge", "last"),
    ("show", "suites"),
    ("show", "last", "--task", "first"),
    ("validate", "suites"),
    ("report", "last"),
    ("trend",),
    ("history", "list"),
    ("history", "compare", "last"),
    ("history", "show", "last"),
    ("history", "export", "rows.csv"),
    ("history", "compact"),
    ("history", "prune", "--keep", "9", "--dry-run"),
    ("baseline", "show"),
    ("baseline", "clear"),
    ("init", "elsewhere"),
    ("check-graders",),
    ("try", "golden/first"),
    ("convert", "suites", "--to", "four-suite", "--out", "elsewhere/suites", "--force", "--lossy"),
]


@pytest.mark.parametrize("words", READING, ids=" ".join)
def test_json_is_one_document_and_quiet_prints_no_result(
    recorded: Project, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(recorded.path)
    monkeypatch.setenv("GITHUB_ACTIONS", "true")

    code = main([*words, "--json"])
    document = capsys.readouterr().out
    assert code in {0, 1, 3}
    json.loads(document)
    assert document.replace("\n", "").isprintable()

    assert main([*words, "--quiet"]) == code
    verdict = "nightly INCONCLUSIVE: the evidence is not complete\n" if words[0] == "judge" else ""
    assert capsys.readouterr().out == verdict


UNWRITABLE = [
    ("init", "gates.yaml/below"),
    ("trend", "--output", "none/trend.csv"),
    ("history", "export", "none/rows.csv"),
    ("forecast", "nightly", "--assume", "0.9", "--runs", "100", "--plot", "none/plot.svg"),
    ("convert", "suites", "--to", "eval", "--out", "gates.yaml/EVAL.yaml", "--lossy"),
]


@pytest.mark.parametrize("words", UNWRITABLE, ids=" ".join)
def test_a_named_place_that_cannot_be_written_is_bad_input(
    recorded: Project, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(recorded.path)

    assert main([*words, "--quiet"]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "written" in shown.err or "cannot write" in shown.err


def test_a_pin_prints_nothing_under_quiet(
    recorded: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(recorded.path)

    assert main(["baseline", "pin", "--commit", "HEAD", "--reason", "good", "--quiet"]) == 0
    assert main(["baseline", "clear", "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")


def test_a_burn_in_that_has_no_place_is_bad_input(bare_project: Project) -> None:
    bare_project.write("suites/golden/first.yaml", TASK)
    bare_project.write("suites/_shared/yes.json", '{"messages": [], "output": "yes"}')
    bare_project.write(".passgate/burn-in", "a file in the way")

    result = bare_project.passgate("burn-in", "nightly", "--runs", "2")

    assert (result.returncode, result.stdout) == (2, "")
    assert "start passgate in a folder that you can write to" in result.stderr


def test_a_run_as_json_is_its_verdict(recorded: Project) -> None:
    result = recorded.passgate("run", "nightly", "--engine", "none", "--json", GITHUB_ACTIONS="true")

    verdict = recorded.run_folders()[-1] / "verdict.json"
    assert json.loads(result.stdout) == json.loads(verdict.read_text())
    assert result.returncode == json.loads(result.stdout)["exit_code"] == 3


def test_validate_gives_its_problems_as_json(bare_project: Project) -> None:
    bare_project.write("suites/golden/broken.yaml", TASK.replace("graders", "grades"))

    result = bare_project.passgate("validate", "suites", "--json")

    assert result.returncode == 2
    problems = json.loads(result.stdout)["problems"]
    assert [(one["file"], one["line"]) for one in problems] == [("suites/golden/broken.yaml", line) for line in (2, 6)]


def test_an_error_leaves_standard_output_empty(bare_project: Project) -> None:
    result = bare_project.passgate("judge", "last", "--json")

    assert (result.returncode, result.stdout) == (2, "")
    assert "no run 'last'" in result.stderr
