"""Grade: what a trial said, did and left behind in; its grades, and the metrics that come of them, out."""

from passgate.tasks.graders import GradedTrial, add_grade_metrics, grade_trial
from passgate.tasks.graders.evidence import Evidence


async def grade(evidence: Evidence) -> GradedTrial:
    """Ask every grader of the trial's task. What a grader could not measure is the error of its grade."""
    grades = await grade_trial(evidence)
    return GradedTrial(grades, add_grade_metrics(evidence.metrics, evidence.task, grades))
