"""The JSON Schema of AgentEvals' EVAL.yaml, with the names that its keys have had."""

from typing import Final

from passgate.tasks.formats.evals.read.top_level import ROOT_RULES, TIMEOUT_RULE
from passgate.tasks.formats.evals.schemas.definitions import (
    COMMON_TEST,
    COMPATIBILITY,
    MESSAGE_LIST,
    MESSAGES,
    Schema,
    described,
    goals_needed,
    grader_definitions,
    headed,
    listed,
    mapping,
    message_definition,
    one_needed,
    record,
    reference,
    text,
    text_or,
    texts,
)

_TESTS: Final = ("tests", "evalcases", "eval_cases", "cases")
_AGGREGATORS: Final = ("weighted_average", "minimum", "maximum", "safety_gate", "all_or_nothing")
_GOALS: Final = ("criteria", "expected_outcome", "rubrics", "assert", "execution")


def agentevals_schema() -> Schema:
    """`tests` with `criteria` and `assert`; earlier `evalcases`, `eval_cases` or `cases` with `expected_outcome` and
    `execution.evaluators`.
    """
    definitions = {
        **grader_definitions(lambda form: form.agentevals, _AGGREGATORS),
        **MESSAGES,
        "Message": message_definition(call="OpenAiCall"),
        "Execution": _execution(),
        "Test": _test(),
    }
    return headed("eval", "AgentEvals EVAL.yaml", _root(), definitions)


def _root() -> Schema:
    properties = {
        "name": described("The suite's name.", **ROOT_RULES["name"]),
        "version": described("Version of the specification, as in 1.0.", **ROOT_RULES["version"]),
        "description": described("What the suite is about.", **ROOT_RULES["description"]),
        "metadata": _metadata(),
        "suite": text("The suite of passgate that the tests belong to, where their folder does not say it."),
        "compat": COMPATIBILITY,
        "execution": reference("Execution"),
        "assert": listed("Graders of every test.", "Assertion"),
        "rubrics": listed("Items of a rubric for every test.", "RubricItem", minItems=1),
        **{name: _tests(name) for name in _TESTS},
    }
    needed = [one_needed(*_TESTS), goals_needed(_TESTS, ("assert", "rubrics", "execution"), _GOALS)]
    return record(properties, required=["name"], allOf=needed)


def _metadata() -> Schema:
    known = {
        "author": text("Who wrote it."),
        "license": text("As in Apache-2.0."),
        "tags": texts("Tags of every test."),
        "skill": text("The skill that is evaluated."),
    }
    return mapping("Whatever else is to be known of the suite.", properties=known)


def _tests(name: str) -> Schema:
    earlier = "" if name == "tests" else " The earlier name of `tests`."
    inline = {"type": "array", "minItems": 1, "items": {"anyOf": [{"type": "string"}, reference("Test")]}}
    return text_or(f"The tests, or the paths of files with tests (YAML, JSONL).{earlier}", inline)


def _test() -> Schema:
    properties = {
        **COMMON_TEST,
        "input": text_or("What the agent is asked.", MESSAGE_LIST),
        "expected_output": described("The answer that is hoped for: a text, a JSON value, or messages."),
        "assert": listed("Graders of this test.", "Assertion"),
        "execution": reference("Execution"),
    }
    return record(properties, required=["id"], **one_needed("input", "input_messages"))


def _execution() -> Schema:
    properties = {
        "target": text("The agent's name in targets.yaml; passgate takes the one of --agent."),
        "timeout_seconds": described("How long a trial may take.", **TIMEOUT_RULE),
        "assert": listed("Graders.", "Assertion"),
        "evaluators": listed("Graders, by their earlier name.", "Assertion"),
    }
    return record(properties, "How tests are run.")
