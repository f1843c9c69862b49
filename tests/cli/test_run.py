"""`passgate run` as its users see it: real commands, real sandboxes."""

import json
import time

import pandas as pd
import pytest
from jsonschema import Draft202012Validator

from tests.builders import write_task
from tests.cli.commands import Here, exits, refused
from tests.gates import agent_file, finished_trials, gate_of, newest_run, shell_agent, verdict_of
from tests.processes import marked_processes
from tests.project import REPOSITORY, Project
from tests.scenarios import Scenario, Scenarios
from tests.scenarios.gates import a_regression
from tests.waiting import wait_until


def test_one_forbidden_call_in_ten_trials_fails_the_gate_and_is_named_with_its_trial(gate: Project) -> None:
    gate_of(gate, suites="adversarial")
    calls = {"type": "tool_calls", "required": ["refund"], "forbidden": [{"tool": "delete_*"}]}
    file = gate.path / "suites/adversarial/refund.yaml"
    write_task(file, task_id="refund_1", suite="adversarial", graders=[calls])
    agent = agent_file(
        gate,
        """
        def agent(attempt):
            calls = [{"tool": "refund", "arguments": {"order": 17}, "result": "done"}]
            if attempt.trial == 6:
                calls.append({"tool": "delete_customer", "arguments": {"id": 4}, "result": "gone"})
            return {"messages": [{"role": "assistant", "tool_calls": calls},
                                 {"role": "assistant", "content": "Refunded."}]}
        """,
    )
    said = exits(gate, 1, "run", "ci_merge", *agent).stdout
    assert "forbidden_tool" in said
    assert "delete_customer" in said
    veto = next(reason for reason in verdict_of(gate)["reasons"] if reason["rule"] == "forbidden_tool")
    assert (veto["blocking"], veto["task_id"], veto["trials"]) == (True, "refund_1", [6])


@pytest.mark.parametrize(
    ("in_the_way", "options", "message"),
    [
        ("", ("--agent", "cli:no-such-agent-anywhere {prompt}"), "no-such-agent-anywhere"),
        ("kept", ("--history", "kept"), "the history kept is a file: name a folder or URL with --history"),
        ("kept/transcripts", ("--history", "kept"), "the history kept cannot be written"),
    ],
)
def test_what_would_cost_the_verdict_is_found_before_the_first_trial(
    here: Here, in_the_way: str, options: tuple[str, ...], message: str
) -> None:
    gate_of(here, "a")
    if in_the_way:
        here.write(in_the_way, "a file")
    said = refused(here, "run", "ci_merge", *shell_agent(here, f"touch {here.path}/ran"), *options)
    assert message in said
    assert options[0] in said or not in_the_way
    assert not (here.path / "ran").exists()
    assert list(here.path.glob(".passgate/runs/*")) == []


def test_an_agent_that_crashes_fails_and_says_how_without_the_secrets_that_are_masked_everywhere(gate: Project) -> None:
    gate.write("gates.yaml", (gate.path / "gates.yaml").read_text() + "\nsecrets: [THE_KEY]\n")
    crash = shell_agent(gate, 'echo "no model today for $THE_KEY" >&2; exit 7')
    result = exits(gate, 1, "run", "ci_merge", *crash, THE_KEY='hunter2-"quoted"-value')
    assert "exit code 7" in result.stdout
    assert "no model today" in result.stdout
    assert "hunter2" not in result.stdout + result.stderr
    for file in gate.path.rglob(".passgate/**/*"):
        assert not file.is_file() or b"hunter2" not in file.read_bytes(), file


@pytest.mark.slow
def test_the_command_that_began_a_run_carries_it_on(gate: Project) -> None:
    command = ("run", "ci_merge", "--agent", "nop", "--k", "2", "--gates", "gates.yaml", "--suites", "suites")
    exits(gate, 1, *command)
    (folder,) = gate.run_folders()
    (folder / "verdict.json").unlink()
    exits(gate, 1, *command, "--jobs", "1", "--resume", "last")
    assert (gate.run_folders(), (folder / "verdict.json").is_file()) == ([folder], True)
    others = ("--agent", "oracle", "--k", "3", "--task", "golden/*")
    differs = (
        "--agent oracle: the run has --agent nop; --k 3: the run has --k 2; --task golden/*: the run has no --task"
    )
    assert differs in refused(gate, "run", "ci_merge", *others, "--resume", "last")


def test_a_task_that_was_green_on_main_and_is_red_now_is_a_golden_regression(scenario: Scenarios) -> None:
    runs = scenario(a_regression)
    green, red = runs.ended("run"), runs.ended("change")
    assert (green.returncode, red.returncode) == (0, 1), green.stderr
    assert "no baseline" in green.stdout
    assert "golden_regression" in red.stdout
    verdict, newest = verdict_of(runs), newest_run(runs)
    assert verdict["inputs"]["baseline_runs"] == [run.name for run in runs.run_folders() if run != newest]
    (confirmation,) = verdict["confirmations"]
    assert (confirmation["baseline_passed"], confirmation["baseline_n"], confirmation["passed"]) == (2, 2, 0)


def test_a_part_of_a_gate_never_passes(gate: Project) -> None:
    gate_of(gate, "a", "b", k=1)
    assert "--task" in exits(gate, 3, "run", "ci_merge", *shell_agent(gate), "--task", "golden/a").stdout
    assert [line["trial"]["task_id"] for line in finished_trials(gate)] == ["a"]


def test_in_ci_the_summary_and_the_annotations_are_where_people_look(red: Scenario) -> None:
    run = red.ended()
    assert run.returncode == 1
    assert "::error file=suites/golden/first.yaml,line=3" in run.stdout
    assert "FAIL" in (red.path / "summary.md").read_text()


def test_the_artifacts_of_a_run_are_whole_and_of_their_schema(red: Scenario) -> None:
    (folder,) = red.run_folders()
    verdict = json.loads((folder / "verdict.json").read_text())
    schema = json.loads((REPOSITORY / "schema" / "verdict.schema.json").read_text())
    Draft202012Validator(schema).validate(verdict)
    assert verdict["exit_code"] == 1
    assert {file.name for file in folder.iterdir()} == {
        *("plan.json", "journal.jsonl", "verdict.json", "junit.xml", "summary.md", "report.html"),
        *("violations.sarif", "code-quality.json"),
    }
    rows = pd.read_parquet(red.path / ".passgate" / "history" / "trials")
    properties = json.loads((REPOSITORY / "schema" / "trial.schema.json").read_text())["properties"]
    assert set(rows.columns) == set(properties)
    transcripts = pd.read_parquet(red.path / ".passgate" / "history" / "transcripts")
    assert set(rows["transcript_digest"]) <= set(transcripts["transcript_digest"])


@pytest.mark.slow
def test_what_a_run_keeps_is_for_its_owner_only(gate: Project) -> None:
    open_to_all = ["sh", "-c", 'umask 000; exec "$@"', "sh", *gate.command("run", "ci_merge", "--agent", "nop")]
    result = gate.run(open_to_all)
    assert result.returncode == 1, result.stderr
    state = gate.path / ".passgate"
    kept = [state, *state.rglob("*")]
    assert {"plan.json", "journal.jsonl", "verdict.json"} <= {path.name for path in kept}
    assert any(path.suffix == ".parquet" for path in kept)
    assert {path.name: oct(path.stat().st_mode) for path in kept if path.stat().st_mode & 0o077} == {}


@pytest.mark.slow
def test_a_run_that_is_going_on_cannot_be_resumed(gate: Project) -> None:
    mark = str(time.time_ns())
    with gate.started(gate.command("run", "ci_merge", *shell_agent(gate, f"sleep 4242.{mark}"))) as process:
        wait_until(lambda: marked_processes(f"sleep\x004242.{mark}") != [])
        assert "another process" in exits(gate, 3, "run", "ci_merge", "--resume", "last").stderr
        process.terminate()
        assert process.wait() == 130
