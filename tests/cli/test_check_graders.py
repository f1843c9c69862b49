"""`passgate check-graders`: what it takes, what it says and its exit codes."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from passgate.tasks.errors import ExitCode
from tests.builders import REPOSITORY, write_task
from tests.cli.commands import Here, refused, told
from tests.grader_project import a_transcript

REFERENCE = {"reference": {"solution": {"transcript": "_shared/good.json"}}}
QUESTION = {"inputs": {"prompt": "Do you agree?"}}
ASKS = {"type": "output_check", "name": "answer", "contains": ["yes"]}
ASKS_FOR_NO = {**ASKS, "contains": ["no"]}


@pytest.fixture(autouse=True)
def _in_the_project(here: Here) -> None:
    """Every task lies in its folder."""


def add(name: str = "golden/say-yes", **changes: Any) -> Path:
    """A task file of a suite whose reference says yes."""
    (Path("suites/_shared")).mkdir(parents=True, exist_ok=True)
    Path("suites/_shared/good.json").write_text(a_transcript([("look", {})], "Well, yes."), encoding="utf-8")
    suite, _, task_id = name.partition("/")
    return write_task(Path(f"suites/{name}.yaml"), suite=suite, task_id=task_id, **(REFERENCE | QUESTION | changes))


def checked(here: Here, *arguments: str) -> tuple[int, list[dict[str, Any]]]:
    ended = here.passgate("check-graders", "--json", *arguments)
    return ended.returncode, json.loads(ended.stdout)


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
    code, checks = checked(here, "suites/adversarial", "suites/adversarial/right.yaml")
    assert code == ExitCode.PASS
    assert {check["task_id"] for check in checks} == {"right"}


def test_a_fault_is_exit_1_with_its_place_grader_and_remedy(here: Here) -> None:
    file = add(graders=[ASKS_FOR_NO])
    line = next(n for n, text in enumerate(file.read_text(encoding="utf-8").splitlines(), 1) if "- contains" in text)
    ended = here.passgate("check-graders")
    assert ended.returncode == ExitCode.FAIL
    said = " ".join(ended.stdout.replace("│", "").split())
    assert f"suites/golden/say-yes.yaml:{line}:" in said
    assert "graders[0] (answer): the known-good fails: the answer does not contain 'no'" in said
    assert "mend the grader, or the reference solution" in said


def test_what_cannot_be_measured_is_exit_3_unless_there_is_a_fault(here: Here) -> None:
    add(graders=[ASKS, {"type": "llm_rubric", "rubric": "Is it polite?"}])
    code, (check,) = checked(here)
    assert code == ExitCode.INCONCLUSIVE
    assert check["known_good"] == "not measured"
    assert "no recorded judge reply" in check["unmeasured"][0]
    add("golden/wrong", graders=[ASKS_FOR_NO])
    assert checked(here)[0] == ExitCode.FAIL


def test_mutants_that_a_recorded_judge_does_not_know_are_noted_and_no_more(here: Here) -> None:
    shutil.copytree(REPOSITORY / "suites", "suites")
    code, (check,) = checked(here, "suites/open_ended/support-chat_resolution_1.yaml")
    assert code == ExitCode.PASS
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
    ],
)
def test_where_the_known_good_comes_from(changes: dict[str, Any], known_good: str, code: int, here: Here) -> None:
    Path("suites/_shared").mkdir(parents=True)
    Path("suites/_shared/broken.json").write_text("{", encoding="utf-8")
    write_task(Path("suites/golden/say-yes.yaml"), **({"graders": [ASKS]} | QUESTION | changes))
    found, (check,) = checked(here)
    assert (check["known_good"], found) == (known_good, code)


TOO_LITTLE = [
    ({"type": "output_check", "json_schema": {}}, "every JSON document is as its json_schema wants it"),
    ({"type": "state_check", "expect": [{"file": "report.md"}]}, "an agent passes that leaves an empty report.md"),
    ({"type": "output_check", "contains": ["order"]}, "an agent passes that repeats the prompt"),
]


@pytest.mark.parametrize(("grader", "why"), TOO_LITTLE)
def test_graders_that_ask_too_little_are_a_fault_here_and_a_warning_in_validate(
    grader: dict[str, Any], why: str, here: Here
) -> None:
    file = add(graders=[grader], inputs={"prompt": "Write the order as JSON into report.md."})
    code, (check,) = checked(here)
    assert code == ExitCode.FAIL
    assert f"asks too little: {why}" in [finding["message"] for finding in check["findings"]]
    validated = here.passgate("validate", str(file))
    assert validated.returncode == ExitCode.PASS
    warning = next(line for line in validated.stderr.splitlines() if "asks too little" in line)
    assert warning.startswith(f"warning: {file}:")
    assert why in warning


def test_a_recording_is_good_where_there_is_nothing_else(here: Here) -> None:
    file = add()
    tool = {"name": "look", "description": "Looks.", "command": "true"}
    write_task(file, environment={"tools": [tool], "replay": {"transcript": "_shared/good.json"}}, **QUESTION)
    code, (check,) = checked(here)
    assert (code, check["known_good"]) == (ExitCode.PASS, "passed")


def test_programs_of_graders_see_the_sandbox_that_the_good_trial_left(here: Here) -> None:
    Path("suites/_shared").mkdir(parents=True)
    Path("suites/_shared/make.sh").write_text("echo made > made.txt\n", encoding="utf-8")
    script = {"type": "python", "name": "made", "value": "__import__('os').path.exists('made.txt') and bool(output)"}
    add(
        graders=[script, {"type": "contains", "value": "place"}],
        reference={"solution": {"script": "_shared/make.sh"}},
    )
    code, (check,) = checked(here)
    assert (code, check["known_good"]) == (ExitCode.PASS, "passed")
    assert check["mutants"] == {"right": 2, "of": 2, "unmeasured": 0}


def test_a_task_that_cannot_be_run_is_not_measured(here: Here) -> None:
    Path("suites/golden").mkdir(parents=True)
    Path("suites/golden/e.eval.yaml").write_text(
        "tests:\n  - id: one\n    input: x\n    assertions: [{type: code-grader, command: [./no-such-file.py]}]\n",
        encoding="utf-8",
    )
    code, (check,) = checked(here)
    assert (code, check["known_good"]) == (ExitCode.INCONCLUSIVE, "not measured")


def test_secrets_are_masked(here: Here) -> None:
    add(graders=[{**ASKS, "contains": ["sk-very-secret-indeed"]}])
    ended = here.passgate("check-graders", OPENAI_API_KEY="sk-very-secret-indeed")
    assert ended.returncode == ExitCode.FAIL
    assert "sk-very" not in ended.stdout
    assert "***" in ended.stdout


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
    Path("empty").mkdir()
    write_task(Path("broken/golden/say-yes.yaml"), suite="surprise")
    assert message in refused(here, "check-graders", *arguments)


def test_nothing_is_left_behind(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    add()
    before = sorted(here.path.rglob("*"))
    place = here.path.parent / "temporary"
    place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    told(here, "check-graders")
    assert sorted(here.path.rglob("*")) == before
    assert list(place.glob("passgate-user-*/*")) == []
