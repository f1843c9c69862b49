"""Pairing what is expected with what there is.

`fits` says of each expectation, by its position, which things fit it: their positions, in ascending order.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Mapping, Sequence
from typing import NamedTuple

Fits = Sequence[Sequence[int]]


def most_paired(fits: Fits) -> dict[int, int]:
    """As many expectations as possible, each with a thing of its own: a maximum matching, found by augmenting paths."""
    held: dict[int, int] = {}
    for expectation in range(len(fits)):
        held = _augmented(held, expectation, fits)
    return held


def _augmented(held: Mapping[int, int], expectation: int, fits: Fits) -> dict[int, int]:
    """The pairs with one more expectation in them, for which others may have to change theirs; the same if none can."""
    holders = {thing: holder for holder, thing in held.items()}
    seeker_of: dict[int, int] = {}
    seekers = deque([expectation])
    while seekers:
        seeker = seekers.popleft()
        for thing in fits[seeker]:
            if thing in seeker_of:
                continue
            seeker_of[thing] = seeker
            if thing not in holders:
                return _handed_on(held, seeker_of, thing)
            seekers.append(holders[thing])
    return dict(held)


def _handed_on(held: Mapping[int, int], seeker_of: Mapping[int, int], free: int) -> dict[int, int]:
    pairs = dict(held)
    thing: int | None = free
    while thing is not None:
        seeker = seeker_of[thing]
        before = pairs.get(seeker)
        pairs[seeker] = thing
        thing = before
    return pairs


class _Chain(NamedTuple):
    """Expectations found in order; `end` is the position of the last thing."""

    end: int
    pairs: tuple[tuple[int, int], ...]


def most_in_order(fits: Fits) -> dict[int, int]:
    """As many expectations as possible, in their order, each with a thing behind that of the one before it.

    For each length the chain that ends first is kept: it leaves the most behind it.
    """
    chains = [_Chain(-1, ())]
    for expectation, things in enumerate(fits):
        for length in reversed(range(len(chains))):
            place = bisect_right(things, chains[length].end)
            if place == len(things):
                continue
            longer = _Chain(things[place], (*chains[length].pairs, (expectation, things[place])))
            if length + 1 == len(chains):
                chains.append(longer)
            elif longer.end < chains[length + 1].end:
                chains[length + 1] = longer
    return dict(chains[-1].pairs)
