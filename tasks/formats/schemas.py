"""The JSON Schemas of the input files, made from the models: what the loader accepts and editors show.

`make schema` writes them to `schema/`; a test keeps the files and the models the same.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from pydantic import BaseModel

from passgate.tasks.formats.evals import computed_forms, graders, judges, messages, runtime, tests, workspaces
from passgate.tasks.formats.evals.compose import Include, Select, SuiteWords
from passgate.tasks.formats.evals.forms import Form
from passgate.tasks.formats.evals.words import EvalWords, names_by_spelling
from passgate.tasks.formats.folder import TESTS_KEYS
from passgate.tasks.formats.schema_check import add_head, input_schema, json_schema
from passgate.tasks.model.assertions import ExpectedCall, FieldCheck

Schema = dict[str, Any]

_TEXT: Final = {"type": "string", "minLength": 1}
_AS_IN_TASKS: Final = "As in task files."
_WHOLE: Final = {"type": "integer", "minimum": 1}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _many(name: str, least: int = 0) -> Schema:
    return {"type": "array", "items": _ref(name), **({"minItems": least} if least else {})}


def _any_of(*options: Schema) -> Schema:
    return {"anyOf": [*options]}


# What the keys of files, tests and their mappings hold, where that is a mapping or a list of its own.
_HELD: Final[dict[str, Schema]] = {
    **dict.fromkeys(TESTS_KEYS, _any_of({"type": "string"}, _many("Entry", 1))),
    **dict.fromkeys(("assertions", "assert", "evaluators", "conversation"), _many("Assertion")),
    **dict.fromkeys(("input_messages", "expected_messages"), _many("Message")),
    **dict.fromkeys(("experiment", "policy"), _ref("Policy")),
    **dict.fromkeys(("repeat", "trials"), _any_of(_WHOLE, _ref("Repeat"))),
    **dict.fromkeys(("before_all", "before_each", "after_each", "after_all", "setup"), _ref("Hook")),
    "input": _any_of({"type": "string"}, _many("Message"), {"type": "object"}),
    "rubrics": _many("RubricItem", 1),
    "execution": _ref("Execution"),
    "run": _ref("Run"),
    "evaluate_options": _ref("EvaluateOptions"),
    "targets": _many("Target"),
    "turns": _many("Turn", 1),
    "extensions": _many("Extension"),
    "repos": _many("Repository"),
    "tool_calls": _many("ToolCall"),
}
# Mappings whose definitions are called as they are, and hold what `_HELD` says.
_PLAIN: Final = (
    *(messages.MessageWords, tests.TurnWords, runtime.Run, runtime.PolicyWords, runtime.Execution),
    *(runtime.EvaluateOptions, runtime.RepeatWords, workspaces.EnvironmentWords, workspaces.HooksWords),
)
# The keys of AgentEvals, in every spelling.
_AGENTEVALS: Final[dict[str, tuple[str, ...]]] = {
    "Suite": (
        *("name", "version", "description", "metadata", "suite", "execution", "assert", "rubrics"),
        *TESTS_KEYS,
    ),
    "Test": (
        *("id", "description", "criteria", "expected_outcome", "input", "input_messages", "expected_output", "note"),
        *("expected_messages", "rubrics", "assert", "execution", "conversation_id", "metadata"),
    ),
    "Execution": ("target", "timeout_seconds", "assert", "evaluators"),
}
_AGENTEVALS_AGGREGATORS: Final = ("weighted_average", "minimum", "maximum", "safety_gate", "all_or_nothing")
_GOALS: Final = (
    *("criteria", "expected_outcome", "expected_output", "expected_messages", "assertions", "assert", "evaluators"),
    *("rubrics", "turns", "execution"),
)


def agentevals_schema() -> Schema:
    """Return the schema of AgentEvals' EVAL.yaml, with the names that its keys have had."""
    definitions = _definitions(lambda form: form.agentevals, _AGENTEVALS_AGGREGATORS)
    for name, keys in _AGENTEVALS.items():
        properties = {key: definitions[name]["properties"][key] for key in keys}
        definitions[name] = {**definitions[name], "properties": properties, "patternProperties": {}}
    definitions["Suite"]["required"] = ["name"]
    definitions["Test"] |= {"required": ["id"], "allOf": [_need_one(("input", "input_messages"))]}
    return _schema("eval", "AgentEvals EVAL.yaml", definitions, ("assert", "rubrics", "execution"))


def agentv_schema() -> Schema:
    """Return the schema of AgentV's files: suites, raw cases, wrappers that include them, and files with prompts."""
    definitions = _definitions(lambda form: form.names, (*graders.AGGREGATORS, *graders.AGGREGATOR_NAMES))
    types = definitions["Grader"]["properties"]["type"]
    types["enum"] += [f"not-{name}" for name in types["enum"] if "_" not in name]
    return _schema("agentv", "AgentV eval file", definitions, ("assertions", "assert", "evaluators", "rubrics"))


def _schema(name: str, title: str, definitions: dict[str, Schema], goals: Sequence[str]) -> Schema:
    """Return a whole schema. Each test needs a goal, where the file has none of `goals`, and an id of its own."""
    root = definitions.pop("Suite")
    for_every_test = [key for key in ("prompts", "default_test", "scenarios") if key in root["properties"]]
    needed = [
        _need_one(key for key in (*TESTS_KEYS, "scenarios") if key in root["properties"]),
        _unless((*goals, *for_every_test), _need_one(_GOALS)),
        _unless(for_every_test, {"required": ["id"]}),
    ]
    own = {**root["patternProperties"], "^x-": {"description": "The file's own."}}
    whole = {**root, "allOf": needed, "patternProperties": own, "$defs": dict(sorted(definitions.items()))}
    return add_head(whole, name, title)


def _unless(keys: Sequence[str], then: Schema) -> Schema:
    """Return what holds of each test of a file that has none of the keys."""
    item = {"if": {"type": "object", "not": {"required": ["include"]}}, "then": then}
    tests_hold = {"properties": {key: {"items": item} for key in TESTS_KEYS}}
    return {"if": {"not": _need_one(keys)}, "then": tests_hold} if keys else tests_hold


def _need_one(names: Iterable[str]) -> Schema:
    return {"anyOf": [{"required": [name]} for name in names]}


def _definitions(names_of: Callable[[Form], tuple[str, ...]], aggregators: Sequence[str]) -> dict[str, Schema]:
    """Return what a file is made of. `names_of`: the names that a form goes by, none to leave it out."""
    aggregator = _mapping(graders.AggregatorWords)
    aggregator["properties"]["type"]["enum"] = _spellings(aggregators)
    either = {"if": {"required": ["include"]}, "then": _ref("Include"), "else": _ref("Test")}
    call = {"if": {"required": ["function"]}, "then": _ref("OpenAiCall"), "else": _ref("Call")}
    hooks = {"hooks": _ref("Hooks")}
    places = {"workspace": _any_of(_TEXT, _ref("Workspace")), "environment": _any_of(_TEXT, _ref("Environment"))}
    target = {"type": "object", "properties": {"hooks": _ref("Hooks")}}
    template = {"properties": {"include": _TEXT}, "additionalProperties": False}
    return {
        **_grader_definitions(names_of),
        "Suite": _mapping(SuiteWords, **places),
        "Test": _mapping(tests.EvalTestWords, **places),
        "Assertion": _any_of(
            _TEXT, {"type": "object", "if": {"required": ["include"]}, "then": template, "else": _ref("Grader")}
        ),
        "Aggregator": aggregator,
        "RubricItem": _any_of(_TEXT, _ref("RubricMapping")),
        "RubricMapping": _mapping(
            judges.RubricItem, score_ranges={"type": ["object", "array"], "items": _ref("ScoreRange")}
        ),
        "ScoreRange": _mapping(judges.ScoreSpan),
        "FieldCheck": _describe(_mapping(computed_forms.FIELD), FieldCheck),
        "ExpectedCall": _any_of(_TEXT, _describe(_mapping(computed_forms.EXPECTED), ExpectedCall)),
        **{words.__name__.removesuffix("Words"): _mapping(words) for words in _PLAIN},
        "ToolCall": {"type": "object", **call},
        "OpenAiCall": _mapping(messages.OpenAiCall, function=_mapping(messages.Function)),
        "Call": _mapping(messages.ToolCallWords),
        "Target": _any_of({"type": "string"}, target),
        "Workspace": _mapping(workspaces.WorkspaceWords, **hooks, env=_mapping(workspaces.Requirements)),
        "Hook": _any_of(_TEXT, {"type": "array", "items": {"type": "string"}}, _mapping(workspaces.HookWords)),
        "Repository": _mapping(workspaces.RepositoryWords, checkout=_mapping(workspaces.CheckoutWords)),
        "Extension": _any_of(_TEXT, _mapping(workspaces.ExtensionWords)),
        "Include": _mapping(Include, select=_any_of(_TEXT, {"type": "array"}, _mapping(Select))),
        "Entry": _any_of(_TEXT, {"type": "object", **either}),
    }


def _grader_definitions(names_of: Callable[[Form], tuple[str, ...]]) -> dict[str, Schema]:
    forms = {found[0]: (form, _spellings(found)) for form in graders.FORMS if (found := names_of(form))}
    definitions: dict[str, Schema] = {}
    branches = []
    for name, (form, names) in forms.items():
        title = "".join(part.capitalize() for part in name.replace(":", "_").replace("-", "_").split("_"))
        branches.append({"if": {"properties": {"type": {"enum": names}}, "required": ["type"]}, "then": _ref(title)})
        definitions[title] = _grader(form, definitions)
    kinds = {"description": "What grades.", "enum": [name for _, names in forms.values() for name in names]}
    grader = {"type": "object", "required": ["type"], "properties": {"type": kinds}, "allOf": branches}
    return {**definitions, "Grader": grader}


def _grader(form: Form, definitions: dict[str, Schema]) -> Schema:
    held = {"fields": _many("FieldCheck"), "expected": _many("ExpectedCall"), "aggregator": _ref("Aggregator")}
    held |= {"criteria": _many("RubricItem")} if form.names[0] == "rubrics" else {}
    for name, inner in input_schema(form.words, "", "")["$defs"].items():
        for value in inner.get("properties", {}).values():
            value.setdefault("description", _AS_IN_TASKS)
        definitions[name] = inner
    schema = _mapping(form.words, **held, turns={"type": "array", "items": {"type": "object"}})
    schema["properties"].setdefault("config", {"type": "object", "description": "Options, as if beside it."})
    described = {**schema, "description": form.model.__doc__ or "", "additionalProperties": form.further}
    return _describe(described, form.model)


def _describe(schema: Schema, model: type[BaseModel]) -> Schema:
    """Add what a model says of its fields to the definition of a mapping."""
    whole = json_schema(model)
    # A model that holds itself stands among its definitions.
    fields = whole.get("$defs", {}).get(model.__name__, whole)["properties"]
    for name, value in schema["properties"].items():
        value.setdefault("description", fields.get(name, {}).get("description", _AS_IN_TASKS))
    return schema


def _mapping(words: type[EvalWords], **held: Schema) -> Schema:
    """Return the definition of a mapping: every key in each of its spellings."""
    schema = input_schema(words, "", "")
    known = {**_HELD, **held}
    spellings = names_by_spelling(words)
    properties: dict[str, Schema] = {}
    for spelling, name in spellings.items():
        own = schema["properties"][name]
        said = {"description": own["description"]} if "description" in own else {}
        properties[spelling] = {**said, **known.get(spelling, known.get(name, own))}
    properties |= {name: {"description": "Not used."} for name in words.UNUSED}
    needed = {name: [key for key in spellings if spellings[key] == name] for name in schema.get("required", ())}
    mapping: Schema = {
        **({"description": schema["description"]} if "description" in schema else {}),
        "type": "object",
        "properties": properties,
        "patternProperties": {_other_cases(name): properties[name] for name in properties if "_" in name},
        "additionalProperties": False,
    }
    if plain := [name for name, names in needed.items() if len(names) == 1]:
        mapping["required"] = plain
    if several := [_need_one(names) for names in needed.values() if len(names) > 1]:
        mapping["allOf"] = several
    return mapping


def _spellings(names: Iterable[str]) -> list[str]:
    """Return names in snake_case and in kebab-case."""
    return list(dict.fromkeys(spelling for name in names for spelling in (name, name.replace("_", "-"))))


def _other_cases(name: str) -> str:
    """Return a pattern of a key in camelCase and kebab-case, which editors need not offer."""
    head, *rest = name.split("_")
    return f"^({head + ''.join(part.capitalize() for part in rest)}|{name.replace('_', '-')})$"


def schemas() -> dict[str, dict[str, Any]]:
    """Return every generated schema by its name, as in `schema/NAME.schema.json`."""
    # Imported here: reading a file needs `input_schema` alone.
    from passgate.tasks.model.baseline import Pins
    from passgate.tasks.model.policy import Policy, QuarantineFile
    from passgate.tasks.model.price import PriceTable
    from passgate.tasks.model.sandbox import SandboxFile
    from passgate.tasks.model.task import TaskFile
    from passgate.tasks.model.transcript import Transcript
    from passgate.tasks.model.verdict import Verdict

    return {
        "task": input_schema(TaskFile, "task", "Agent Eval Task"),
        "sandbox": input_schema(SandboxFile, "sandbox", "passgate sandbox"),
        "gates": input_schema(Policy, "gates", "passgate gates"),
        "agents": _agents_schema(),
        "prices": input_schema(PriceTable, "prices", "passgate prices"),
        "baseline": input_schema(Pins, "baseline", "passgate baseline pins"),
        "quarantine": input_schema(QuarantineFile, "quarantine", "passgate quarantine"),
        "verdict": add_head(json_schema(Verdict, "serialization"), "verdict", "passgate verdict"),
        # Agents write it and passgate too: what is not known may be left out or `null`.
        "transcript": add_head(json_schema(Transcript), "transcript", "passgate transcript"),
        "eval": agentevals_schema(),
        "agentv": agentv_schema(),
    }


def _agents_schema() -> dict[str, Any]:
    """Return the schema of agents.yaml, with the names of the providers."""
    from passgate.tasks.model.agent import AgentsFile
    from passgate.tasks.providers.registry import PROVIDERS

    schema = input_schema(AgentsFile, "agents", "passgate agents")
    upstreams = schema["$defs"]["AgentEntry"]["properties"]["upstreams"]
    upstreams["properties"] = dict.fromkeys(PROVIDERS, upstreams["additionalProperties"])
    upstreams["additionalProperties"] = False
    return schema


def schema_text(schema: dict[str, Any]) -> str:
    """Return a schema as its file holds it."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    import sys
    from pathlib import Path

    for schema_name, schema_value in schemas().items():
        Path(sys.argv[1], f"{schema_name}.schema.json").write_text(schema_text(schema_value), encoding="utf-8")
