"""What AgentV's SDK takes from standard input, in camelCase as the SDK makes its keys: the schemas `CodeGraderInput` of
its versions 4.42.4 and 5.3.1. A key that may be missing must not be null, where the SDK does not say `nullable`.
"""

import re
from typing import Any

from jsonschema import Draft202012Validator

TEXT, NUMBER = {"type": "string"}, {"type": "number"}
MAPPING: dict[str, Any] = {"type": "object"}
COUNTS = {"type": "object", "additionalProperties": NUMBER}


def mapping(required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": required.split(), "properties": properties}


def nullable(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}]}


USAGE = mapping("input output", input=NUMBER, output=NUMBER, cached=NUMBER)
CALL = mapping("tool", tool=TEXT, id=TEXT, startTime=TEXT, endTime=TEXT, durationMs=NUMBER)
MESSAGE = mapping(
    "role",
    role={"enum": ["assistant", "user", "system", "tool"]},
    content={"anyOf": [TEXT, MAPPING, {"type": "array", "items": MAPPING}]},
    toolCalls={"type": "array", "items": CALL},
    name=TEXT,
    durationMs=NUMBER,
)
MESSAGES = {"type": "array", "items": MESSAGE}
SUMMARY = mapping(
    "eventCount toolCalls errorCount",
    eventCount=NUMBER,
    toolCalls=COUNTS,
    errorCount=NUMBER,
    toolDurations={"type": "object", "additionalProperties": {"type": "array", "items": NUMBER}},
    llmCallCount=NUMBER,
)
TOOL = mapping("name", name=TEXT, status={"enum": ["ok", "error", "timeout", "cancelled", "unknown"]})
EVENT = mapping(
    "eventId ordinal type",
    eventId=TEXT,
    ordinal={"type": "integer", "minimum": 0},
    type={"enum": ["message", "model_turn", "tool_call", "tool_result", "final_response", "error"]},
    durationMs={"type": "number", "minimum": 0},
    message=mapping("role", role=TEXT, name=TEXT),
    tool=TOOL,
)
TRACE = {
    "allOf": [
        SUMMARY,
        mapping(
            "messages events",
            messages=MESSAGES,
            events={"type": "array", "items": EVENT},
            tokenUsage=USAGE,
            costUsd=NUMBER,
            durationMs=NUMBER,
            startTime=TEXT,
            endTime=TEXT,
            metadata=MAPPING,
        ),
    ]
}
INPUT = mapping(
    "criteria expectedOutput inputFiles input",
    criteria=TEXT,
    expectedOutput=MESSAGES,
    output=nullable(TEXT),
    messages=MESSAGES,
    outputPath=TEXT,
    inputFiles={"type": "array", "items": TEXT},
    input=MESSAGES,
    metadata=nullable(MAPPING),
    trace=nullable(TRACE),
    traceSummary=nullable(SUMMARY),
    tokenUsage=nullable(USAGE),
    costUsd=nullable(NUMBER),
    durationMs=nullable(NUMBER),
    startTime=nullable(TEXT),
    endTime=nullable(TEXT),
    fileChanges=nullable(TEXT),
    workspacePath=nullable(TEXT),
    config=nullable(MAPPING),
)


def refused_by_sdk(document: dict[str, Any]) -> list[str]:
    """Why the SDK does not take a document, in its words for the keys; empty where it does."""
    errors = Draft202012Validator(INPUT).iter_errors(in_camel_case(document))
    return [f"{'.'.join(map(str, error.absolute_path))}: {error.message}" for error in errors]


def in_camel_case(value: Any) -> Any:
    """A document as the SDK has it: of two keys that are then the same the later one counts."""
    if isinstance(value, list):
        return [in_camel_case(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {_camel(key): in_camel_case(item) for key, item in value.items()}


def _camel(key: str) -> str:
    return key if key[:1].isupper() else re.sub("_([a-z0-9])", lambda found: found[1].upper(), key)
