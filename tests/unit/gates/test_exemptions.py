"""Failures that are reported without blocking."""

from datetime import date, timedelta

import pytest

from passgate.tasks.model.agent import AgentChange
from passgate.tasks.model.baseline import Baseline
from passgate.tasks.model.grade import ViolationRule
from passgate.tasks.model.policy import QuarantineEntry, QuarantineFile, Rule
from passgate.tasks.model.run import Base
from passgate.tasks.model.verdict import Decision
from tests.builders import STARTED, a_task
from tests.unit.gates.rulings import GOLDEN, green_before, of, only, rule, violating

TODAY = STARTED.date()
OTHER = a_task(task_id="other")
ADMITTED = {"newest": (True,) * 20, "passed": 20, "n": 20}
ADMISSION = {"admission": {"passes": 19, "of": 20}}


def quarantine(expires: date = TODAY, task: str = "golden/say-yes") -> QuarantineFile:
    entry = QuarantineEntry(task=task, owner="Ann", reason="it flakes", issue="https://h/1", expires=expires)
    return QuarantineFile(tasks=(entry,))


class TestQuarantine:
    def test_a_quarantined_task_is_reported_without_blocking(self) -> None:
        ruling = rule(of("fff"), of("ppp", OTHER), quarantine=quarantine())
        assert (ruling.decision, only(ruling).blocking) == (Decision.PASS, False)
        assert [exempt.task for exempt in ruling.quarantined] == ["golden/say-yes"]
        assert "Ann" in ruling.quarantined[0].why

    def test_the_day_after_it_expires_it_blocks_again_and_is_named(self) -> None:
        ruling = rule(of("fff"), of("ppp", OTHER), quarantine=quarantine(TODAY - timedelta(days=1)))
        assert (ruling.decision, ruling.quarantined) == (Decision.FAIL, ())
        assert any("golden/say-yes has expired" in note for note in ruling.notes)

    def test_its_regressions_and_errors_are_withheld_too(self) -> None:
        ruling = rule(of("fff"), of("ppp", OTHER), baseline=green_before(GOLDEN, OTHER), quarantine=quarantine())
        assert (ruling.decision, only(ruling).rule) == (Decision.PASS, Rule.GOLDEN_REGRESSION)
        assert rule(of("ppe"), of("ppp", OTHER), quarantine=quarantine()).decision is Decision.PASS
        ruling = rule(
            of("fff"), of("ppp", OTHER), quarantine=quarantine(), blocks_on=["threshold"], thresholds={"golden": 1.0}
        )
        assert ruling.decision is Decision.PASS

    @pytest.mark.parametrize("broken", list(ViolationRule))
    def test_a_veto_is_not(self, broken: ViolationRule) -> None:
        ruling = rule(violating(broken, 0), of("ppp", OTHER), quarantine=quarantine())
        assert ruling.decision is Decision.FAIL

    def test_other_tasks_block_as_ever(self) -> None:
        assert rule(of("ppp"), of("fff", OTHER), quarantine=quarantine()).decision is Decision.FAIL

    def test_a_gate_of_nothing_but_quarantine_has_no_evidence(self) -> None:
        ruling = rule(of("ppp"), quarantine=quarantine())
        assert ruling.decision is Decision.INCONCLUSIVE
        assert only(ruling).message == "no task can block this gate: every task is quarantined or not admitted yet"


class TestAdmission:
    def baseline(self) -> Baseline:
        """One task is known well, the other not at all."""
        return green_before(OTHER, **ADMITTED)

    def test_a_new_task_is_reported_without_blocking(self) -> None:
        ruling = rule(of("fff"), of("ppp", OTHER), baseline=self.baseline(), **ADMISSION)
        assert (ruling.decision, only(ruling).blocking) == (Decision.PASS, False)
        assert [exempt.task for exempt in ruling.not_admitted] == ["golden/say-yes"]

    def test_it_is_listed_where_it_passed_too(self) -> None:
        assert len(rule(of("ppp"), of("ppp", OTHER), baseline=self.baseline(), **ADMISSION).not_admitted) == 1

    @pytest.mark.parametrize("broken", list(ViolationRule))
    def test_a_veto_of_it_blocks(self, broken: ViolationRule) -> None:
        ruling = rule(violating(broken, 0), of("ppp", OTHER), baseline=self.baseline(), **ADMISSION)
        assert ruling.decision is Decision.FAIL

    def test_a_task_that_has_shown_itself_blocks(self) -> None:
        baseline = green_before(GOLDEN, OTHER, **ADMITTED)
        ruling = rule(of("fff"), of("ppp", OTHER), baseline=baseline, **ADMISSION)
        assert (ruling.decision, ruling.not_admitted) == (Decision.FAIL, ())

    def test_without_a_policy_for_it_every_task_blocks(self) -> None:
        assert rule(of("fff"), of("ppp", OTHER), baseline=self.baseline()).decision is Decision.FAIL

    def test_while_no_task_is_admitted_all_of_them_block(self) -> None:
        thin = green_before(GOLDEN, OTHER)
        ruling = rule(of("fff"), of("ppp", OTHER), baseline=thin, **ADMISSION)
        assert (ruling.decision, ruling.not_admitted) == (Decision.FAIL, ())


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
        "this change edits what judges of the agent 'desk' (kind (cli at the merge base, replay here)): that of the "
        "merge base is run"
    )

    def test_it_never_passes_without_a_person(self) -> None:
        ruling = rule(of("ppp"), base=Base(agent=self.CHANGE))
        assert (ruling.decision, ruling.awaiting_sign_off) == (Decision.INCONCLUSIVE, True)
        assert only(ruling).message.startswith(f"{self.WHY}; awaiting sign-off: passgate sign-off 2026")
        assert self.WHY in ruling.notes

    def test_it_fails_as_any_other(self) -> None:
        ruling = rule(of("fff"), base=Base(agent=self.CHANGE))
        assert (ruling.decision, ruling.awaiting_sign_off) == (Decision.FAIL, False)
        assert self.WHY in ruling.notes

    def test_an_agent_with_other_settings_of_its_own_is_noted_and_passes(self) -> None:
        change = self.CHANGE.model_copy(update={"judging": ()})
        ruling = rule(of("ppp"), base=Base(agent=change))
        assert (ruling.decision, ruling.awaiting_sign_off) == (Decision.PASS, False)
        assert "the agent 'desk' is run as this change defines it: its model differs" in ruling.notes
