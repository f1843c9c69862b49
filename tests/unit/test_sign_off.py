"""What a person decides on a verdict, and when they cannot."""

import json
import os
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.builders import write_task
from tests.signing import a_run_that_awaits, write_gate, write_keys

from passgate.tasks.attestations.envelope import read_envelope, signed_bytes
from passgate.tasks.attestations.keys import verifying_key
from passgate.tasks.errors import StorageError, UsageError
from passgate.tasks.history.run_folder import RunFolder
from passgate.tasks.model.run import RunRequest
from passgate.tasks.model.sign_off import verdict_digest
from passgate.tasks.model.task import GateName
from passgate.tasks.model.verdict import Decision, Verdict
from passgate.tasks.prepare import prepare
from passgate.tasks.reports import REPORTS
from passgate.tasks.sign_off import sign_off


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    for name in ("GITHUB_STEP_SUMMARY", "SECRET_WORD", "PASSGATE_SIGNING_PASSPHRASE"):
        monkeypatch.delenv(name, raising=False)
    (folder / ".gitignore").write_text(".passgate/\n")
    write_gate(folder)
    git("init", "-q", "-b", "main")
    return folder


@pytest.fixture
def run(project: Path) -> RunFolder:
    """A run of what is committed, ended with a verdict that awaits a sign-off."""
    git("add", ".")
    git("commit", "-q", "-m", "Begin")
    return a_run_that_awaits()


def git(*arguments: str) -> None:
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.com")
    subprocess.run(["git", *identity, *arguments], check=True, capture_output=True)


def decide(run: RunFolder, decision: Any = "approve", **changes: Any) -> Verdict:
    return sign_off(run.path.name, **({"by": "Ada", "decision": decision, "reason": "read every transcript"} | changes))


def seen(run: RunFolder) -> Verdict:
    verdict = run.read_verdict()
    assert verdict is not None
    return verdict


def files_of(run: RunFolder) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in run.path.iterdir()}


def test_the_verdict_awaits_a_sign_off_first(run: RunFolder) -> None:
    verdict = seen(run)
    assert (verdict.decision, verdict.exit_code, verdict.awaiting_sign_off) == (Decision.INCONCLUSIVE, 3, True)


@pytest.mark.parametrize(
    ("decision", "expected", "code"), [("approve", Decision.PASS, 0), ("reject", Decision.FAIL, 1)]
)
def test_what_is_decided_is_the_verdict(run: RunFolder, decision: str, expected: Decision, code: int) -> None:
    before, began = seen(run), datetime.now(UTC)
    verdict = decide(run, decision)
    assert seen(run) == verdict
    assert (verdict.decision, verdict.exit_code, verdict.awaiting_sign_off) == (expected, code, False)
    said = verdict.sign_off
    assert said is not None
    assert (said.by, said.decision, said.reason) == ("Ada", decision, "read every transcript")
    assert began <= said.at <= datetime.now(UTC) + timedelta(seconds=1)
    assert said.verdict_digest == verdict_digest(before)


def test_every_report_is_written_again(run: RunFolder) -> None:
    before = files_of(run)
    verdict = decide(run, "reject", reason="the tone")
    for name, make in REPORTS.items():
        assert (run.path / name).read_text(encoding="utf-8") == make(verdict)
    assert (run.path / "summary.md").read_bytes() != before["summary.md"]


def test_the_history_is_left_alone(run: RunFolder, project: Path) -> None:
    decide(run)
    assert not (project / ".passgate/history").exists()


def test_nobody_signs_off_twice(run: RunFolder) -> None:
    verdict = decide(run)
    assert verdict.sign_off is not None
    at = f"{verdict.sign_off.at:%Y-%m-%d %H:%M}"
    with pytest.raises(UsageError, match=f"signed off already: approved by Ada at {at}"):
        decide(run, "reject", by="Bob")
    assert seen(run) == verdict


def test_a_sign_off_is_not_undone_by_carrying_the_run_on(run: RunFolder) -> None:
    request = RunRequest(run=run.path.name)
    assert prepare(GateName.RELEASE_CANDIDATE, request).run_id == run.path.name
    decide(run, "reject")
    with pytest.raises(UsageError, match="is signed off, rejected by Ada: start a new run"):
        prepare(GateName.RELEASE_CANDIDATE, request)


def test_only_one_of_two_at_the_same_time_wins(run: RunFolder) -> None:
    with run.held(), pytest.raises(UsageError, match="going on, or somebody else is signing it off"):
        decide(run)
    assert seen(run).sign_off is None
    assert decide(run).decision is Decision.PASS


@pytest.mark.parametrize(
    ("decision", "words"), [(Decision.FAIL, "FAIL"), (Decision.INCONCLUSIVE, "INCONCLUSIVE"), (Decision.PASS, "PASS")]
)
@pytest.mark.parametrize("said", ["approve", "reject"])
def test_a_verdict_that_stands_awaits_nothing(run: RunFolder, decision: Decision, words: str, said: str) -> None:
    stands = seen(run).model_copy(update={"decision": decision, "awaiting_sign_off": False, "reasons": ()})
    run.write_reports(stands, {})
    with pytest.raises(UsageError, match=f"awaits no sign-off, its verdict stands: release_candidate {words}"):
        decide(run, said)
    assert seen(run) == stands


def test_a_run_without_a_verdict_cannot_be_signed_off(run: RunFolder) -> None:
    run.verdict.unlink()
    with pytest.raises(UsageError, match="has no verdict: carry it on with"):
        decide(run)


@pytest.mark.parametrize("changes", [{"by": " "}, {"by": ""}, {"reason": "\n\t"}, {"reason": ""}])
def test_who_and_why_have_to_be_said(run: RunFolder, changes: dict[str, str]) -> None:
    with pytest.raises(UsageError, match=f"--{next(iter(changes))} is empty"):
        decide(run, **changes)
    assert seen(run).awaiting_sign_off


def test_names_and_reasons_have_bounds(run: RunFolder) -> None:
    with pytest.raises(UsageError, match="--by is longer than 200"):
        decide(run, by="a" * 201)
    with pytest.raises(UsageError, match="--reason is longer than 10000"):
        decide(run, reason="a" * 10_001)
    with pytest.raises(UsageError, match="--by is not UTF-8 text"):
        decide(run, by=os.fsdecode(b"Zo\xeb"))
    assert decide(run, by="a" * 200, reason="a" * 10_000).decision is Decision.PASS


def test_a_secret_is_masked_in_what_is_said(run: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_WORD", "hunter22")
    decide(run, "reject", by="hunter22", reason="it knows hunter22")
    for name, content in files_of(run).items():
        assert b"hunter22" not in content, name


# What has changed since.


def policy(run: RunFolder) -> None:
    gates = Path("gates.yaml")
    gates.write_text(gates.read_text().replace("k: 3", "k: 2"))


def tasks(run: RunFolder) -> None:
    write_task(Path("suites/golden/say-yes.yaml"), inputs={"prompt": "Say no."})


def more_tasks(run: RunFolder) -> None:
    write_task(Path("suites/golden/another.yaml"), task_id="another")


def graders(run: RunFolder) -> None:
    write_task(Path("suites/golden/say-yes.yaml"), graders=[{"type": "output_check", "contains": ["y"]}])


def prices(run: RunFolder) -> None:
    Path("prices.yaml").write_text("version: 1\nmodels:\n  my-model: {input: 1.0, output: 2.0}\n")


def unreadable_files(run: RunFolder) -> None:
    Path("gates.yaml").write_text("gates: [")


def quarantine(run: RunFolder) -> None:
    expires = datetime.now(UTC).date() + timedelta(days=20)
    entry = f"{{task: golden/say-yes, owner: A, reason: flaky, issue: 'https://example.com/1', expires: {expires}}}"
    Path("quarantine.yaml").write_text(f"version: 1\ntasks: [{entry}]\n")


def pins(run: RunFolder) -> None:
    Path("baseline.yaml").write_text("version: 1\nruns: [run-1]\nreason: why not\n")


def trials(run: RunFolder) -> None:
    run.journal.write_bytes(b"".join(run.journal.read_bytes().splitlines(keepends=True)[:-1]))


def a_transcript(run: RunFolder) -> None:
    lines = run.journal.read_text().splitlines(keepends=True)
    finished = json.loads(lines[1])
    finished["transcript"]["output"] = "no"
    run.journal.write_text("".join([lines[0], json.dumps(finished) + "\n", lines[2]]))


def a_torn_journal(run: RunFolder) -> None:
    run.journal.write_bytes(b"{}\n" + run.journal.read_bytes())


def commit(run: RunFolder) -> None:
    git("commit", "-q", "--allow-empty", "-m", "Go on")


def tracked_files(run: RunFolder) -> None:
    Path(".gitignore").write_text(".passgate/\nmore/\n")


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (policy, "the policy"),
        (tasks, r"the tasks \(say-yes\)"),
        (more_tasks, r"the tasks \(another\)"),
        (graders, r"the graders \(say-yes\)"),
        (prices, "the prices"),
        (unreadable_files, r"the files, which cannot be read any more \(gates.yaml:2:1: not valid YAML"),
        (quarantine, "the quarantine"),
        (pins, "the pins of the baseline"),
        (trials, "the trials in the journal"),
        (a_transcript, r"the journal \(line 2: the transcript of say-yes, trial 1, is not the one"),
        (a_torn_journal, r"the journal \(line 1 is none of a journal's"),
        (commit, r"the commit \(it was [0-9a-f]{12}, now it is [0-9a-f]{12}\)"),
        (tracked_files, r"the tracked files \(some have changes now\)"),
    ],
)
def test_inputs_that_have_changed_are_named(run: RunFolder, change: Callable[[RunFolder], None], named: str) -> None:
    change(run)
    before = files_of(run)
    with pytest.raises(UsageError, match=f"have changed since it was judged: .*{named}"):
        decide(run)
    assert files_of(run) == before, "nothing is written"


def test_what_has_changed_cannot_be_rejected_either(run: RunFolder) -> None:
    tasks(run)
    with pytest.raises(UsageError, match="have changed since it was judged: the tasks"):
        decide(run, "reject")


def test_the_agent_is_an_input(project: Path) -> None:
    (project / "agents.yaml").write_text("agents:\n  mine: {agent: 'cli:sh agent.sh'}\n")
    run = a_run_that_awaits("mine")
    (project / "agents.yaml").write_text("agents:\n  mine: {agent: 'cli:sh other.sh'}\n")
    with pytest.raises(UsageError, match="the spec of the agent"):
        decide(run)


def test_the_files_of_the_agent_are_an_input_where_the_policy_names_them(project: Path) -> None:
    gates = project / "gates.yaml"
    gates.write_text(
        gates.read_text().replace("sign_off: true", "sign_off: true\n    reuse: {agent_files: [agent.sh]}")
    )
    (project / "agent.sh").write_text("echo yes")
    run = a_run_that_awaits()
    (project / "agent.sh").write_text("echo no")
    with pytest.raises(UsageError, match="judged: the files of the agent"):
        decide(run)


def test_passgate_is_an_input(run: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("passgate.tasks.prepare.__version__", "99.0")
    with pytest.raises(UsageError, match=r"passgate \(it was .*, now it is 99.0\)"):
        decide(run)


def test_what_was_dirty_then_must_not_be_clean_now(run: RunFolder) -> None:
    tracked_files(run)
    dirty = a_run_that_awaits()
    assert seen(dirty).revision.dirty
    git("checkout", "-q", ".gitignore")
    with pytest.raises(UsageError, match=r"the tracked files \(their changes are gone\)"):
        decide(dirty)
    tracked_files(run)
    assert decide(dirty).decision is Decision.PASS


def test_all_that_has_changed_is_named_together(run: RunFolder) -> None:
    tasks(run)
    prices(run)
    trials(run)
    with pytest.raises(UsageError, match=r"the tasks \(say-yes\), the prices, the trials in the journal, the tracked"):
        decide(run)


def test_of_many_tasks_only_some_are_named(run: RunFolder) -> None:
    for number in range(5):
        write_task(Path(f"suites/golden/{number}.yaml"), task_id=f"more-{number}")
    with pytest.raises(UsageError, match=r"the tasks \(more-0, more-1, more-2 and 2 more\)"):
        decide(run)


def test_without_a_repository_there_is_no_commit_to_change(project: Path) -> None:
    (project / ".git").rename(project / "no-git")
    run = a_run_that_awaits()
    assert decide(run).decision is Decision.PASS


@pytest.fixture
def loosened(run: RunFolder) -> RunFolder:
    """A run of a change that loosens a grader: the merge base has judged it."""
    git("checkout", "-q", "-b", "change")
    graders(run)
    git("commit", "-q", "-a", "-m", "Loosen")
    loosened = a_run_that_awaits()
    assert loosened.read_plan().base.judged_by == "base"
    return loosened


def test_what_the_merge_base_has_judged_can_be_signed_off(loosened: RunFolder) -> None:
    assert decide(loosened).decision is Decision.PASS


def test_the_files_of_the_change_are_inputs_there_too(loosened: RunFolder) -> None:
    tasks(loosened)
    with pytest.raises(UsageError, match=r"judged: the tasks \(say-yes\), the graders \(say-yes\), the tracked files"):
        decide(loosened)


def test_a_plan_that_is_not_that_of_the_verdict_is_noticed(loosened: RunFolder) -> None:
    document = json.loads(loosened.plan.read_text())
    document["tasks"][0]["task_digest"] = "another"
    loosened.plan.write_text(json.dumps(document))
    with pytest.raises(UsageError, match=r"judged: the tasks\. Bring"):
        decide(loosened)


# Signing.


def test_without_a_key_nothing_is_signed(run: RunFolder) -> None:
    decide(run)
    assert not run.attestation.exists()


@pytest.mark.parametrize("decision", ["approve", "reject"])
def test_with_a_key_the_verdict_is_signed(run: RunFolder, tmp_path: Path, decision: str) -> None:
    private, public = write_keys(tmp_path)
    decide(run, decision, key_file=private)
    envelope = read_envelope(run.attestation.read_bytes())
    key = verifying_key(public.read_bytes())
    (signature,) = envelope.signatures
    assert signature.keyid == key.keyid
    assert key.has_signed(signed_bytes(envelope.payload), signature.sig)


def test_a_key_that_cannot_be_used_is_found_before_anything_is_written(run: RunFolder, tmp_path: Path) -> None:
    before = files_of(run)
    _, public = write_keys(tmp_path)
    (tmp_path / "large.pem").write_bytes(b"x" * 70_000)
    for name, message in {
        "public.pem": "public.pem is no private key in PEM",
        "missing.pem": "missing.pem cannot be read: No such file",
        "large.pem": "large.pem is larger than 64 KiB",
        ".": "is no regular file",
    }.items():
        with pytest.raises(UsageError, match=message):
            decide(run, key_file=tmp_path / name)
    assert public.exists()
    assert files_of(run) == before


def test_the_statement_of_an_earlier_verdict_does_not_stay(run: RunFolder) -> None:
    run.attestation.write_text("{}")
    decide(run)
    assert not run.attestation.exists()


def test_a_run_that_is_carried_on_has_neither_verdict_nor_signature(run: RunFolder, tmp_path: Path) -> None:
    decide(run, key_file=write_keys(tmp_path)[0])
    run.begin()
    assert not run.verdict.exists()
    assert not run.attestation.exists()


def test_a_verdict_that_cannot_be_written_is_not_signed_off(
    run: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise StorageError("the disk is full")

    monkeypatch.setattr(RunFolder, "write_reports", fails)
    with pytest.raises(StorageError):
        decide(run, key_file=write_keys(tmp_path)[0])
    monkeypatch.undo()
    monkeypatch.chdir(run.path.parents[2])
    assert seen(run).awaiting_sign_off
    assert decide(run).decision is Decision.PASS
