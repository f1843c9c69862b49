"""Graders of other tools that passgate does not have."""

from passgate.tasks.errors import MeasurementError
from passgate.tasks.graders.interface import Evidence
from passgate.tasks.model.assertions import Unavailable
from passgate.tasks.model.grade import Grade


async def grade_unavailable(options: Unavailable, evidence: Evidence) -> Grade:
    """Raises `MeasurementError`: what nobody can measure is neither passed nor failed."""
    raise MeasurementError(f"passgate has no grader {options.kind!r}")
