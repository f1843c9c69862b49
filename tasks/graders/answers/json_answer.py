"""The final answer as a JSON document."""

from passgate.tasks.graders.checks import scored
from passgate.tasks.graders.interface import Evidence
from passgate.tasks.graders.output_check import schema_problems
from passgate.tasks.graders.texts import shorten
from passgate.tasks.model.assertions import IsJson
from passgate.tasks.model.grade import Check, Grade
from passgate.tasks.model.json_values import parse_json


async def grade_is_json(options: IsJson, evidence: Evidence) -> Grade:
    """1 when the final answer is a JSON document, and as the JSON Schema of the options wants it, else 0.

    Raises `MeasurementError` when that schema cannot be used.
    """
    check = json_check(options, evidence.transcript.output)
    return scored(options, float(check.passed), [check])


def json_check(options: IsJson, answer: str) -> Check:
    """Whether an answer is the JSON that the options expect."""
    try:
        document = parse_json(answer)
    except ValueError as error:
        return Check(passed=False, message=f"the answer is not JSON: {error}: {shorten(answer, 200)!r}")
    problems = [] if options.value is None else schema_problems(options.value, document)
    kept = "the answer is JSON" if options.value is None else "the answer matches the JSON Schema"
    return Check(passed=not problems, message="; ".join(problems) or kept)
