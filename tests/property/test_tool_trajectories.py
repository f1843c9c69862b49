"""Whatever tools an agent calls: the modes of a trajectory agree with one another and with what they mean."""

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st
from tests.property.test_assertions import graded

from passgate.tasks.graders.tool_trajectory import pair_in_order, pair_most
from passgate.tasks.model.assertions import ToolTrajectory
from passgate.tasks.model.transcript import Message, ToolCall, Transcript

FITS = st.lists(st.lists(st.integers(0, 5), unique=True).map(sorted), max_size=5)
TOOLS = st.lists(st.sampled_from("abc"), max_size=6)


def score(mode: str, expected: list[str], called: list[str]) -> float | None:
    options = ToolTrajectory.model_validate(
        {"type": "tool_trajectory", "mode": mode, "expected": [{"tool": tool} for tool in expected]}
    )
    calls = tuple(ToolCall(tool=tool) for tool in called)
    return graded(options, Transcript(messages=(Message(role="assistant", tool_calls=calls),))).score


@given(FITS)
def test_no_pairing_beats_the_one_that_is_found(fits: list[list[int]]) -> None:
    def greedy(order: tuple[int, ...]) -> int:
        taken: set[int] = set()
        for row in order:
            free = next((thing for thing in fits[row] if thing not in taken), None)
            taken |= set() if free is None else {free}
        return len(taken)

    # A greedy pairing in the right order is a maximum one.
    assert len(pair_most(fits)) == max(greedy(order) for order in permutations(range(len(fits))))


@given(FITS)
def test_no_order_beats_the_one_that_is_found(fits: list[list[int]]) -> None:
    def longest(row: int, after: int) -> int:
        if row == len(fits):
            return 0
        taken = [1 + longest(row + 1, thing) for thing in fits[row] if thing > after]
        return max([longest(row + 1, after), *taken])

    pairs = pair_in_order(fits)
    assert len(pairs) == longest(0, -1)
    assert all(thing in fits[row] for row, thing in pairs.items())


@given(TOOLS.filter(bool), TOOLS)
def test_a_stricter_mode_never_gives_more(expected: list[str], called: list[str]) -> None:
    exact, in_order, any_order, subset = (
        score(mode, expected, called) for mode in ("exact", "in_order", "any_order", "subset")
    )
    assert None not in {exact, in_order, any_order, subset}
    assert (exact or 0) <= (in_order or 0) <= (any_order or 0)
    assert (exact or 0) <= (subset or 0)
    assert (exact == 1) is (expected == called)
    assert (subset == 1) is (set(called) <= set(expected))
    assert (any_order == 1) is all(called.count(tool) >= expected.count(tool) for tool in expected)
