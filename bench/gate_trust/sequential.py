"""Section f: the sequential test that a suite may ask for in place of the AND rule."""

import numpy as np

from bench.gate_trust.figures import Block, Figure, mean, share
from bench.gate_trust.setting import Scale
from passgate.tasks.model.measurement import TaskState
from passgate.tasks.model.task import SequentialTest
from passgate.tasks.stats.decision import operating_characteristic, sprt

RULE = SequentialTest(accept=0.95, reject=0.7)
KS = (10, 20, 40)
RATES = (0.99, RULE.accept, 0.85, RULE.reject, 0.5)


def risks(name: str, k: int, scale: Scale) -> Block:
    """One task of each rate: how often the test rejects it, and after how many trials it ends."""
    figures: list[Figure] = []
    for rate in RATES:
        courses = (scale.generator("sprt", k, rate).random((scale.gates, k)) < rate).tolist()
        ends = [_end(course, k) for course in courses]
        exact = operating_characteristic(RULE, k, rate)
        rejected = np.array([answer is TaskState.FAILED for answer, _ in ends])
        trials = np.array([n for _, n in ends], dtype=float)
        figures += [
            share(f"at {rate}: rejected (AND rule: {1 - rate**k:.1%})", rejected, exact=1 - exact.accepts),
            mean(f"at {rate}: trials", trials, exact=exact.expected_trials, share=False),
        ]
    rule = f"accept {RULE.accept}, reject {RULE.reject}, alpha {RULE.alpha}, beta {RULE.beta}"
    return Block(f"{name}: sequential test of {rule}, k {k}", figures)


def _end(course: list[bool], k: int) -> tuple[TaskState, int]:
    """What the test says and after how many trials. Once it has decided it keeps to it, so that is found by halving."""
    open_at, decided_at = 0, k
    while decided_at - open_at > 1:
        middle = (open_at + decided_at) // 2
        if sprt(course[:middle], RULE, k) is TaskState.UNDECIDED:
            open_at = middle
        else:
            decided_at = middle
    return sprt(course[:decided_at], RULE, k), decided_at
