"""`passgate check-graders`: what it takes, what it says and its exit codes."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from passgate.flows.cli import main
from passgate.tasks.errors import ExitCode
from tests.builders import REPOSITORY, write_task
from tests.cli.test_command_line import imported_by
from tests.grader_project import a_transcript
from tests.project import Project

REFERENCE = {"reference": {"solution": {"transcript": "_shared/good.json"}}}
QUESTION = {"inputs": {"prompt": "Do you agree?"}}
ASKS = {"type": "output_check", "name": "answer", "contains": ["yes"]}


@pytest.fixture(autouse=True)
def working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("PASSGATE_JUDGE_BASE_URL", "PASSGATE_JUDGE_MODEL"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def add(name: str = "golden/say-yes", **changes: Any) -> Path:
    """A task file of a suite whose reference says yes."""
    (Path("suites/_shared")).mkdir(parents=True, exist_ok=True)
    Path("suites/_shared/good.json").write_text(a_transcript([("look", {})], "Well, yes."), encoding="utf-8")
    suite, _, task_id = name.partition("/")
    return write_task(Path(f"suites/{name}.yaml"), suite=suite, task_id=task_id, **(REFERENCE | QUESTION | changes))


def checked(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[dict[str, Any]]]:
    code = main(["check-graders", "--json", *arguments])
    return code, json.loads(capsys.readouterr().out)


def test_the_suites_folder_is_checked_when_nothing_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    add()
    add("adversarial/say-no", graders=[ASKS])
    assert main(["check-graders"]) == ExitCode.PASS
    said = capsys.readouterr().out
    assert "golden/say-yes" in said
    assert "adversarial/say-no" in said
    assert said.endswith("2 tasks, 0 faults\n")
    shutil.move("suites", "elsewhere")
    assert main(["check-graders", "--suites", "elsewhere"]) == ExitCode.PASS


def test_only_what_is_named_is_checked(capsys: pytest.CaptureFixture[str]) -> None:
    add(graders=[{**ASKS, "contains": ["no"]}])
    add("adversarial/right")
    code, checks = checked(capsys, "suites/adversarial", "suites/adversarial/right.yaml")
    assert code == ExitCode.PASS
    assert {check["task_id"] for check in checks} == {"right"}


def test_a_fault_is_exit_1_with_its_place_grader_and_remedy(capsys: pytest.CaptureFixture[str]) -> None:
    file = add(graders=[{**ASKS, "contains": ["no"]}])
    line = next(n for n, text in enumerate(file.read_text(encoding="utf-8").splitlines(), 1) if "- contains" in text)
    assert main(["check-graders"]) == ExitCode.FAIL
    said = " ".join(capsys.readouterr().out.replace("│", "").split())
    assert f"suites/golden/say-yes.yaml:{line}:" in said
    assert "graders[0] (answer): the known-good fails: the answer does not contain 'no'" in said
    assert "mend the grader, or the reference solution" in said


def test_what_cannot_be_measured_is_exit_3_unless_there_is_a_fault(capsys: pytest.CaptureFixture[str]) -> None:
    add(graders=[ASKS, {"type": "llm_rubric", "rubric": "Is it polite?"}])
    code, (check,) = checked(capsys)
    assert code == ExitCode.INCONCLUSIVE
    assert check["known_good"] == "not measured"
    assert "no recorded judge reply" in check["unmeasured"][0]
    add("golden/wrong", graders=[{**ASKS, "contains": ["no"]}])
    assert checked(capsys)[0] == ExitCode.FAIL


def test_mutants_that_a_recorded_judge_does_not_know_are_noted_and_no_more(
    capsys: pytest.CaptureFixture[str],
) -> None:
    shutil.copytree(REPOSITORY / "suites", "suites")
    code, (check,) = checked(capsys, "suites/open_ended/support-chat_resolution_1.yaml")
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
def test_where_the_known_good_comes_from(
    changes: dict[str, Any], known_good: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("suites/_shared").mkdir(parents=True)
    Path("suites/_shared/broken.json").write_text("{", encoding="utf-8")
    write_task(Path("suites/golden/say-yes.yaml"), **({"graders": [ASKS]} | QUESTION | changes))
    found, (check,) = checked(capsys)
    assert (check["known_good"], found) == (known_good, code)


TOO_LITTLE = [
    ({"type": "output_check", "json_schema": {}}, "every JSON document is as its json_schema wants it"),
    ({"type": "state_check", "expect": [{"file": "report.md"}]}, "an agent passes that leaves an empty report.md"),
    ({"type": "output_check", "contains": ["order"]}, "an agent passes that repeats the prompt"),
]


@pytest.mark.parametrize(("grader", "why"), TOO_LITTLE)
def test_graders_that_ask_too_little_are_a_fault_here_and_a_warning_in_validate(
    grader: dict[str, Any], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = add(graders=[grader], inputs={"prompt": "Write the order as JSON into report.md."})
    code, (check,) = checked(capsys)
    assert code == ExitCode.FAIL
    assert f"asks too little: {why}" in [finding["message"] for finding in check["findings"]]
    assert main(["validate", str(file)]) == ExitCode.PASS
    warning = next(line for line in capsys.readouterr().err.splitlines() if "asks too little" in line)
    assert warning.startswith(f"warning: {file}:")
    assert why in warning


def test_a_recording_is_good_where_there_is_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    file = add()
    tool = {"name": "look", "description": "Looks.", "command": "true"}
    write_task(file, environment={"tools": [tool], "replay": {"transcript": "_shared/good.json"}}, **QUESTION)
    code, (check,) = checked(capsys)
    assert (code, check["known_good"]) == (ExitCode.PASS, "passed")


def test_programs_of_graders_see_the_sandbox_that_the_good_trial_left(capsys: pytest.CaptureFixture[str]) -> None:
    Path("suites/_shared").mkdir(parents=True)
    Path("suites/_shared/make.sh").write_text("echo made > made.txt\n", encoding="utf-8")
    script = {"type": "python", "name": "made", "value": "__import__('os').path.exists('made.txt') and bool(output)"}
    add(
        graders=[script, {"type": "contains", "value": "place"}],
        reference={"solution": {"script": "_shared/make.sh"}},
    )
    code, (check,) = checked(capsys)
    assert (code, check["known_good"]) == (ExitCode.PASS, "passed")
    assert check["mutants"] == {"right": 2, "of": 2, "unmeasured": 0}


def test_a_task_that_cannot_be_run_is_not_measured(capsys: pytest.CaptureFixture[str]) -> None:
    Path("suites/golden").mkdir(parents=True)
    Path("suites/golden/e.eval.yaml").write_text(
        "tests:\n  - id: one\n    input: x\n    assertions: [{type: code-grader, command: [./no-such-file.py]}]\n",
        encoding="utf-8",
    )
    code, (check,) = checked(capsys)
    assert (code, check["known_good"]) == (ExitCode.INCONCLUSIVE, "not measured")


def test_secrets_are_masked(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret-indeed")
    add(graders=[{**ASKS, "contains": ["sk-very-secret-indeed"]}])
    assert main(["check-graders"]) == ExitCode.FAIL
    said = capsys.readouterr().out
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
def test_bad_input_is_exit_2_and_nothing_is_run(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("empty").mkdir()
    write_task(Path("broken/golden/say-yes.yaml"), suite="surprise")
    assert main(["check-graders", *arguments]) == ExitCode.BAD_INPUT
    said = capsys.readouterr()
    assert message in said.err
    assert said.out == ""


def test_nothing_is_left_behind(working_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add()
    before = sorted(path for path in working_folder.rglob("*"))
    place = working_folder.parent / "temporary"
    place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    assert main(["check-graders"]) == ExitCode.PASS
    assert sorted(path for path in working_folder.rglob("*")) == before
    assert list(place.glob("passgate-user-*/*")) == []


def test_it_starts_without_the_engine(bare_project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(bare_project.path)
    add()
    modules = imported_by(bare_project, "check-graders")
    assert "passgate.tasks.commands.check_graders" in modules, "the command did its work"
    assert modules.isdisjoint({"prefect", "pandas", "pyarrow", "matplotlib"})
