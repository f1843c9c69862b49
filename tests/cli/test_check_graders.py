"""`passgate check-graders`: what it takes, what it says and its exit codes."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from passgate.tasks.errors import ExitCode
from tests.builders import REPOSITORY, write_task
from tests.cli.commands import Here, exits, refused, told
from tests.grader_project import a_transcript

REFERENCE = {"reference": {"solution": {"transcript": "_shared/good.json"}}}
QUESTION = {"inputs": {"prompt": "Do you agree?"}}
ASKS = {"type": "output_check", "name": "answer", "contains": ["yes"]}
ASKS_FOR_NO = {**ASKS, "contains": ["no"]}
LOOK = {"name": "look", "description": "Looks.", "command": "true"}
MADE = {"type": "python", "name": "made", "value": "__import__('os').path.exists('made.txt') and bool(output)"}


@pytest.fixture(autouse=True)
def _shared_files(here: Here) -> None:
    """A transcript that says yes, one that is none, and a script, which tasks may name."""
    here.write("suites/_shared/good.json", a_transcript([("look", {})], "Well, yes."))
    here.write("suites/_shared/broken.json", "{")
    here.write("suites/_shared/make.sh", "echo made > made.txt\n")


def add(name: str = "golden/say-yes", **changes: Any) -> Path:
    """A task file of a suite whose reference says yes."""
    suite, _, task_id = name.partition("/")
    return write_task(Path(f"suites/{name}.yaml"), suite=suite, task_id=task_id, **(REFERENCE | QUESTION | changes))


def checked(here: Here, code: ExitCode, *arguments: str) -> Any:
    return json.loads(exits(here, code, "check-graders", "--json", *arguments).stdout)


def test_the_suites_folder_is_checked_when_nothing_is_named(here: Here) -> None:
    add()
    add("adversarial/say-no", graders=[ASKS])
    said = told(here, "check-graders")
    assert "golden/say-yes" in said
    assert "adversarial/say-no" in said
    assert said.endswith("2 tasks, 0 faults\n")
    shutil.move("suites", "elsewhere")
    told(here, "check-graders", "--suites", "elsewhere")


def test_only_what_is_named_is_checked(here: Here) -> None:
    add(graders=[ASKS_FOR_NO])
    add("adversarial/right")
    checks = checked(here, ExitCode.PASS, "suites/adversarial", "suites/adversarial/right.yaml")
    assert {check["task_id"] for check in checks} == {"right"}


def test_a_fault_is_exit_1_with_its_place_grader_and_remedy(here: Here) -> None:
    file = add(graders=[ASKS_FOR_NO])
    line = next(n for n, text in enumerate(file.read_text(encoding="utf-8").splitlines(), 1) if "- contains" in text)
    said = " ".join(exits(here, ExitCode.FAIL, "check-graders").stdout.replace("│", "").split())
    assert f"suites/golden/say-yes.yaml:{line}:" in said
    assert "graders[0] (answer): the known-good fails: the answer does not contain 'no'" in said
    assert "mend the grader, or the reference solution" in said


def test_what_cannot_be_measured_is_exit_3_unless_there_is_a_fault(here: Here) -> None:
    add(graders=[ASKS, {"type": "llm_rubric", "rubric": "Is it polite?"}])
    (check,) = checked(here, ExitCode.INCONCLUSIVE)
    assert check["known_good"] == "not measured"
    assert "no recorded judge reply" in check["unmeasured"][0]
    add("golden/wrong", graders=[ASKS_FOR_NO])
    checked(here, ExitCode.FAIL)


def test_mutants_that_a_recorded_judge_does_not_know_are_noted_and_no_more(here: Here) -> None:
    shutil.copytree(REPOSITORY / "suites", "shipped")
    (check,) = checked(here, ExitCode.PASS, "shipped/open_ended/support-chat_resolution_1.yaml")
    assert (check["known_good"], check["unmeasured"]) == ("passed", [])
    assert check["mutants"]["right"] == check["mutants"]["of"] > 0


@pytest.mark.parametrize(
    ("changes", "known_good", "code"),
    [
        ({"expected_output": "yes"}, "passed", ExitCode.PASS),
        ({"expected_output": "no"}, "failed", ExitCode.FAIL),
        ({}, "derived", ExitCode.PASS),
        ({"graders": [{**ASKS, "matches": "y+"}]}, "none", ExitCode.FAIL),
        ({"graders": [{**ASKS, "not_contains": ["yes"]}]}, "none", ExitCode.FAIL),
        ({"reference": {"solution": {"transcript": "_shared/broken.json"}}}, "not measured", ExitCode.INCONCLUSIVE),
        (
            {"environment": {"tools": [LOOK], "replay": {"transcript": "_shared/good.json"}}},
            *("passed", ExitCode.PASS),
        ),
    ],
)
def test_where_the_known_good_comes_from(changes: dict[str, Any], known_good: str, code: ExitCode, here: Here) -> None:
    write_task(Path("suites/golden/say-yes.yaml"), **({"graders": [ASKS]} | QUESTION | changes))
    (check,) = checked(here, code)
    assert check["known_good"] == known_good


def test_graders_that_ask_too_little_are_a_fault_here_and_a_warning_in_validate(here: Here) -> None:
    file = add(graders=[{"type": "output_check", "contains": ["agree"]}])
    (check,) = checked(here, ExitCode.FAIL)
    too_little = "asks too little: an agent passes that repeats the prompt"
    assert too_little in [finding["message"] for finding in check["findings"]]
    warnings = exits(here, ExitCode.PASS, "validate", str(file)).stderr.splitlines()
    (warning,) = [line for line in warnings if "asks too little" in line]
    assert warning.startswith(f"warning: {file}:")
    assert too_little.partition(": ")[2] in warning


def test_programs_of_graders_see_the_sandbox_that_the_good_trial_left(here: Here) -> None:
    solution = {"solution": {"script": "_shared/make.sh"}}
    add(graders=[MADE, {"type": "contains", "value": "place"}], reference=solution)
    (check,) = checked(here, ExitCode.PASS)
    assert check["known_good"] == "passed"
    assert check["mutants"] == {"right": 2, "of": 2, "unmeasured": 0}


def test_a_task_that_cannot_be_run_is_not_measured(here: Here) -> None:
    program = "{type: code-grader, command: [./no-such-file.py]}"
    here.write("suites/golden/e.eval.yaml", f"tests: [{{id: one, input: x, assertions: [{program}]}}]\n")
    (check,) = checked(here, ExitCode.INCONCLUSIVE)
    assert check["known_good"] == "not measured"


def test_secrets_are_masked(here: Here) -> None:
    add(graders=[{**ASKS, "contains": ["sk-very-secret-indeed"]}])
    said = exits(here, ExitCode.FAIL, "check-graders", OPENAI_API_KEY="sk-very-secret-indeed").stdout
    assert "sk-very" not in said
    assert "***" in said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "no file or folder nowhere"),
        ([], "no suites folder suites"),
        (["--suites", "nowhere"], "no suites folder nowhere"),
        (["empty"], "no task files in empty"),
        (["empty", "--gates", "other.yaml"], "no gates file other.yaml"),
        (["broken/golden"], "surprise"),
        (["broken", "empty"], "surprise"),
    ],
)
def test_bad_input_is_exit_2_and_nothing_is_run(arguments: list[str], message: str, here: Here) -> None:
    shutil.rmtree("suites")
    Path("empty").mkdir()
    write_task(Path("broken/golden/say-yes.yaml"), suite="surprise")
    assert message in refused(here, "check-graders", *arguments)


def test_nothing_is_left_behind(here: Here, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    add()
    before = sorted(here.path.rglob("*"))
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    told(here, "check-graders")
    assert sorted(here.path.rglob("*")) == before
    assert list(tmp_path.glob("temporary/passgate-user-*/*")) == []
