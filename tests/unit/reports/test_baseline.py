"""The baseline as a table and as JSON."""

from collections.abc import Callable
from typing import Any

import pytest
from rich.cells import cell_len
from tests.builders import a_baseline_task, a_plan
from tests.unit.reports.hostile import HOSTILE

from passgate.tasks.model.baseline import Baseline, BaselineState, BaselineTask, Pins
from passgate.tasks.model.run import Base, Plan
from passgate.tasks.reports.baseline import baseline_document, baseline_table, pin_text

RUN = "20260331T020000Z-nightly-77aa"
TASKS = {
    "failure_replays/payment_declined": BaselineTask(state=BaselineState.NEW),
    "golden/fix_login": a_baseline_task(
        runs=tuple(f"r{number}" for number in range(20)), runs_green=19, passed=59, n=60
    ),
    "golden/append": a_baseline_task(runs=(RUN,), passed=3, n=3),
    "golden/summarise": a_baseline_task(
        state=BaselineState.UNRELIABLE, runs=(RUN, "older"), runs_green=1, passed=5, n=6
    ),
    "golden/undecided": BaselineTask(state=BaselineState.NONE, passed=2, n=2),
    "adversarial/leak": a_baseline_task(state=BaselineState.RED, runs=(RUN,), runs_green=0, passed=0, n=10),
}
BASE = Base(commit="3c15d78ab0123456", ancestors=("3c15d78ab0123456",))


def baseline(**changes: Any) -> Baseline:
    return Baseline(**({"branch": "main", "commit": BASE.commit, "tasks": TASKS} | changes))


def table(plan: Plan | None = None, width: int = 100, **changes: Any) -> str:
    return baseline_table(plan or a_plan(base=BASE), baseline(**changes), width=width, color=False)


def pinned(base: Base = BASE, **changes: Any) -> Plan:
    pins = Pins(**({"reason": "The provider changed its model.", "by": "Ann"} | changes))
    return a_plan(pins=pins, base=base)


@pytest.mark.parametrize("width", [60, 80, 140])
def test_no_line_is_wider_than_asked_and_nothing_is_cut(width: int) -> None:
    text = table(width=width)
    assert max(map(cell_len, text.split("\n"))) <= width
    assert "…" not in text
    assert all(name.partition("/")[2] in text for name in TASKS)


@pytest.mark.parametrize(
    ("runs", "text"),
    [
        (("a",), "1 run (a)"),
        (("a", "b", "c"), "3 runs (a, b, c)"),
        (("a", "b", "c", "d"), "4 runs (a, b, c and 1 more)"),
    ],
)
def test_at_most_three_runs_are_named(runs: tuple[str, ...], text: str) -> None:
    assert pin_text(Pins(runs=runs, reason="why", by="Ann")) == f"{text}, by Ann: why"


def test_what_others_wrote_is_escaped() -> None:
    hostile = HOSTILE.replace("\ud800", "")
    tasks = {f"golden/{hostile}": a_baseline_task(runs=(hostile,))}
    text = table(pinned(runs=(hostile,), reason=hostile, by=hostile), tasks=tasks, width=140)
    assert not {"\x1b", "\u202e"} & set(text)
    assert "##[" not in text
    assert not any(line.startswith(("::", "ci_merge PASS")) for line in text.splitlines())


def test_as_json_everything_is_there() -> None:
    plan = pinned(runs=(RUN,), base=Base(commit="b", note="a note"))
    said = baseline_document(plan, baseline(pinned=True))
    assert {name: said[name] for name in Baseline.model_fields} == dict(baseline(pinned=True))
    assert (said["agent"], said["note"], said["pins"]) == ("cli:my-agent", "a note", plan.pins)


@pytest.mark.parametrize(
    ("said", "lines"),
    [
        (
            table(a_plan(base=Base(note="the clone is shallow")), commit="", tasks={}),
            """\
baseline  the branch main by its name, because there is no merge base: 0 runs
agent     cli:my-agent
note      the clone is shallow
""",
        ),
        (
            table(pinned(commit="3c15d78ab0123456"), pinned=True),
            """\
baseline  pinned commit 3c15d78ab012 and its first-parent ancestors: 22 runs
pinned    commit 3c15d78ab012, by Ann: The provider changed its model.
""",
        ),
        (
            table(pinned(runs=("a", "b")), pinned=True),
            """\
baseline  pinned runs: 22 runs
pinned    2 runs (a, b), by Ann: The provider changed its model.
""",
        ),
    ],
    ids=["no merge base", "pinned commit", "pinned runs"],
)
def test_the_first_lines_say_what_the_baseline_is(said: str, lines: str) -> None:
    assert said.startswith(lines)


def test_colours_say_the_state() -> None:
    text = baseline_table(a_plan(base=BASE), baseline(), width=100, color=True)
    assert "\x1b[1;31mred before too" in text
    assert "\x1b[32mgreen" in text


def test_reads_as_the_golden_file(matches_golden: Callable[[str, str], None]) -> None:
    matches_golden(table(), "baseline_table.txt")
