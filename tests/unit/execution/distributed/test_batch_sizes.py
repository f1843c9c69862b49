"""How a round is divided into distributed batches."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passgate.tasks.execution.batches import batches_of, confirming_batches
from passgate.tasks.execution.coordinator import Round
from passgate.tasks.execution.distributed.batch_sizes import MOST_BATCHES, divided, joined, sized, slots
from passgate.tasks.model.run import Batch
from tests.builders import a_task


def round_of(tasks: int, k: int = 3) -> Round:
    plain = a_task(k=k)
    return Round(batches_of([plain.model_copy(update={"task_id": f"t{number}"}) for number in range(tasks)]))


@pytest.mark.parametrize(
    ("tasks", "k", "workers", "batches", "largest"),
    [
        (100, 3, 3, 10, 30),  # a fourth of a worker's trials would be fewer than 30
        (1000, 5, 1, 17, 300),
        (1000, 5, 4, 20, 250),  # each worker has as many batches as the others
        (1000, 5, 2, 18, 278),
        (20, 3, 4, 4, 15),  # every worker has something to do
        (20_000, 5, 50, 120, 834),  # a flow run is not to have very many task runs
        (2, 500, 4, 2, 500),  # an eval task stays whole
        (0, 3, 4, 0, 0),
    ],
)
def test_sizes(tasks: int, k: int, workers: int, batches: int, largest: int) -> None:
    made = sized(round_of(tasks, k), workers)
    assert len(made) == pytest.approx(batches, abs=1)
    assert max((len(one.trials) for one in made), default=0) == pytest.approx(largest, abs=k)


@given(tasks=st.integers(1, 400), k=st.integers(1, 40), workers=st.integers(1, 60))
def test_every_trial_is_in_one_batch_with_all_of_its_eval_task(tasks: int, k: int, workers: int) -> None:
    made = sized(round_of(tasks, k), workers)
    keys = [key for one in made for key in one.trials]
    assert sorted(keys) == sorted((f"t{task}", number) for task in range(tasks) for number in range(k))
    owners = [{task_id for task_id, _ in one.trials} for one in made]
    assert sum(map(len, owners)) == tasks
    assert len(made) <= max(MOST_BATCHES, workers) * 2


def test_what_comes_first_in_the_order_is_handed_out_first_and_what_has_finished_is_left_out() -> None:
    current = round_of(4, 20)
    order = [(f"t{task}", number) for number in range(1, 20) for task in (3, 1, 0, 2)]
    made = sized(Round(current.batches, tuple(order)), 4)
    assert [one.name for one in made] == ["t3", "t1", "t0", "t2"]
    assert all(one.trials == tuple(sorted(one.trials)) for one in made)
    assert sorted(key for one in made for key in one.trials) == sorted(order)


def test_confirming_trials_stay_a_step_of_their_own() -> None:
    made = sized(Round(confirming_batches([(a_task(), [3, 4]), (a_task(task_id="other"), [3])])), 1)
    assert [(one.name, one.step) for one in made] == [("confirm say-yes and 1 more", "confirm")]
    assert made[0].trials == (("say-yes", 3), ("say-yes", 4), ("other", 3))


def test_a_batch_of_one_eval_task_is_divided_by_its_trials() -> None:
    batch = Batch(name="a", trials=tuple(("a", number) for number in range(10)))
    made = divided(batch, batch.trials[4:], 3)
    assert [len(one.trials) for one in made] == [2, 2, 2]
    assert all(one.continued for one in made)


def test_joined_batches_are_no_more_than_the_workers() -> None:
    batches = [Batch(name=name, trials=tuple((name, number) for number in range(5))) for name in "abcdefg"]
    made = joined(batches, 2)
    assert len(made) <= 3
    assert sorted(key for one in made for key in one.trials) == sorted(key for one in batches for key in one.trials)
    (alone,) = joined(batches, 1)
    assert len(alone.trials) == 35


@given(at_once=st.integers(1, 300), workers=st.integers(1, 60))
def test_slots_use_all_that_runs_at_once_and_no_more(at_once: int, workers: int) -> None:
    made = slots(at_once, workers)
    assert sum(made) == at_once
    assert len(made) == min(at_once, workers)
    assert max(made) - min(made) <= 1
