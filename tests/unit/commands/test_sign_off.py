"""What a person decides on a verdict, and when they cannot."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from passgate.tasks.errors import StorageError, UsageError
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.load import load
from passgate.tasks.model.run import RunRequest
from passgate.tasks.model.task import GateName
from passgate.tasks.model.verdict import Decision, RunView, verdict_digest
from passgate.tasks.report import RUN_FILES
from tests.unit.releases import decide, files_of, verdict_of


@pytest.mark.parametrize(("decision", "expected"), [("approve", (Decision.PASS, 0)), ("reject", (Decision.FAIL, 1))])
def test_what_is_decided_is_the_verdict(run: RunStore, decision: str, expected: tuple[Decision, int]) -> None:
    before, files, began = verdict_of(run), files_of(run), datetime.now(UTC)
    assert (before.decision, before.exit_code, before.awaiting_sign_off) == (Decision.INCONCLUSIVE, 3, True)
    verdict = decide(run, decision)
    assert verdict_of(run) == verdict
    assert (verdict.decision, verdict.exit_code, verdict.awaiting_sign_off) == (*expected, False)
    said = verdict.sign_off
    assert (said.by, said.decision, said.reason) == ("Ada", decision, "read every transcript")
    assert began <= said.at <= datetime.now(UTC) + timedelta(seconds=1)
    assert said.verdict_digest == verdict_digest(before)
    for name, make in RUN_FILES.items():
        assert (run.here / name).read_text(encoding="utf-8") == make(RunView(verdict))
    assert (run.here / "summary.md").read_bytes() != files["summary.md"]
    assert not list(Path(".passgate/history").rglob("*.parquet"))


def test_nobody_signs_off_twice_and_a_sign_off_is_not_undone_by_carrying_the_run_on(run: RunStore) -> None:
    request = RunRequest(run=run.here.name)
    assert load(GateName.RELEASE_CANDIDATE, request).run_id == run.here.name
    verdict = decide(run, "reject")
    with pytest.raises(
        UsageError, match=f"signed off already: rejected by Ada at {verdict.sign_off.at:%Y-%m-%d %H:%M}"
    ):
        decide(run, by="Bob")
    with pytest.raises(UsageError, match="is signed off, rejected by Ada: start a new run"):
        load(GateName.RELEASE_CANDIDATE, request)
    assert verdict_of(run) == verdict


def test_only_one_of_two_at_the_same_time_wins(run: RunStore) -> None:
    with run.hold(), pytest.raises(UsageError, match="already running, or somebody else is signing it off"):
        decide(run)
    assert verdict_of(run).sign_off is None
    assert decide(run).decision is Decision.PASS


@pytest.mark.parametrize("decision", Decision)
def test_a_verdict_that_stands_awaits_nothing(run: RunStore, decision: Decision) -> None:
    stands = verdict_of(run).model_copy(update={"decision": decision, "awaiting_sign_off": False, "reasons": ()})
    run.write_reports(stands, {})
    with pytest.raises(UsageError, match=f"awaits no sign-off, its verdict stands: release_candidate {decision}"):
        decide(run)
    assert verdict_of(run) == stands
    run.verdict.unlink()
    remedy = f"has no verdict: resume it with `passgate run release_candidate --resume {run.name}`"
    with pytest.raises(UsageError, match=remedy):
        decide(run)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"by": " "}, "--by is empty"),
        ({"by": "\u200b\u2060"}, "--by is empty"),
        ({"by": "\u3164"}, "--by is empty"),
        ({"reason": "\ufeff\n"}, "--reason is empty"),
        ({"reason": ""}, "--reason is empty"),
        ({"reason": "\n\t"}, "--reason is empty"),
        ({"by": "a" * 201}, "--by is longer than 200"),
        ({"reason": "a" * 10_001}, "--reason is longer than 10000"),
        ({"by": os.fsdecode(b"Zo\xeb")}, "--by is not UTF-8 text"),
    ],
)
def test_who_and_why_have_to_be_said_within_bounds(run: RunStore, changes: dict[str, str], problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        decide(run, **changes)
    assert verdict_of(run).awaiting_sign_off
    assert decide(run, by="a" * 200, reason="a" * 10_000).decision is Decision.PASS


def test_a_secret_is_masked_in_what_is_said(run: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_WORD", "hunter22")
    decide(run, "reject", by="hunter22", reason="it knows hunter22")
    assert not any(b"hunter22" in content for content in files_of(run).values())


def test_what_is_not_written_is_not_signed_off(run: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise StorageError("the disk is full")

    before = files_of(run)
    with monkeypatch.context() as patched:
        patched.setattr(RunStore, "write_reports", fails)
        with pytest.raises(StorageError):
            decide(run)
    assert files_of(run) == before
    assert verdict_of(run).awaiting_sign_off
    assert decide(run).decision is Decision.PASS
