"""JSON as AgentV takes it: by JavaScript's rules, and against no schema."""

import json
from typing import Any

from passgate.tasks.graders.checks import scored
from passgate.tasks.graders.interface import Evidence
from passgate.tasks.graders.texts import shorten
from passgate.tasks.model.assertions import IsJson
from passgate.tasks.model.grade import Check, Grade


async def grade_is_json_as_agentv(options: IsJson, evidence: Evidence) -> Grade:
    """1 when the final answer is a JSON document, else 0. A JSON Schema of the options is not looked at."""
    answer = evidence.transcript.output
    try:
        parse_json(answer)
    except ValueError as error:
        check = Check(passed=False, message=f"the answer is not JSON: {error}: {shorten(answer, 200)!r}")
    else:
        check = Check(passed=True, message="the answer is JSON")
    return scored(options, float(check.passed), [check])


def parse_json(text: str) -> Any:
    """The JSON document in a text as JavaScript reads it: numbers are binary fractions, the last of equal names counts.

    Raises `ValueError` when there is none, and when it is nested too deep.
    """
    try:
        return json.loads(text, parse_constant=_refuse, parse_int=float)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON value")
