"""Failures that are reported without blocking: of which tasks, for how long, and by whose leave."""

from datetime import timedelta
from typing import Any

import pytest

from passgate.tasks.gates.guards import (
    admission_in_force,
    exempt_by_quarantine,
    expired,
    not_admitted,
    quarantine_notes,
    quarantined,
)
from passgate.tasks.model.agent import AgentChange
from passgate.tasks.model.baseline import Baseline, BaselineState
from passgate.tasks.model.grade import ViolationRule
from passgate.tasks.model.policy import Admission, GatePolicy, QuarantineEntry, QuarantineFile, Rule
from passgate.tasks.model.run import Base
from passgate.tasks.model.task import GateName, Suite
from passgate.tasks.model.verdict import Decision, Exemption
from tests.builders import STARTED, a_baseline, a_baseline_task, a_policy, a_task, measured, trials_of
from tests.unit.gates.rulings import GOLDEN, Group, green_before, of, only, rule, violating

TODAY = STARTED.date()
NAME, OTHER = "golden/say-yes", a_task(task_id="other")
EMPTY = Baseline(branch="main")
VETOES = [pytest.param([violating(broken, 0), of("ppp", OTHER)], id=broken) for broken in ViolationRule]


def an_entry(**changes: Any) -> QuarantineEntry:
    plain = {"task": NAME, "owner": "Ann", "reason": "it flakes", "issue": "https://h/1", "expires": TODAY}
    return QuarantineEntry(**(plain | changes))


def a_file(*entries: QuarantineEntry, **changes: Any) -> QuarantineFile:
    return QuarantineFile(tasks=entries, **changes)


class TestQuarantine:
    FILE = a_file(an_entry())

    def test_a_quarantined_task_is_reported_without_blocking(self) -> None:
        ruling = rule(of("fff"), of("ppp", OTHER), quarantine=self.FILE)
        assert (ruling.decision, only(ruling).blocking) == (Decision.PASS, False)
        assert ruling.quarantined == (exempt_by_quarantine(an_entry()),)
        ruling = rule(of("fff"), of("ppp", OTHER), baseline=green_before(GOLDEN, OTHER), quarantine=self.FILE)
        assert (ruling.decision, only(ruling).rule) == (Decision.PASS, Rule.GOLDEN_REGRESSION)

    def test_the_day_after_it_expires_it_blocks_again_and_is_named(self) -> None:
        file = a_file(an_entry(expires=TODAY - timedelta(days=1)))
        ruling = rule(of("fff"), of("ppp", OTHER), quarantine=file)
        assert (ruling.decision, ruling.quarantined) == (Decision.FAIL, ())
        assert any("golden/say-yes has expired" in note for note in ruling.notes)

    def test_its_errors_and_its_share_of_a_threshold_are_withheld_too(self) -> None:
        assert rule(of("ppe"), of("ppp", OTHER), quarantine=self.FILE).decision is Decision.PASS
        threshold = {"blocks_on": ["threshold"], "thresholds": {"golden": 1.0}}
        assert rule(of("fff"), of("ppp", OTHER), quarantine=self.FILE, **threshold).decision is Decision.PASS

    @pytest.mark.parametrize("groups", [*VETOES, pytest.param([of("ppp"), of("fff", OTHER)], id="another task")])
    def test_neither_a_veto_nor_another_task_is(self, groups: list[Group]) -> None:
        assert rule(*groups, quarantine=self.FILE).decision is Decision.FAIL

    def test_a_gate_of_nothing_but_quarantine_has_no_evidence(self) -> None:
        ruling = rule(of("ppp"), quarantine=self.FILE)
        assert ruling.decision is Decision.INCONCLUSIVE
        assert only(ruling).message == "no task can block this gate: every task is quarantined or not admitted yet"

    @pytest.mark.parametrize(("days", "in_force"), [(-1, True), (0, True), (1, False)])
    def test_an_entry_is_in_force_to_the_end_of_its_last_day(self, days: int, in_force: bool) -> None:
        today = TODAY + timedelta(days=days)
        assert quarantined(self.FILE, today) == ({NAME: an_entry()} if in_force else {})
        assert expired(self.FILE, today) == (() if in_force else (an_entry(),))

    def test_why_a_task_does_not_block_is_one_short_line(self) -> None:
        why = "quarantined until 2026-01-31 by Ann: it flakes (https://h/1)"
        assert exempt_by_quarantine(an_entry()) == Exemption(task=NAME, why=why)
        why = exempt_by_quarantine(an_entry(owner="Ann\n  Lee", reason="first\nsecond " + "x" * 5000)).why
        assert why.startswith("quarantined until 2026-01-31 by Ann Lee: first second xxx")
        assert why.endswith("x... (https://h/1)")
        assert len(why) < 400

    @pytest.mark.parametrize("baseline", [EMPTY, a_baseline(GOLDEN, green_in_a_row=99)], ids=["new", "green"])
    def test_an_expired_entry_is_named_once_with_owner_issue_and_day(self, baseline: Baseline) -> None:
        (note,) = quarantine_notes(self.FILE, baseline, TODAY + timedelta(days=1))
        assert note == (
            "the quarantine of golden/say-yes has expired and the task blocks again since 2026-02-01: repair the "
            "task, or remove its entry from quarantine.yaml (Ann: it flakes (https://h/1))"
        )

    @pytest.mark.parametrize(
        ("green", "after", "is_proposed"),
        [(0, {}, False), (9, {}, False), (10, {}, True), (11, {}, True), (3, {"release_after": 3}, True)],
    )
    def test_a_task_that_was_green_long_enough_is_proposed_for_release(
        self, green: int, after: dict[str, int], is_proposed: bool
    ) -> None:
        notes = list(quarantine_notes(a_file(an_entry(), **after), a_baseline(GOLDEN, green_in_a_row=green), TODAY))
        expected = (
            f"golden/say-yes was green in the last {green} runs on main: remove its entry from quarantine.yaml "
            "(Ann: it flakes (https://h/1))"
        )
        assert notes == ([expected] if is_proposed else [])
        assert list(quarantine_notes(a_file(an_entry(), release_after=1), EMPTY, TODAY)) == []


MEASURED = measured((GOLDEN, trials_of(GOLDEN, "ppf"))).tasks[0]


def admitting(admission: Any) -> GatePolicy:
    return a_policy(admission=admission).gates[GateName.CI_MERGE]


NINETEEN_OF_TWENTY = admitting({})
UNKNOWN = "not admitted yet: no trial was measured on main, 19 of 20 are required"


def why(policy: GatePolicy, newest: str) -> str | None:
    """Of a task with these newest trials, the newest first, beside another task that is known too."""
    of_task = a_baseline_task(newest=tuple(letter == "p" for letter in newest))
    known = Baseline(
        branch="main", young="block", tasks={NAME: of_task, "golden/other": a_baseline_task(newest=(True,) * 20)}
    )
    exempt = not_admitted(policy, MEASURED, known)
    assert exempt is None or exempt.task == NAME
    return exempt and exempt.why


class TestAdmission:
    POLICY = {"admission": {"passes": 19, "of": 20}, "baseline": green_before(OTHER, newest=(True,) * 20)}
    """One task is known well, the other not at all."""

    def test_a_new_task_is_reported_without_blocking_and_listed_where_it_passed_too(self) -> None:
        ruling = rule(of("fff"), of("ppp", OTHER), **self.POLICY)
        assert (ruling.decision, only(ruling).blocking) == (Decision.PASS, False)
        assert [exempt.task for exempt in ruling.not_admitted] == [NAME]
        assert len(rule(of("ppp"), of("ppp", OTHER), **self.POLICY).not_admitted) == 1

    @pytest.mark.parametrize("groups", VETOES)
    def test_a_veto_of_it_blocks(self, groups: list[Group]) -> None:
        assert rule(*groups, **self.POLICY).decision is Decision.FAIL

    @pytest.mark.parametrize("newest", [(True,) * 20, (True,) * 3], ids=["shown", "none admitted"])
    def test_a_task_that_has_shown_itself_blocks_and_all_of_them_while_none_is_admitted(
        self, newest: tuple[bool, ...]
    ) -> None:
        ruling = rule(
            of("fff"), of("ppp", OTHER), **self.POLICY | {"baseline": green_before(GOLDEN, OTHER, newest=newest)}
        )
        assert (ruling.decision, ruling.not_admitted) == (Decision.FAIL, ())

    @pytest.mark.parametrize(
        ("admission", "newest", "expected"),
        [
            *(({}, "p" * 20, None), ({}, "f" + "p" * 19, None)),
            ({}, "ff" + "p" * 18, "not admitted yet: 18 of 20 trials passed on main, 19 of 20 are required"),
            ({}, "p" * 19, "not admitted yet: 19 of 19 trials passed on main, 19 of 20 are required"),
            *(({}, "", UNKNOWN), ({}, "p" * 20 + "f" * 30, None)),
            ({}, "f" * 20 + "p" * 30, "not admitted yet: 0 of 20 trials passed on main, 19 of 20 are required"),
            ({"passes": 1, "of": 2}, "pf", None),
            ({"passes": 1, "of": 2}, "ff", "not admitted yet: 0 of 2 trials passed on main, 1 of 2 are required"),
            ({"passes": 1, "of": 2}, "p", "not admitted yet: 1 of 1 trials passed on main, 1 of 2 are required"),
            *((False, "", None), (False, "f" * 20, None)),
        ],
    )
    def test_a_task_shows_itself_in_its_newest_trials_before_it_blocks(
        self, admission: Any, newest: str, expected: str | None
    ) -> None:
        assert why(admitting(admission), newest) == expected

    def test_a_task_or_suite_that_the_baseline_does_not_know(self) -> None:
        exempt = not_admitted(NINETEEN_OF_TWENTY, MEASURED, a_baseline(OTHER, newest=(True,) * 20))
        assert exempt == Exemption(task=NAME, why=UNKNOWN)
        # Ten trials a run admit after two runs, three after seven.
        adversarial = a_task(suite=Suite.ADVERSARIAL)
        assert not_admitted(NINETEEN_OF_TWENTY, MEASURED, a_baseline(adversarial, newest=(True,) * 20)) is None

    @pytest.mark.parametrize(
        ("known", "in_force"),
        [
            (EMPTY, False),
            (a_baseline(GOLDEN, OTHER, state=BaselineState.NEW, newest=()), False),
            *((a_baseline(OTHER), False), (a_baseline(OTHER, newest=(True,) * 19), False)),
            (a_baseline(OTHER, newest=(True,) * 19 + (False,)), True),
        ],
    )
    def test_in_a_history_that_has_just_begun_every_task_blocks(self, known: Baseline, in_force: bool) -> None:
        assert admission_in_force(Admission(), known, Suite.GOLDEN) is in_force
        assert (not_admitted(NINETEEN_OF_TWENTY, MEASURED, known) is not None) is in_force


class TestSignOff:
    def test_what_would_pass_awaits_a_person(self) -> None:
        ruling = rule(of("ppp"), sign_off=True)
        assert (ruling.decision, ruling.awaiting_sign_off) == (Decision.INCONCLUSIVE, True)
        assert only(ruling).rule is Rule.SIGN_OFF
        assert only(ruling).message == (
            "awaiting sign-off: passgate sign-off 20260131T120000Z-ci_merge-0a0b "
            "--by NAME --decision approve|reject --reason TEXT"
        )

    @pytest.mark.parametrize(("statuses", "decision"), [("fff", Decision.FAIL), ("ppe", Decision.INCONCLUSIVE)])
    def test_nobody_is_asked_about_anything_else(self, statuses: str, decision: Decision) -> None:
        ruling = rule(of(statuses), sign_off=True)
        assert (ruling.decision, ruling.awaiting_sign_off) == (decision, False)
        assert Rule.SIGN_OFF not in {reason.rule for reason in ruling.reasons}


class TestAnotherAgent:
    CHANGE = AgentChange(name="desk", judging=("kind (cli at the merge base, replay here)",), own=("model",))
    WHY = (
        "this change edits settings by which the agent 'desk' is judged (kind (cli at the merge base, replay here)): "
        "the merge base's definition is run"
    )

    def test_it_never_passes_without_a_person_and_fails_as_any_other(self) -> None:
        ruling = rule(of("ppp"), base=Base(agent=self.CHANGE))
        assert (ruling.decision, ruling.awaiting_sign_off) == (Decision.INCONCLUSIVE, True)
        assert only(ruling).message.startswith(f"{self.WHY}; awaiting sign-off: passgate sign-off 2026")
        assert self.WHY in ruling.notes
        ruling = rule(of("fff"), base=Base(agent=self.CHANGE))
        assert (ruling.decision, ruling.awaiting_sign_off) == (Decision.FAIL, False)
        assert self.WHY in ruling.notes

    def test_an_agent_with_other_settings_of_its_own_is_noted_and_passes(self) -> None:
        ruling = rule(of("ppp"), base=Base(agent=self.CHANGE.model_copy(update={"judging": ()})))
        assert (ruling.decision, ruling.awaiting_sign_off) == (Decision.PASS, False)
        assert "the agent 'desk' is run as this change defines it: its model differs" in ruling.notes
