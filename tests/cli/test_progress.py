"""The progress of a run, in lines: what of the plan is done, and what came on top of it."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from passgate.flows.cli.progress import Progress, cost_and_time
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.model.grade import Grade
from passgate.tasks.model.transcript import Usage
from passgate.tasks.model.trial import Trial, TrialMetrics
from tests.builders import a_finished, a_plan, a_task, trials_of
from tests.waiting import wait_until

TASKS = (a_task(task_id="a", k=3), a_task(task_id="b", k=3))


def write(folder: Path, trials: Sequence[Trial]) -> None:
    lines = [a_finished(TASKS[0]).model_copy(update={"trial": trial}).model_dump_json() + "\n" for trial in trials]
    with (folder / "journal.jsonl").open("a", encoding="utf-8") as file:
        file.writelines(lines)


@pytest.fixture
def shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[[Sequence[Trial]], str]:
    """The last line of the progress of a run with these trials."""

    def last_line(trials: Sequence[Trial]) -> str:
        write(tmp_path, trials)
        with Progress(a_plan(*TASKS), RunStore(str(tmp_path))):
            pass
        return capsys.readouterr().err.splitlines()[-1]

    return last_line


@pytest.mark.parametrize(
    ("first", "second", "line"),
    [
        ("ppp", "pp", "golden: 5/6 trials"),
        ("ppp", "pfe", "golden: 6/6 trials, 1 failed, 1 error"),
        ("ppp", "pfp" + "p" * 38 + "ff", "golden: 6/6 trials, 1 failed, 40 confirming"),
        ("pp-p", "ppp", "golden: 5/6 trials, 1 confirming"),
    ],
)
def test_confirming_trials_are_beside_the_planned_ones(
    shown: Callable[[Sequence[Trial]], str], first: str, second: str, line: str
) -> None:
    assert shown([*trials_of(TASKS[0], first), *trials_of(TASKS[1], second)]) == line


def test_a_damaged_journal_is_the_runs_to_complain_of(tmp_path: Path, shown: Callable[[Sequence[Trial]], str]) -> None:
    for number, damage in enumerate(("damaged", '{"trial": 3}', "[]", '{"trial": {"trial": "0", "k": 3}}')):
        (tmp_path / f"journal.{number}.jsonl").write_text(f"{damage}\n")
    assert shown(trials_of(TASKS[0], "ppp")) == "golden: 3/6 trials"


def test_the_cost_so_far_is_that_of_the_agent_and_of_the_judge(shown: Callable[[Sequence[Trial]], str]) -> None:
    costs = {
        "metrics": TrialMetrics(cost=0.5),
        "player_cost": 0.1,
        "unmeasured_cost": 0.2,
        "grades": (Grade(name="g", type="g", score=1, passed=True, usage=Usage(cost_usd=0.05)),),
    }
    trials = [trial.model_copy(update=costs) for trial in trials_of(TASKS[0], "pp")]
    assert sum(trial.cost for trial in trials) == pytest.approx(1.7)
    assert shown(trials) == "all: 2/6 trials, $1.70"


class CountedRunStore(RunStore):
    """Counts the looks at its journal."""

    looks = 0

    def new_lines(self, seen: dict[str, int]) -> Iterator[bytes]:
        self.looks += 1
        return super().new_lines(seen)

    def wait_for_a_look(self) -> None:
        """Wait until somebody has looked at all that the journal has now."""
        enough = self.looks + 2
        wait_until(lambda: self.looks >= enough)


def test_a_suite_whose_plan_is_done_has_no_line_for_every_confirming_trial(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trials = trials_of(TASKS[0], "ppfppp")
    store = CountedRunStore(str(tmp_path))
    with Progress(a_plan(TASKS[0]), store):
        for part in (trials[:3], *([trial] for trial in trials[3:])):
            write(tmp_path, part)
            store.wait_for_a_look()
    lines = capsys.readouterr().err.splitlines()
    assert lines[1] == "golden: 3/3 trials, 1 failed"
    assert lines[-1] == "golden: 3/3 trials, 1 failed, 3 confirming"
    assert len(lines) < 5


def test_the_time_left_is_told_by_the_pace_of_this_command() -> None:
    assert cost_and_time(1.25, ended=10, seconds=100.0, missing=30) == "$1.25, about 5m00s left"
    # Not before there is a pace, and not at the end.
    for ended, seconds, missing in ((2, 100.0, 30), (10, 1.0, 30), (10, 100.0, 0)):
        assert cost_and_time(0.0, ended, seconds, missing) == ""
