"""The length of the final answer."""

from passgate.tasks.graders.checks import graded
from passgate.tasks.graders.evidence import Evidence
from passgate.tasks.model.grade import RawCheck, RawGrade
from passgate.tasks.model.graders import MaxLength


async def grade_max_length(options: MaxLength, evidence: Evidence) -> RawGrade:
    """Count the Unicode characters of the final answer, without the blanks around it."""
    length = len(evidence.final_answer.strip())
    message = f"the answer has {length} characters, at most {options.characters} are allowed"
    return graded(options, [RawCheck(passed=length <= options.characters, message=message)])
