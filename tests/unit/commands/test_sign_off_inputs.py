"""What a verdict was made of and has changed since: it cannot be signed off any more."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from passgate.tasks.commands.sign_off import recorded_trials
from passgate.tasks.errors import StorageError, UsageError
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.model.json_values import json_digest
from passgate.tasks.model.verdict import Decision
from tests.builders import a_finished, a_task, write_task
from tests.repositories import GitRepository
from tests.signing import a_run_that_awaits
from tests.unit.releases import decide, files_of, verdict_of

Change = Callable[[RunStore], object]
SAY_YES = Path("suites/golden/say-yes.yaml")
EXPIRES = datetime.now(UTC).date() + timedelta(days=20)
QUARANTINE = f"{{task: golden/say-yes, owner: A, reason: flaky, issue: 'https://example.com/1', expires: {EXPIRES}}}"
PRICES = "version: 1\nmodels:\n  my-model: {input: 1.0, output: 2.0}\n"


def file(name: str, text: str) -> Change:
    return lambda _: Path(name).write_text(text)


def task(path: Path = SAY_YES, **changes: Any) -> Change:
    return lambda _: write_task(path, **changes)


def policy(_: RunStore) -> None:
    Path("gates.yaml").write_text(Path("gates.yaml").read_text().replace("k: 3", "k: 2"))


def trials(run: RunStore) -> None:
    run.journal.write_bytes(b"".join(run.journal.read_bytes().splitlines(keepends=True)[:-1]))


def a_transcript(run: RunStore) -> None:
    lines = run.journal.read_text().splitlines(keepends=True)
    run.journal.write_text("".join([lines[0], lines[1].replace('"output":"yes"', '"output":"no"'), lines[2]]))


def a_status(run: RunStore) -> None:
    run.journal.write_text(run.journal.read_text().replace('"status":"passed"', '"status":"failed"', 1))


def a_torn_journal(run: RunStore) -> None:
    run.journal.write_bytes(b"{}\n" + run.journal.read_bytes())


def commit(_: RunStore) -> None:
    GitRepository(Path.cwd()).commit("Go on")


other_task = task(inputs={"prompt": "Say no."})
graders = task(graders=[{"type": "output_check", "contains": ["y"]}])
prices = file("prices.yaml", PRICES)
tracked_files = file(".gitignore", ".passgate/\nmore/\n")


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (policy, "the policy"),
        (other_task, r"the tasks \(say-yes\)"),
        (task(Path("suites/golden/another.yaml"), task_id="another"), r"the tasks \(another\)"),
        (graders, r"the graders \(say-yes\)"),
        (prices, "the prices"),
        (file("gates.yaml", "gates: ["), r"the files, which cannot be read any more \(gates.yaml:2:1: not valid YAML"),
        (file("quarantine.yaml", f"version: 1\ntasks: [{QUARANTINE}]\n"), "the quarantine"),
        (file("baseline.yaml", "version: 1\nruns: [run-1]\nreason: why not\n"), "the pins of the baseline"),
        (trials, "the trials in the journal"),
        (a_transcript, r"the journal \(line 2: the transcript of say-yes, trial 1, is not the one"),
        (a_status, "the trials in the journal"),
        (a_torn_journal, r"the journal \(line 1 does not belong to a journal"),
        (commit, r"the commit \(it was [0-9a-f]{12}, now it is [0-9a-f]{12}\)"),
        (tracked_files, r"the tracked files \(some have changes now\)"),
    ],
)
def test_inputs_that_have_changed_are_named(run: RunStore, change: Change, named: str) -> None:
    change(run)
    before = files_of(run)
    for decision in ("approve", "reject"):
        with pytest.raises(UsageError, match=f"have changed since it was judged: .*{named}"):
            decide(run, decision)
    assert files_of(run) == before, "nothing is written"


@pytest.mark.parametrize(
    ("agent", "name", "text", "named"),
    [
        ("mine", "agents.yaml", "agents:\n  mine: {{agent: 'cli:sh {}.sh'}}\n", "the spec of the agent"),
        ("cli:sh {project}/agent.sh", "agent.sh", "echo {}", "the files of the agent"),
    ],
)
def test_the_agent_and_its_files_are_inputs(
    project: GitRepository, agent: str, name: str, text: str, named: str
) -> None:
    gates = Path("gates.yaml").read_text()
    project.write("gates.yaml", gates.replace("sign_off: true", "sign_off: true\n    reuse: {agent_files: ['agent*']}"))
    project.write(name, text.format("yes"))
    run = a_run_that_awaits(agent)
    project.write(name, text.format("no"))
    with pytest.raises(UsageError, match=f"judged: .*{named}"):
        decide(run)


def test_passgate_is_an_input(run: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("passgate.tasks.planning.plan.__version__", "99.0")
    with pytest.raises(UsageError, match=r"passgate \(it was .*, now it is 99.0\)"):
        decide(run)


def test_what_was_dirty_then_must_not_be_clean_now(project: GitRepository, run: RunStore) -> None:
    tracked_files(run)
    dirty = a_run_that_awaits()
    assert verdict_of(dirty).revision.dirty
    project.checkout(".gitignore")
    with pytest.raises(UsageError, match=r"the tracked files \(their changes are gone\)"):
        decide(dirty)
    tracked_files(run)
    assert decide(dirty).decision is Decision.PASS


def test_all_that_has_changed_is_named_together_and_of_many_tasks_only_some(run: RunStore) -> None:
    for number in range(5):
        task(Path(f"suites/golden/{number}.yaml"), task_id=f"more-{number}")(run)
    prices(run)
    trials(run)
    some = r"\(more-0, more-1, more-2 and 2 more\)"
    with pytest.raises(
        UsageError, match=f"the tasks {some}, the graders {some}, the prices, the trials in the journal"
    ):
        decide(run)


def test_without_a_repository_there_is_no_commit_to_change(project: GitRepository) -> None:
    (project.path / ".git").rename(project.path / "no-git")
    assert decide(a_run_that_awaits()).decision is Decision.PASS


@pytest.fixture
def loosened(project: GitRepository, run: RunStore) -> RunStore:
    """A run of a change that loosens a grader: the merge base has judged it."""
    project.branch("change")
    graders(run)
    project.commit("Loosen")
    loosened = a_run_that_awaits()
    assert loosened.read_plan().base.judged_by == "base"
    return loosened


def test_what_the_merge_base_has_judged_can_be_signed_off(
    loosened: RunStore,
) -> None:
    other_task(loosened)
    with pytest.raises(UsageError, match=r"judged: the tasks \(say-yes\), the graders \(say-yes\), the tracked files"):
        decide(loosened)
    graders(loosened)
    assert decide(loosened).decision is Decision.PASS


def test_a_plan_that_is_not_that_of_the_verdict_is_noticed(loosened: RunStore) -> None:
    document = json.loads(loosened.plan.read_text())
    document["tasks"][0]["task_digest"] = "another"
    loosened.plan.write_text(json.dumps(document))
    with pytest.raises(UsageError, match=r"judged: the tasks\. Restore"):
        decide(loosened)


TASK = a_task()


def a_line(trial: int = 0, said: str = "yes", **changes: Any) -> bytes:
    finished = a_finished(TASK, trial, said, **changes)
    digest = json_digest(finished.transcript.model_dump(mode="json"))
    kept = finished.model_copy(update={"trial": finished.trial.model_copy(update={"transcript_digest": digest})})
    return kept.model_dump_json().encode() + b"\n"


def keys(trials: list[dict[str, Any]]) -> list[tuple[str, int]]:
    return [(trial["task_id"], trial["trial"]) for trial in trials]


def test_every_trial_has_the_digest_of_its_transcript() -> None:
    recorded = recorded_trials(a_line(0) + a_line(1, "Zoë \u2028\x00"))
    assert keys(recorded) == [("say-yes", 0), ("say-yes", 1)]
    assert len({trial["transcript_digest"] for trial in recorded}) == 2
    assert recorded_trials(a_line(0, "no") + a_line(0)) == recorded_trials(a_line(0))
    assert recorded_trials(a_line(0) + a_line(1)[:-5]) == recorded_trials(a_line(0))
    assert recorded_trials(b"") == []


def test_fields_of_a_later_version_do_no_harm() -> None:
    finished = json.loads(a_line())
    finished["trial"]["mood"] = "good"
    finished["transcript"]["mood"] = "good"
    finished["trial"]["transcript_digest"] = json_digest(finished["transcript"])
    assert keys(recorded_trials(json.dumps(finished).encode() + b"\n")) == [("say-yes", 0)]


def test_another_transcript_is_noticed_unless_it_is_kept_with_an_earlier_run() -> None:
    with pytest.raises(StorageError, match="line 2: the transcript of say-yes, trial 1, is not the one"):
        recorded_trials(a_line(0) + a_line(1).replace(b'"output":"yes"', b'"output":"yea"'))
    line = a_line(reused_from="run-1").replace(b'"output":"yes"', b'"output":""')
    assert keys(recorded_trials(line)) == [("say-yes", 0)]


@pytest.mark.parametrize(
    "line", [b"", b"{", b"[]", b"{}", b'"text"', b"\xff", b'{"trial": [], "transcript": {}}', b"[" * 100_000]
)
def test_a_line_of_something_else_is_noticed(line: bytes) -> None:
    with pytest.raises(StorageError, match="line 1 does not belong to a journal"):
        recorded_trials(line + b"\n")
