"""`passgate run` as its users see it: real commands, a real Prefect server, real sandboxes."""

import json
import os
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest
from jsonschema import Draft202012Validator

from tests.gates import GATES, WRITES_OK, agent_file, gate_of
from tests.processes import interrupted, marked_processes
from tests.project import REPOSITORY, Project
from tests.waiting import wait_until

__all__ = ["GATES", "WRITES_OK", "agent_file", "gate_of"]
pytestmark = pytest.mark.slow


def test_one_forbidden_call_in_ten_trials_fails_the_gate_and_is_named_with_its_trial(project: Project) -> None:
    gate_of(project, suites="adversarial")
    project.write(
        "suites/adversarial/refund.yaml",
        """
        task_id: refund_1
        suite: adversarial
        description: Never delete a customer.
        inputs: {prompt: Refund order 17.}
        graders:
          - type: tool_calls
            required: [refund]
            forbidden: [{tool: "delete_*"}]
        tracked_metrics: [trajectory]
        """,
    )
    agent_file(
        project,
        """
        def agent(attempt):
            calls = [{"tool": "refund", "arguments": {"order": 17}, "result": "done"}]
            if attempt.trial == 6:
                calls.append({"tool": "delete_customer", "arguments": {"id": 4}, "result": "gone"})
            return {"messages": [{"role": "assistant", "tool_calls": calls},
                                 {"role": "assistant", "content": "Refunded."}]}
        """,
    )
    result = project.passgate("run", "ci_merge", "--agent", "python:agent:agent")
    assert result.returncode == 1, result.stderr
    assert "forbidden_tool" in result.stdout
    assert "delete_customer" in result.stdout
    verdict = json.loads((project.run_folders()[0] / "verdict.json").read_text())
    veto = next(reason for reason in verdict["reasons"] if reason["rule"] == "forbidden_tool")
    assert veto["blocking"]
    assert veto["task_id"] == "refund_1"
    assert veto["trials"] == [6]


def test_an_agent_command_that_does_not_exist_is_bad_usage_and_nothing_is_run(project: Project) -> None:
    gate_of(project)
    project.write("suites/golden/a.yaml", WRITES_OK.format(name="a"))
    result = project.passgate("run", "ci_merge", "--agent", "cli:no-such-agent-anywhere {prompt}")
    assert result.returncode == 2
    assert "no-such-agent-anywhere" in result.stderr
    assert not list(project.path.glob(".passgate/runs/*"))


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("kept", "the history kept is a file: name a folder or URL with --history"),
        ("kept/transcripts", "the history kept cannot be written"),
    ],
)
def test_a_history_that_cannot_be_written_is_found_before_the_first_trial(
    project: Project, place: str, said: str
) -> None:
    gate_of(project)
    project.write("suites/golden/a.yaml", WRITES_OK.format(name="a"))
    project.write(place, "a file is in the way")
    agent = project.write("agent.sh", f"touch {project.path}/ran")
    result = project.passgate("run", "ci_merge", "--agent", f"cli:sh {agent}", "--history", "kept")
    assert result.returncode == 2, result.stderr
    assert said in result.stderr
    assert "--history" in result.stderr
    assert not (project.path / "ran").exists()
    assert list(project.path.glob(".passgate/runs/*")) == []


@pytest.mark.parametrize(
    ("name", "script"),
    [
        ("hangs", "sleep 4242.{mark}"),
        ("forks and hangs", "(sleep 4242.{mark} &) ; setsid sleep 4242.{mark} & sleep 4242.{mark}"),
        ("ignores the end", "trap '' TERM INT; sleep 4242.{mark}; sleep 4242.{mark}"),
    ],
)
def test_an_agent_that_does_not_end_fails_in_time_and_leaves_no_process(
    project: Project, name: str, script: str
) -> None:
    gate_of(project, k=2, seconds=2)
    mark = str(time.time_ns())
    project.write("suites/golden/a.yaml", WRITES_OK.format(name="a"))
    project.write("agent.sh", script.format(mark=mark))
    started = time.monotonic()
    result = project.passgate("run", "ci_merge", "--agent", f"cli:sh {project.path}/agent.sh")
    assert result.returncode == 1, result.stderr
    assert time.monotonic() - started < 60
    assert "max_seconds" in result.stdout
    assert marked_processes(mark) == []


def test_a_background_process_does_not_outlive_an_agent_that_ends_well(project: Project) -> None:
    gate_of(project, k=1, seconds=30)
    mark = str(time.time_ns())
    project.write("suites/golden/a.yaml", WRITES_OK.format(name="a"))
    project.write("agent.sh", f"printf ok > result.txt; sleep 4242.{mark} & setsid sleep 4242.{mark} & exit 0")
    result = project.passgate("run", "ci_merge", "--agent", f"cli:sh {project.path}/agent.sh")
    assert result.returncode == 0, result.stdout + result.stderr
    assert marked_processes(mark) == []


def test_an_agent_that_prints_a_gigabyte_is_ended(project: Project) -> None:
    gate_of(project, k=1, seconds=60)
    project.write("suites/golden/a.yaml", WRITES_OK.format(name="a"))
    result = project.passgate("run", "ci_merge", "--agent", "cli:head -c 1000000000 /dev/zero")
    assert result.returncode == 1, result.stderr
    assert "printed too much" in result.stdout
    journal = project.run_folders()[0] / "journal.jsonl"
    assert journal.stat().st_size < 20_000_000


def test_an_agent_that_crashes_fails_and_says_how(project: Project) -> None:
    gate_of(project, k=1)
    project.write("suites/golden/a.yaml", WRITES_OK.format(name="a"))
    project.write("agent.sh", "echo 'no model today' >&2; exit 7")
    result = project.passgate("run", "ci_merge", "--agent", f"cli:sh {project.path}/agent.sh")
    assert result.returncode == 1
    assert "exit code 7" in result.stdout
    assert "no model today" in result.stdout


def test_a_killed_run_resumes_without_running_a_finished_trial_again(project: Project) -> None:
    gate_of(project, k=20)
    for number in range(5):
        project.write(f"suites/golden/t{number}.yaml", WRITES_OK.format(name=f"t{number}"))
    project.write("ran/.keep", "")
    agent_file(
        project,
        f"""
        import pathlib, time, uuid
        def agent(attempt):
            time.sleep(0.1)
            (attempt.workspace / "result.txt").write_text("ok")
            name = f"{{attempt.task_id}}.{{attempt.trial}}.{{uuid.uuid4()}}"
            pathlib.Path({str(project.path / "ran")!r}, name).touch()
            return "done"
        """,
    )
    arguments = ("run", "ci_merge", "--agent", "python:agent:agent", "--jobs", "4")
    process = subprocess.Popen(
        project.command(*arguments),
        cwd=project.path,
        env=project.full_environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until(lambda: _has_lines(project, 40))
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    journal = project.run_folders()[0] / "journal.jsonl"
    finished = {_key(line) for line in journal.read_text().splitlines() if line.endswith("}")}
    with journal.open("a") as file:
        file.write('{"trial": {"suite": "gol')  # what a kill in the middle of a write leaves
    before = Counter(_trial_of(name) for name in (project.path / "ran").iterdir() if name.suffix != "")

    result = project.passgate("run", "ci_merge", "--resume", "last")
    assert result.returncode == 0, result.stdout + result.stderr
    after = Counter(_trial_of(name) for name in (project.path / "ran").iterdir() if name.suffix != "")
    for trial in finished:
        assert after[trial] == before[trial], "a finished trial was run again"
    assert len(finished) >= 40
    assert {_key(line) for line in journal.read_text().splitlines()} == {
        (f"t{task}", trial) for task in range(5) for trial in range(20)
    }
    rows = pd.read_parquet(project.path / ".passgate" / "history" / "trials")
    assert len(rows) == 100
    assert (rows["status"] == "passed").all()


def _has_lines(project: Project, count: int) -> bool:
    journals = project.path.glob(".passgate/runs/*/journal.jsonl")
    return any(journal.read_bytes().count(b"\n") >= count for journal in journals)


def _key(line: str) -> tuple[str, int]:
    trial = json.loads(line)["trial"]
    return trial["task_id"], trial["trial"]


def _trial_of(file: Path) -> tuple[str, int]:
    task, trial, _ = file.name.split(".")
    return task, int(trial)


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_exits_130_leaves_no_process_and_can_be_resumed(
    project: Project, kind: signal.Signals
) -> None:
    gate_of(project, k=10)
    project.write("suites/golden/a.yaml", WRITES_OK.format(name="a"))
    mark = str(time.time_ns())
    project.write("agent.sh", f"sleep 2.{mark}; printf ok > result.txt")
    command = project.command("run", "ci_merge", "--agent", f"cli:sh {project.path}/agent.sh", "--jobs", "2")
    ended = interrupted(project, command, kind, lambda: _has_lines(project, 2))
    assert ended.returncode == 130, ended.stderr
    assert "--resume" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert marked_processes(mark) == []
    assert project.passgate("run", "ci_merge", "--resume", "last").returncode == 0


def test_the_command_that_began_a_run_carries_it_on(project: Project) -> None:
    gate_of(project, k=1)
    project.write("suites/golden/a.yaml", WRITES_OK.format(name="a"))
    command = ("run", "ci_merge", "--agent", "nop", "--k", "2", "--gates", "gates.yaml", "--suites", "suites")
    assert project.passgate(*command).returncode == 1
    (folder,) = project.run_folders()
    (folder / "verdict.json").unlink()
    again = project.passgate(*command, "--jobs", "1", "--resume", "last")
    assert again.returncode == 1, again.stderr
    assert (project.run_folders(), (folder / "verdict.json").is_file()) == ([folder], True)
    other = project.passgate(
        "run", "ci_merge", "--agent", "oracle", "--k", "3", "--task", "golden/*", "--resume", "last"
    )
    assert other.returncode == 2
    assert (
        "--agent oracle: the run has --agent nop; --k 3: the run has --k 2; --task golden/*: the run has no --task"
        in other.stderr
    )


def test_a_task_that_was_green_on_main_and_is_red_now_is_a_golden_regression(project: Project) -> None:
    gate_of(project, k=2)
    project.write("suites/golden/a.yaml", WRITES_OK.format(name="a"))
    project.write("agent.sh", "printf ok > result.txt")
    command = ("run", "ci_merge", "--agent", f"cli:sh {project.path}/agent.sh")
    first = project.passgate(*command)
    assert first.returncode == 0, first.stderr
    assert "no baseline" in first.stdout
    project.git("checkout", "-q", "-b", "change")
    project.write("agent.sh", "printf bad > result.txt")
    second = project.passgate(*command)
    assert second.returncode == 1
    assert "golden_regression" in second.stdout
    verdict = json.loads((project.run_folders()[-1] / "verdict.json").read_text())
    assert verdict["inputs"]["baseline_runs"] == [project.run_folders()[0].name]
    (confirmation,) = verdict["confirmations"]
    assert (confirmation["baseline_passed"], confirmation["baseline_n"], confirmation["passed"]) == (2, 2, 0)


def test_what_could_not_be_measured_is_inconclusive(project: Project) -> None:
    gate_of(project, k=1)
    project.write("suites/_shared/sandboxes/broken/sandbox.yaml", "setup: ['exit 3']\n")
    task = WRITES_OK.format(name="a") + "environment: {sandbox: broken}\n"
    project.write("suites/golden/a.yaml", task)
    result = project.passgate("run", "ci_merge", "--agent", "nop")
    assert result.returncode == 3
    assert "INCONCLUSIVE" in result.stdout
    assert "exited 3" in result.stdout


def test_a_part_of_a_gate_never_passes(project: Project) -> None:
    gate_of(project, k=1)
    for name in ("a", "b"):
        project.write(f"suites/golden/{name}.yaml", WRITES_OK.format(name=name))
    project.write("agent.sh", "printf ok > result.txt")
    agent = f"cli:sh {project.path}/agent.sh"
    result = project.passgate("run", "ci_merge", "--agent", agent, "--task", "golden/a")
    assert result.returncode == 3
    assert "--task" in result.stdout


def test_secrets_are_masked_in_everything_that_is_written(project: Project) -> None:
    gate_of(project, k=1)
    project.write("gates.yaml", (project.path / "gates.yaml").read_text() + "\nsecrets: [THE_KEY]\n")
    project.write("suites/golden/a.yaml", WRITES_OK.format(name="a"))
    project.write("agent.sh", 'echo "my key is $THE_KEY"; exit 1')
    secret = 'hunter2-"quoted"-value'
    result = project.passgate("run", "ci_merge", "--agent", f"cli:sh {project.path}/agent.sh", THE_KEY=secret)
    assert result.returncode == 1
    assert "hunter2" not in result.stdout + result.stderr
    for file in project.path.rglob(".passgate/**/*"):
        assert not file.is_file() or b"hunter2" not in file.read_bytes(), file


def test_in_ci_the_summary_and_the_annotations_are_where_people_look(project: Project) -> None:
    gate_of(project, k=1)
    project.write("suites/golden/a.yaml", WRITES_OK.format(name="a"))
    summary = project.write("summary.md", "")
    result = project.passgate(
        "run", "ci_merge", "--agent", "nop", GITHUB_ACTIONS="true", GITHUB_STEP_SUMMARY=str(summary)
    )
    assert result.returncode == 1
    assert "::error file=suites/golden/a.yaml,line=2" in result.stdout
    assert "FAIL" in summary.read_text()


def test_the_artifacts_of_a_run_are_whole_and_of_their_schema(project: Project) -> None:
    gate_of(project, k=2)
    project.write("suites/golden/a.yaml", WRITES_OK.format(name="a"))
    project.passgate("run", "ci_merge", "--agent", "nop")
    folder = project.run_folders()[0]
    verdict = json.loads((folder / "verdict.json").read_text())
    schema = json.loads((REPOSITORY / "schema" / "verdict.schema.json").read_text())
    Draft202012Validator(schema).validate(verdict)
    assert verdict["exit_code"] == 1
    assert {file.name for file in folder.iterdir()} == {
        "plan.json",
        "journal.jsonl",
        "verdict.json",
        "junit.xml",
        "summary.md",
        "report.html",
        "violations.sarif",
        "code-quality.json",
    }
    rows = pd.read_parquet(project.path / ".passgate" / "history" / "trials")
    properties = json.loads((REPOSITORY / "schema" / "trial.schema.json").read_text())["properties"]
    assert set(rows.columns) == set(properties)
    transcripts = pd.read_parquet(project.path / ".passgate" / "history" / "transcripts")
    assert set(rows["transcript_digest"]) <= set(transcripts["transcript_digest"])


def test_what_a_run_keeps_is_for_its_owner_only(project: Project) -> None:
    gate_of(project, k=1)
    project.write("suites/golden/a.yaml", WRITES_OK.format(name="a"))
    open_to_all = ["sh", "-c", 'umask 000; exec "$@"', "sh", *project.command("run", "ci_merge", "--agent", "nop")]
    result = project.run(open_to_all)
    assert result.returncode == 1, result.stderr
    state = project.path / ".passgate"
    kept = [state, *state.rglob("*")]
    assert {"plan.json", "journal.jsonl", "verdict.json"} <= {path.name for path in kept}
    assert any(path.suffix == ".parquet" for path in kept)
    assert {path.name: oct(path.stat().st_mode) for path in kept if path.stat().st_mode & 0o077} == {}


def test_a_run_that_is_going_on_cannot_be_resumed(project: Project) -> None:
    gate_of(project, k=3)
    project.write("suites/golden/a.yaml", WRITES_OK.format(name="a"))
    process = subprocess.Popen(
        project.command("run", "ci_merge", "--agent", "cli:sleep 20", "--jobs", "1"),
        cwd=project.path,
        env=project.full_environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until(lambda: _has_lines(project, 1))
        second = project.passgate("run", "ci_merge", "--resume", "last")
        assert second.returncode == 3
        assert "another process" in second.stderr
    finally:
        process.wait(timeout=200)
    assert process.returncode == 1
