"""What a grader comes to when those that it is made of come to something else."""

from collections.abc import Callable

from passgate.tasks.graders.checks import settled
from passgate.tasks.graders.composites.aggregation import member_of
from passgate.tasks.graders.composites.composite import combined
from passgate.tasks.model.grade import Grade
from passgate.tasks.model.graders import Composite, Grader

Leaf = Callable[[Grader, Grade | None], Grade]
"""The grade of a grader that is made of no others, from the one that it had, where it had one."""
_BY_OTHERS = frozenset({"code_grader", "llm_grader"})


def recombined(options: Grader, grade: Grade | None, leaf: Leaf) -> Grade:
    """The grade of a grader whose parts, at any depth, have the grades that `leaf` gives them.

    `grade` is the one that it had, with its members. A composite whose score a program or a judge gives is a leaf, and
    so are graders of turns. Raises `MeasurementError` when it depends on a part that was not measured.
    """
    if not isinstance(options, Composite) or options.aggregator.type in _BY_OTHERS:
        return leaf(options, grade)
    known = grade.members if grade is not None else ()
    grades = [
        recombined(member, known[place] if place < len(known) else None, leaf)
        for place, member in enumerate(options.assertions)
    ]
    members = [member_of(*pair) for pair in zip(options.assertions, grades, strict=True)]
    return settled(options, combined(options, options.aggregator, members, options.threshold))
