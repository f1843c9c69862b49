"""Regular expressions as AgentV scores them: one that JavaScript does not take is not found."""

from passgate.tasks.graders.answers.regexes import regex_check
from passgate.tasks.graders.checks import scored
from passgate.tasks.graders.interface import Evidence
from passgate.tasks.graders.texts import shorten
from passgate.tasks.model.assertions import Regex
from passgate.tasks.model.grade import Check, Grade
from passgate.tasks.model.javascript_regex import regex_problem


async def grade_regex_as_agentv(options: Regex, evidence: Evidence) -> Grade:
    """1 when the regular expression is found in the final answer, else 0, and 0 for one that is none.

    Raises `MeasurementError` when the search takes too long.
    """
    problem = regex_problem(options.value, options.flags)
    if problem is None:
        check = await regex_check(options, evidence.transcript.output)
    else:
        check = Check(passed=False, message=f"/{shorten(options.value, 500)}/: {problem}")
    return scored(options, float(check.passed), [check])
