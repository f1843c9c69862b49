"""`--json` and `--quiet`: every command has them, and they mean the same everywhere."""

import json
from collections.abc import Mapping

import pytest

from tests.cli.commands import Here, refused
from tests.docs.commands import COMMANDS
from tests.gates import newest_run
from tests.scenarios import Scenarios
from tests.scenarios.gates import SAYS_YES, two_runs_of_a_part

WITHOUT: Mapping[str, str] = {}
"""Commands without one of the options, each with the reason."""
VERDICT = "nightly INCONCLUSIVE: the evidence is not complete\n"


def test_every_command_has_both() -> None:
    for name, command in COMMANDS.items():
        options = {flag for parameter in command.params for flag in parameter.opts}
        missing = {"--json", "--quiet"} - options
        assert not missing or WITHOUT.get(name), f"{name} has no {missing}"
    assert set(WITHOUT) <= set(COMMANDS)


def test_of_a_quiet_run_there_is_only_the_line_of_its_verdict(scenario: Scenarios) -> None:
    run = scenario(two_runs_of_a_part).ended("quiet")
    assert (run.returncode, run.stdout) == (3, VERDICT)
    assert "trials" not in run.stderr


def test_a_run_as_json_is_its_verdict(scenario: Scenarios) -> None:
    runs = scenario(two_runs_of_a_part)
    run = runs.ended("json")
    assert json.loads(run.stdout) == json.loads((newest_run(runs) / "verdict.json").read_text())
    assert run.returncode == json.loads(run.stdout)["exit_code"] == 3


@pytest.fixture
def recorded(
    scenario: Scenarios,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Here:
    """A project with two runs of a partial gate."""
    copy = scenario(two_runs_of_a_part).copy(tmp_path_factory.mktemp("recorded") / "repository")
    monkeypatch.chdir(copy.path)
    return Here(copy.path, capture=capsys)


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
def test_json_is_one_document_and_quiet_prints_no_result(recorded: Here, words: tuple[str, ...]) -> None:
    as_json = recorded.passgate(*words, "--json", GITHUB_ACTIONS="true")
    assert as_json.returncode in {0, 1, 3}
    json.loads(as_json.stdout)
    assert as_json.stdout.replace("\n", "").isprintable()
    quiet = recorded.passgate(*words, "--quiet", GITHUB_ACTIONS="true")
    assert (quiet.returncode, quiet.stdout) == (as_json.returncode, VERDICT if words[0] == "judge" else "")


@pytest.mark.parametrize(
    "words",
    [
        ("init", "gates.yaml/below"),
        ("trend", "--output", "none/trend.csv"),
        ("history", "export", "none/rows.csv"),
        ("forecast", "nightly", "--assume", "0.9", "--runs", "100", "--plot", "none/plot.svg"),
        ("convert", "suites", "--to", "eval", "--out", "gates.yaml/EVAL.yaml", "--lossy"),
    ],
    ids=" ".join,
)
def test_a_named_place_that_cannot_be_written_is_bad_input(recorded: Here, words: tuple[str, ...]) -> None:
    said = refused(recorded, *words, "--quiet")
    assert "written" in said or "cannot write" in said


def test_a_pin_prints_nothing_under_quiet(recorded: Here) -> None:
    for words in (("pin", "--commit", "HEAD", "--reason", "good"), ("clear",)):
        pinned = recorded.passgate("baseline", *words, "--quiet")
        assert (pinned.returncode, pinned.stdout, pinned.stderr) == (0, "", "")


def test_a_burn_in_that_has_no_place_is_bad_input(here: Here) -> None:
    here.write("suites/golden/first.yaml", SAYS_YES)
    here.write("suites/_shared/yes.json", '{"messages": [], "output": "yes"}')
    here.write(".passgate/burn-in", "a file in the way")
    assert "start passgate in a folder that you can write to" in refused(here, "burn-in", "nightly", "--runs", "2")


def test_validate_gives_its_problems_as_json(here: Here) -> None:
    here.write("suites/golden/broken.yaml", SAYS_YES.replace("graders", "grades"))
    result = here.passgate("validate", "suites", "--json")
    assert result.returncode == 2
    problems = json.loads(result.stdout)["problems"]
    assert [(one["file"], one["line"]) for one in problems] == [("suites/golden/broken.yaml", line) for line in (2, 6)]
