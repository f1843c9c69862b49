"""The length of the final answer."""

from passgate.tasks.graders.checks import graded
from passgate.tasks.graders.interface import Evidence
from passgate.tasks.model.grade import Check, Grade
from passgate.tasks.model.graders import MaxLength


async def grade_max_length(options: MaxLength, evidence: Evidence) -> Grade:
    """Count the Unicode characters of the final answer, without the blanks around it."""
    length = len(evidence.transcript.output.strip())
    message = f"the answer has {length} characters, at most {options.characters} are allowed"
    return graded(options, [Check(passed=length <= options.characters, message=message)])
