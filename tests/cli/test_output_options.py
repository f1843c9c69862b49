"""`--json` and `--quiet`: every command has them, and they mean the same everywhere."""

import json
import shutil
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.answering import Answer, serving
from tests.cli.commands import Here, exits, refused, told
from tests.docs.commands import COMMANDS
from tests.gates import verdict_of
from tests.project import REPOSITORY
from tests.scenarios import Scenario, Scenarios
from tests.scenarios.gates import SAYS_YES, two_runs_of_a_part

VERDICT = "nightly INCONCLUSIVE: the evidence is not complete\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_both(name: str) -> None:
    options = {flag for parameter in COMMANDS[name].params for flag in parameter.opts}
    assert {"--json", "--quiet"} <= options


def test_a_run_is_the_line_of_its_verdict_when_it_is_quiet_and_its_verdict_as_json(scenario: Scenarios) -> None:
    runs = scenario(two_runs_of_a_part)
    quiet, as_json = runs.ended("quiet"), runs.ended("json")
    assert (quiet.returncode, quiet.stdout) == (3, VERDICT)
    assert "trials" not in quiet.stderr
    assert json.loads(as_json.stdout) == verdict_of(runs)
    assert as_json.returncode == json.loads(as_json.stdout)["exit_code"] == 3


@pytest.fixture
def recorded(scenario: Scenarios, here: Here) -> Here:
    """A project with two runs of a partial gate."""
    shutil.rmtree(here.path / ".git")
    shutil.copytree(scenario(two_runs_of_a_part).path, here.path, dirs_exist_ok=True)
    return here


@pytest.mark.parametrize(
    "words",
    [
        ("judge", "last"),
        ("show", "suites"),
        ("show", "last", "--task", "first"),
        ("validate", "suites"),
        ("report", "last"),
        ("trend",),
        ("history", "list"),
        ("history", "compare", "last"),
        ("history", "show", "last"),
        ("history", "prune", "--keep", "9", "--dry-run"),
        ("baseline", "show"),
        ("baseline", "clear"),
        ("init", "elsewhere"),
        ("check-graders",),
        ("try", "golden/first"),
    ],
    ids=" ".join,
)
def test_json_is_one_document_and_quiet_prints_no_result(recorded: Here, words: tuple[str, ...]) -> None:
    as_json = recorded.passgate(*words, "--json", GITHUB_ACTIONS="true")
    assert as_json.returncode in {0, 1, 3}
    json.loads(as_json.stdout)
    assert as_json.stdout.replace("\n", "").isprintable()
    quiet = exits(recorded, as_json.returncode, *words, "--quiet", GITHUB_ACTIONS="true")
    assert quiet.stdout == (VERDICT if words[0] == "judge" else "")


@pytest.mark.parametrize(
    "words",
    [
        ("init", "gates.yaml/below"),
        ("trend", "--output", "none/trend.json"),
        ("forecast", "nightly", "--assume", "0.9", "--runs", "100", "--plot", "none/plot.svg"),
    ],
    ids=" ".join,
)
def test_a_named_place_that_cannot_be_written_is_bad_input(recorded: Here, words: tuple[str, ...]) -> None:
    said = refused(recorded, *words, "--quiet")
    assert "written" in said or "cannot write" in said


def test_a_pin_prints_nothing_under_quiet(recorded: Here) -> None:
    for words in (("pin", "--commit", "HEAD", "--reason", "good"), ("clear",)):
        pinned = exits(recorded, 0, "baseline", *words, "--quiet")
        assert (pinned.stdout, pinned.stderr) == ("", "")


def test_a_burn_in_that_has_no_place_is_bad_input(here: Here) -> None:
    here.write("suites/golden/first.yaml", SAYS_YES)
    here.write("suites/_shared/yes.json", '{"messages": [], "output": "yes"}')
    here.write(".passgate/burn-in", "a file in the way")
    assert "start passgate in a folder that you can write to" in refused(here, "burn-in", "nightly", "--runs", "2")


def test_validate_gives_its_problems_as_json(here: Here) -> None:
    here.write("suites/golden/broken.yaml", SAYS_YES.replace("graders", "grades"))
    problems = json.loads(exits(here, 2, "validate", "suites", "--json").stdout)["problems"]
    assert [(one["file"], one["line"]) for one in problems] == [("suites/golden/broken.yaml", line) for line in (2, 6)]


def test_every_published_schema_is_listed_and_printed(here: Here) -> None:
    published = {file.name.removesuffix(".schema.json"): file for file in Path(REPOSITORY, "schema").iterdir()}
    listed = told(here, "schema").splitlines()
    assert [line.split()[0] for line in listed] == sorted(published)
    assert all(len(line.split()) > 1 for line in listed)
    for name, file in published.items():
        assert json.loads(told(here, "schema", name)) == json.loads(file.read_text())
    assert "there is no schema 'gats'; did you mean 'gates'?" in refused(here, "schema", "gats")


def test_the_trials_of_a_run_are_sent_and_counted(red: Scenario) -> None:
    names = []

    def answer(_: BaseHTTPRequestHandler, body: bytes) -> Answer:
        for of_resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            names.extend(span.name for of_scope in of_resource.scope_spans for span in of_scope.spans)
        return 200, {}, b""

    with serving(answer) as url:
        said = told(red, "traces", "--endpoint", f"{url}/v1/traces")
        sent = len(names)
        as_json = told(red, "traces", "--endpoint", f"{url}/v1/traces", "--json")
    assert names.count("invoke_agent nop") == 2 * 4
    assert said == f"sent {sent} spans\n"
    assert json.loads(as_json) == {"spans": sent}
