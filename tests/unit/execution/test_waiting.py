"""Trials of a batch that wait for their turn."""

from passgate.tasks.execution.waiting import WaitingTrials

KEYS = [(task, number) for task in "abcd" for number in range(3)]


def test_each_trial_begins_once() -> None:
    waiting = WaitingTrials(KEYS)
    assert [waiting.begin(("a", 0)), waiting.begin(("a", 0))] == [True, False]
    assert waiting.keys == tuple(KEYS[1:])


def test_eval_tasks_that_have_not_begun_are_given_back_first_as_a_whole_and_only_once() -> None:
    waiting = WaitingTrials(KEYS)
    for key in (("a", 0), ("d", 0)):
        waiting.begin(key)
    released = waiting.release(2)
    assert released == (("b", 0), ("b", 1), ("c", 0), ("c", 1), ("c", 2))
    assert not waiting.begin(released[0])
    assert set(waiting.keys) | set(released) == set(KEYS) - {("a", 0), ("d", 0)}
    assert waiting.release(4) == waiting.released == released


def test_one_trial_that_waits_is_kept() -> None:
    waiting = WaitingTrials([("a", 0)])
    assert (waiting.release(3), waiting.begin(("a", 0))) == ((), True)
