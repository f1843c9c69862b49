"""What a forecast says that it does not know."""

import pytest

from passgate.tasks.forecasts.limits import limits_of
from tests.builders import a_baseline_task
from tests.unit.forecasts.settings import EVIDENCE, setting, tasks


@pytest.mark.parametrize(
    ("runs", "beginnings"),
    [
        (
            3,
            ["the baseline is young: 4 of 4 tasks have fewer than 20 trials, so only a shown fall blocks", "the rates"],
        ),
        (8, ["the rates are known from 8 runs at the most"]),
        (20, []),
    ],
)
def test_a_young_baseline_has_its_limit_said(runs: int, beginnings: list[str]) -> None:
    counts = {f"r{run:02}": (3, 3) for run in range(runs)}
    known = a_baseline_task(passed=3 * runs, n=3 * runs, counts=counts)
    said = list(limits_of(setting(tasks(4), known=known, **EVIDENCE), 0))
    assert len(said) == len(beginnings)
    assert all(note.startswith(beginning) for note, beginning in zip(said, beginnings, strict=True))
    assert runs != 3 or said[0].endswith("the gate is sharp from 7 runs on main on")


def test_more_confirming_trials_than_a_run_may_have_are_named() -> None:
    (note,) = limits_of(setting(tasks(10), **EVIDENCE), 31)
    assert note.startswith("a run stops after 30 confirming trials")
