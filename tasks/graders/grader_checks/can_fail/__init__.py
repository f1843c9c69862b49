"""Graders that cannot fail, told from their options alone: nothing is run."""

from passgate.tasks.graders.grader_checks.can_fail.of_task import (
    Vacuous,
    cannot_fail,
    gives_points_for_nothing,
    graders_that_cannot_fail,
)
from passgate.tasks.graders.grader_checks.can_fail.too_little import graders_that_ask_too_little

__all__ = [
    "Vacuous",
    "cannot_fail",
    "gives_points_for_nothing",
    "graders_that_ask_too_little",
    "graders_that_cannot_fail",
]
