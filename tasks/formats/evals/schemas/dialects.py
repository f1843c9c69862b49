"""The JSON Schemas of AgentEvals' EVAL.yaml, with the names that its keys have had, and of AgentV's files up to 5.0."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from passgate.tasks.formats.evals.schemas.graders import Schema, grader_definitions, reference
from passgate.tasks.formats.evals.top_level import ROOT_RULES, TIMEOUT_RULE
from passgate.tasks.formats.evals.workspaces import AGENT_RULES, EXTENSION_HOOKS
from passgate.tasks.formats.rules import HOOKS
from passgate.tasks.model.task import AgentRules

DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"


def headed(name: str, title: str, root: Schema, definitions: dict[str, Schema]) -> Schema:
    """A whole schema. Keys that begin with `x-` are free."""
    own = {"^x-": {"description": "The file's own."}, r"^\$schema$": {"type": "string"}}
    head = {"$schema": DRAFT, "$id": f"urn:passgate:schema:{name}", "title": title}
    return {**head, **root, "patternProperties": own, "$defs": dict(sorted(definitions.items()))}


def described(says: str, **schema: Any) -> Schema:
    """A value of any type, or of the types that the schema says."""
    return {"description": says, **schema}


text = partial(described, type="string")
number = partial(described, type="number", minimum=0)
whole = partial(described, type="integer", minimum=0)
truth = partial(described, type="boolean")
mapping = partial(described, type="object")
texts = partial(described, type="array", items={"type": "string"})


def listed(says: str, definition: str, **schema: Any) -> Schema:
    return {"description": says, "type": "array", "items": reference(definition), **schema}


def record(says: Any = "", required: Any = (), **properties: Schema) -> Schema:
    """A mapping with these keys and no others."""
    head = {"description": says} if says else {}
    needed = {"required": list(required)} if required else {}
    return {**head, "type": "object", "properties": properties, "additionalProperties": False, **needed}


def one_needed(*names: str) -> Schema:
    """At least one of the keys."""
    return {"anyOf": [{"required": [name]} for name in names]}


def goals_needed(lists: Sequence[str], graders: Sequence[str], goals: Sequence[str]) -> Schema:
    """When a file has no graders, each of its tests needs one of the goals."""
    included = {"required": ["include"]}
    item = {"if": {"type": "object", "not": included}, "then": one_needed(*goals)}
    return {"if": {"not": one_needed(*graders)}, "then": {"properties": {name: {"items": item} for name in lists}}}


def text_or(says: str, *others: Schema) -> Schema:
    return {"description": says, "anyOf": [{"type": "string"}, *others]}


MESSAGE_LIST: Final[Schema] = {"type": "array", "items": {"$ref": "#/$defs/Message"}}
COMMON_TEST: Final[dict[str, Schema]] = {
    "id": text("Unique among the tests of the file.", minLength=1),
    "description": text("What the test is about, for readers."),
    "criteria": text("What a good answer is, in words; judges are told."),
    "expected_outcome": text("The earlier name of `criteria`."),
    "input_messages": {"description": "What the agent is asked, as messages.", **MESSAGE_LIST},
    "expected_messages": {"description": "The answer that is hoped for, as messages.", **MESSAGE_LIST},
    "rubrics": listed("Items of a rubric that a judge marks.", "RubricItem", minItems=1),
    "conversation_id": text("Tests of one conversation have the same."),
    "note": text("Told to judges only."),
    "metadata": mapping("Whatever else is to be known of the test."),
}
MESSAGES: Final[dict[str, Schema]] = {
    "ContentBlock": record(
        required=["type", "value"],
        type=described("What the block is.", enum=["text", "file", "image", "json"]),
        value=described("The text, the path of the file or image, or any JSON value."),
    ),
    "OpenAiCall": record(
        required=["function"],
        id=text("Unique; the message of the result names it."),
        type=described("Always `function`.", const="function"),
        function=record(
            "What is called.", ["name", "arguments"], name=text("The tool."), arguments=text("The arguments as JSON.")
        ),
    ),
}


def message_definition(*, call: str, content: tuple[str, ...] = ()) -> Schema:
    """A message. `call` is the definition of its tool calls, `content` the types that its content may have too."""
    blocks: Schema = {"type": "array", "items": reference("ContentBlock")}
    return record(
        required=["role"],
        role=described("Who speaks.", enum=["system", "user", "assistant", "tool"]),
        content=text_or("What is said.", blocks, *({"type": kind} for kind in content)),
        name=text("Of a tool message: the tool."),
        tool_call_id=text("Of a tool message: the call that it answers."),
        tool_calls=listed("Of an assistant message: the tools that it calls.", call),
    )


_EVAL_TESTS: Final = ("tests", "evalcases", "eval_cases", "cases")
_EVAL_AGGREGATORS: Final = ("weighted_average", "minimum", "maximum", "safety_gate", "all_or_nothing")
_EVAL_GOALS: Final = ("criteria", "expected_outcome", "rubrics", "assert", "execution")
_TESTS: Final = ("tests", "eval_cases", "evalcases")
_AGGREGATORS: Final = (*_EVAL_AGGREGATORS, "threshold", "code_grader", "llm_grader", "code_judge", "llm_judge")
_GOALS: Final = (
    *("criteria", "expected_outcome", "expected_output", "expected_messages"),
    *("assertions", "assert", "evaluators", "rubrics", "turns", "execution"),
)
_ANSWER: Final = described("The answer that is hoped for: a text, a JSON value, or messages.")
_AGENT: Final = "Agents of targets.yaml; passgate takes the one of --agent."
_EARLY_EXIT: Final = truth("Whether trials stop when the test is decided; passgate runs all of them.")

_EVAL_METADATA: Final = record(
    author=text("Who wrote it."),
    license=text("As in Apache-2.0."),
    tags=texts("Tags of every test."),
    skill=text("The skill that is evaluated."),
)["properties"]
_EVAL_ROOT: Final = record(
    required=["name"],
    name=described("The suite's name.", **ROOT_RULES["name"]),
    version=described("Version of the specification, as in 1.0.", **ROOT_RULES["version"]),
    description=described("What the suite is about.", **ROOT_RULES["description"]),
    metadata=mapping("Whatever else is to be known of the suite.", properties=_EVAL_METADATA),
    suite=text("The suite of passgate that the tests belong to, where their folder does not say it."),
    execution=reference("Execution"),
    **{"assert": listed("Graders of every test.", "Assertion")},
    rubrics=listed("Items of a rubric for every test.", "RubricItem", minItems=1),
    **{
        name: text_or(
            "The tests, or the paths of files with tests (YAML, JSONL)."
            + ("" if name == "tests" else " The earlier name of `tests`."),
            {"type": "array", "minItems": 1, "items": {"anyOf": [{"type": "string"}, reference("Test")]}},
        )
        for name in _EVAL_TESTS
    },
)
_EVAL_TEST: Final = record(
    required=["id"],
    **COMMON_TEST,
    input=text_or("What the agent is asked.", MESSAGE_LIST),
    expected_output=_ANSWER,
    **{"assert": listed("Graders of this test.", "Assertion")},
    execution=reference("Execution"),
)
_EVAL_EXECUTION: Final = record(
    "How tests are run.",
    target=text("The agent's name in targets.yaml; passgate takes the one of --agent."),
    timeout_seconds=described("How long a trial may take.", **TIMEOUT_RULE),
    **{"assert": listed("Graders.", "Assertion")},
    evaluators=listed("Graders, by their earlier name.", "Assertion"),
)


def agentevals_schema() -> Schema:
    """`tests` with `criteria` and `assert`; earlier `evalcases`, `eval_cases` or `cases` with `expected_outcome` and
    `execution.evaluators`.
    """
    definitions = {
        **grader_definitions(lambda form: form.agentevals, _EVAL_AGGREGATORS),
        **MESSAGES,
        "Message": message_definition(call="OpenAiCall"),
        "Execution": _EVAL_EXECUTION,
        "Test": _EVAL_TEST | one_needed("input", "input_messages"),
    }
    needed = [one_needed(*_EVAL_TESTS), goals_needed(_EVAL_TESTS, ("assert", "rubrics", "execution"), _EVAL_GOALS)]
    return headed("eval", "AgentEvals EVAL.yaml", {**_EVAL_ROOT, "allOf": needed}, definitions)


_GRADERS: Final[dict[str, Schema]] = {
    "assertions": listed("Graders; a text is an item of a rubric.", "Assertion"),
    "assert": listed("Another name of `assertions`.", "Assertion"),
    "evaluators": listed("The earliest name of `assertions`.", "Assertion"),
}
_INPUT: Final = text_or("What the agent is asked.", MESSAGE_LIST, {"type": "object"})
_THRESHOLD: Final = number("The least score that passes a test.", maximum=1)
_EXECUTION: Final[Schema] = {**reference("Policy"), "properties": {"timeout_seconds": dict(TIMEOUT_RULE)}}
_WORDS: Final[Schema] = {"type": "array", "items": {"type": "string"}}
_COMMAND: Final = text_or("A text for a shell, or words.", {**_WORDS, "minItems": 1})
_RUN: Final[dict[str, Schema]] = {
    "threshold": _THRESHOLD,
    "repeat": reference("Repeat"),
    "timeout_seconds": number("How long a trial may take.", minimum=0),
    "budget_usd": number("US dollars that it may cost."),
}
_ROOT: Final = record(
    name=described("The file's name.", **ROOT_RULES["name"]),
    suite=text("The suite that the tests belong to."),
    description=described("What the tests are about.", **ROOT_RULES["description"]),
    version=described("Version of the tests.", **ROOT_RULES["version"]),
    author=text("Who wrote it."),
    license=text("As in MIT."),
    tags=texts("Tags of every test."),
    category=text("What kind of tests they are."),
    requires=mapping("Versions of other tools."),
    metadata=mapping("Of every test."),
    governance=mapping("Of every test's metadata: owasp, mitre, controls, risk_tier, owner."),
    defaults=described("A place for YAML anchors."),
    input={**_INPUT, "description": "Messages before those of every test."},
    input_files=texts("Files attached to every test whose input is a text."),
    **_GRADERS,
    execution=_EXECUTION,
    experiment=reference("Policy"),
    run=reference("Run"),
    policy=reference("Policy"),
    workspace=text_or("The folder that the agent works in, or the file that says it.", reference("Workspace")),
    preprocessors=described("Programs that turn files into text for graders; passgate has none."),
    extensions=listed("Functions of modules around the trials.", "Extension"),
    **{
        name: text_or(
            "The tests, or the path of a file or folder with tests."
            + ("" if name == "tests" else " An earlier name of `tests`."),
            {"type": "array", "minItems": 1, "items": reference("Entry")},
        )
        for name in _TESTS
    },
)
_SELECT: Final = record(
    test_ids=text_or("Patterns of ids.", _WORDS),
    tags=text_or("Tags of which a test has one.", _WORDS),
    metadata=mapping("What the metadata of a test must say."),
)
_INCLUDE: Final = record(
    "Tests of another file.",
    ["include", "type"],
    include=text("An eval file, or raw cases; a pattern may be given.", minLength=1),
    type=described(
        "`suite`: with the input, graders and workspace of that file; `tests`: the cases alone.",
        enum=["suite", "tests"],
    ),
    select=text_or("Which tests: a pattern of ids, or more.", {"type": "array"}, _SELECT),
    run=reference("Run"),
)
_TEST: Final = record(
    required=["id"],
    **COMMON_TEST | {"id": described("Unique among the tests of the file.", type=["string", "integer"], minLength=1)},
    input=_INPUT,
    input_files=texts("Files attached to a text as input, instead of those of the file."),
    expected_output=_ANSWER,
    **_GRADERS,
    execution=_EXECUTION,
    run=reference("Run"),
    threshold=_THRESHOLD,
    targets=listed(_AGENT, "Target"),
    tags=texts("Tags of the test."),
    category=text("What kind of test it is."),
    governance=mapping("Goes into `metadata`."),
    vars=mapping("Values for `{{ name }}` in the texts of the test."),
    mode=described("A conversation has `turns`.", enum=["conversation"]),
    turns=listed("What the user says one after the other.", "Turn", minItems=1),
    aggregation=described("How the scores of the turns become one.", enum=["mean", "min", "max"]),
    on_turn_failure=described("Whether a conversation goes on.", enum=["continue", "stop"]),
    window_size=whole("How many turns a judge is shown.", minimum=1),
    depends_on=texts("Ids of tests that go before."),
    on_dependency_failure=described("What becomes of this test then.", enum=["skip", "fail", "run"]),
    workspace=text_or("The folder that the agent works in.", reference("Workspace")),
)
_TURN: Final = record(
    "What the user says, and what is asked of the answer.",
    ["input"],
    input=_INPUT,
    expected_output=described("The answer that is hoped for."),
    **_GRADERS,
    **dict.fromkeys(("name", "id"), text("For readers.")),
)
_CALL: Final = record(
    required=["tool"],
    tool=text("The tool.", minLength=1),
    input=described("The arguments."),
    output=described("The result."),
    id=text("Of the call."),
    status=text("How it ended."),
    start_time=described("When it began."),
    end_time=described("When it ended."),
    duration_ms=number("How long it took."),
)
_HOOKS: Final = record(
    "Commands around trials.", enabled=truth("Whether they run."), **dict.fromkeys(HOOKS, reference("Hook"))
)
_RULES: Final = {
    name: text_or(f"Paths of {name} that are copied into the workspace.", _WORDS) for name in AgentRules.model_fields
}
_EXTENSION: Final = record(
    required=["id"],
    id=text("The only one that is described.", const=AGENT_RULES),
    hook=described("When it runs.", enum=[*EXTENSION_HOOKS]),
    config=record("The paths, as beside it.", **_RULES),
    **_RULES,
)
_REPEAT: Final = record(
    count=whole("Trials.", minimum=1),
    strategy=described(
        "How the trials decide the test.", enum=["pass_all", "pass_any", "pass_at_k", "mean", "confidence_interval"]
    ),
    cost_limit_usd=number("US dollars that they may cost together."),
    costLimitUsd=number("The same as `cost_limit_usd`."),
    early_exit=_EARLY_EXIT,
)
_TARGET: Final = record(
    name=text("What reports call it."),
    use_target=text("The target that it is."),
    hooks=_HOOKS,
)
_POLICY: Final = record(
    "How the tests are run.",
    **_RUN,
    name=text("Of the run."),
    target=reference("Target"),
    targets=listed(_AGENT, "Target"),
    agent=text("The agent."),
    model=text("The agent's model."),
    agent_options=mapping("Of the agent; passgate has none."),
    workers=whole("Tests at once.", minimum=1, maximum=50),
    trials=reference("Repeat"),
    runs=whole("Trials.", minimum=1),
    early_exit=_EARLY_EXIT,
    skip_defaults=truth("Of a test: without the input and graders of the file."),
    cache=truth("Whether answers are kept; passgate keeps none."),
    cache_path=text("Where."),
    fail_on_error=described("Whether errors end the run.", type=["boolean", "number"]),
    workspace=record("How it is kept.", mode=text("pooled, temp or static"), path=text("A folder.")),
    sandbox=described("Of the agent; passgate has its own."),
    **_GRADERS,
)
_HOOK: Final = record(
    command=_COMMAND,
    script=_COMMAND,
    cwd=text("Where it runs; the folder of the file when not given."),
    timeout_ms=number("How long it may take."),
    reset=described("What is undone after it.", enum=["none", "fast", "strict"]),
)
_REPOSITORY: Final = record(
    required=["repo"],
    path=text("Where in the workspace."),
    repo=text("A URL, a path, or `owner/name` of GitHub."),
    commit=text("A commit, tag or branch."),
    base_commit=text("The same as `commit`."),
    ancestor=whole("How many first parents before it."),
    sparse=texts("Only these folders."),
)
_WORKSPACE: Final = record(
    "The folder that the agent works in.",
    **dict.fromkeys(("name", "description"), text("For readers.")),
    template=text("A folder that every trial begins with a copy of."),
    isolation=described("Every trial has its own copy anyway.", enum=["shared", "per_test", "per_case"]),
    repos=listed("Git repositories in it.", "Repository"),
    hooks=_HOOKS,
    mode=described("How AgentV keeps it.", enum=["pooled", "temp", "static"]),
    path=text("A folder to work in itself; passgate only works in copies."),
    docker=mapping("An image; passgate runs nothing in Docker."),
    env=record(
        "What the machine must have.", required_commands=texts("Programs."), required_python_modules=texts("Modules.")
    ),
)


def agentv_schema() -> Schema:
    """Suites of tests, raw cases, and wrappers that include them with a runtime policy of their own."""
    # What a form is called before there was `trajectory:`.
    graders = grader_definitions(lambda form: tuple(x for x in form.names if x not in form.later), _AGGREGATORS)
    either = {"if": {"required": ["include"]}, "then": reference("Include"), "else": reference("Test")}
    types = graders["Grader"]["properties"]["type"]
    types["enum"] += [f"not-{name}" for name in types["enum"] if "_" not in name]
    definitions = {
        **graders,
        **MESSAGES,
        "Workspace": _WORKSPACE,
        "Hook": text_or("A command.", _WORDS, _HOOK),
        "Extension": text_or("`file://PATH:HOOK`, or what finds the rules of an agent.", _EXTENSION),
        "Repository": _REPOSITORY,
        "Message": message_definition(call="ToolCall", content=("object", "number", "boolean")),
        "ToolCall": {"anyOf": [reference("OpenAiCall"), _CALL]},
        "Run": record("What goes before the file's policy.", **_RUN),
        "Policy": _POLICY,
        "Repeat": {"description": "How often a test is tried.", "anyOf": [{"type": "integer", "minimum": 1}, _REPEAT]},
        "Target": text_or("An agent of targets.yaml; passgate takes the one of --agent.", _TARGET),
        "Turn": _TURN,
        "Test": _TEST,
        "Include": _INCLUDE,
        "Entry": {
            "description": "A test, an include, or the path of raw cases: a file, a folder or a pattern.",
            "anyOf": [{"type": "string", "minLength": 1}, {"type": "object", **either}],
        },
    }
    needed = [one_needed(*_TESTS), goals_needed(_TESTS, (*_GRADERS, "rubrics"), _GOALS)]
    return headed("agentv", "AgentV eval file", {**_ROOT, "allOf": needed}, definitions)
