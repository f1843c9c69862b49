"""From a raw test to a task as four-suite files have it: what it asks and expects, its metadata, tags and suite."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

from passgate.tasks.formats.evals.forms import add_native
from passgate.tasks.formats.evals.graders import NO_TRANSFORM, Graders, read_list, read_own_graders
from passgate.tasks.formats.evals.judges import prompt_parts, set_prompt
from passgate.tasks.formats.evals.messages import Variables, read_expected, read_input, read_messages, read_variables
from passgate.tasks.formats.evals.node import Complaints, Node
from passgate.tasks.formats.evals.raw import RawTest, SuiteContext
from passgate.tasks.formats.evals.runtime import GraderLists, Repeats, read_blocks, runtime_fields
from passgate.tasks.formats.evals.words import EvalWords, Parts, Sources, Whole, take_apart, word
from passgate.tasks.formats.folder import SUITES, find_suite
from passgate.tasks.formats.rules import Messages
from passgate.tasks.model.assertions import LlmGrader
from passgate.tasks.model.base import Seconds, Share
from passgate.tasks.model.graders import Grader, TurnGraders, Turns
from passgate.tasks.model.json_values import strictly_equal
from passgate.tasks.model.messages import TaskMessage, as_prompt
from passgate.tasks.model.task import Environment, SimulatedUser, Suite, TaskFile

_DEFAULT = LlmGrader(type="llm_grader")  # grades a test that has criteria or an expected answer and no grader
_OWN_SCORE = "the score is the mean by `weight`, against `threshold`; write a `script` grader, `required`, for another"
NO_PREPROCESSORS = "passgate runs no preprocessors: let a `script` grader read the file"


class EvalTestWords(GraderLists):
    """A test."""

    REFUSED = {
        "assert_scoring_function": _OWN_SCORE,
        "evaluator": "write `assert`",
        "postprocess": NO_TRANSFORM,
        "provider_output": "play recorded answers with `--agent replay:FOLDER`; leave it out here",
    }

    id: str | Whole = word("Unique among the tests of the file.")
    description: str = word("What the test is about, for readers.")
    criteria: str = word("What a good answer is, in words, for judges.", "criteria", "expected_outcome")
    input: Any = word("What the agent is asked: a text or messages.", "input", "input_messages")
    input_files: list[str] | str = word("Files attached to a text as input, instead of those of the file.")
    expected_output: Any = word("The answer that is hoped for: a text, a JSON value, or messages.")
    expected_messages: Any = word("The answer that is hoped for, as messages.")
    rubrics: list[Any] = word("Items of a rubric that a judge marks.")
    turns: list[dict[str, Any]] = word("What the user says one after the other.")
    mode: Literal["conversation"] = word("A conversation has `turns`.")
    aggregation: Literal["mean", "min", "max"] = word("How the scores of the turns become one.")
    on_turn_failure: Literal["continue", "stop"] = word("Whether a conversation goes on.")
    window_size: Whole = word("How many turns a judge is shown; passgate shows all.")
    conversation_id: str | Whole = word("Tests of one conversation have the same.")
    note: str = word("Told to judges only.")
    suite: str = word("The suite that the test belongs to.")
    tags: list[Any] | dict[str, Any] | str = word("Tags of the test.")
    category: str = word("What kind of test it is.")
    metadata: dict[str, Any] = word("Whatever else is to be known of the test.")
    governance: dict[str, Any] = word("Goes into `metadata`.")
    vars: dict[str, Any] = word("Values for `{{ name }}` in the texts of the test.")
    prompts: Any = word("Labels of the prompts of the file that it is for.")
    execution: dict[str, Any] = word("How the test is run.")
    run: dict[str, Any] = word("How the test is run; it goes before the file's policy.")
    repeat: Repeats | dict[str, Any] = word("How often the test is tried.")
    threshold: Share = word("The least score that passes the test.")
    timeout_seconds: Seconds = word("How long a trial may take.")
    target: str = word("An agent of targets.yaml; passgate takes the one of --agent.")
    targets: list[Any] = word("Agents of targets.yaml; passgate takes the one of --agent.")
    provider: Any = word("The agent's name in the other tool.")
    providers: Any = word("The agents' names in the other tool.")
    options: dict[str, Any] = word("Settings of the other tool, and `rubric_prompt`.")
    workspace: dict[str, Any] | str = word("The folder that the agent works in.")
    environment: dict[str, Any] | str = word("The folder that the agent works in, and its variables.")
    extensions: list[Any] = word("Functions of modules around the trials.")
    preprocessors: Any = word("Programs that turn files into text for graders; passgate has none.")
    depends_on: list[str] | str = word("Ids of tests that go before; every trial stands alone.")
    on_dependency_failure: str = word("What becomes of this test then; not used.")
    passgate: dict[str, Any] = word("What only passgate has, as in task files.")


class Options(EvalWords):
    """Settings of a test in the other tool."""

    UNUSED = ("provider", "disable_var_expansion", "disable_conversation_memory", "run_serially")

    rubric_prompt: Any = word("The prompt of judges that have none of their own.")
    repeat: Whole = word("Not used.")
    transform: Any = word("Passgate transforms no answers.")
    transform_vars: Any = word("Passgate transforms no variables.")
    postprocess: Any = word("Passgate transforms no answers.")
    prefix: str = word("Write it into the prompt.")
    suffix: str = word("Write it into the prompt.")
    store_output_as: str = word("Every trial stands alone.")


OPTIONS_NOT_HAD = {
    "transform": NO_TRANSFORM,
    "transform_vars": "passgate transforms no variables: write the finished ones into `vars`",
    "postprocess": NO_TRANSFORM,
    **dict.fromkeys(("prefix", "suffix"), "write it into the prompt, under `prompts`"),
    "store_output_as": "every trial stands alone: no test gets the answer of another",
}


class TurnWords(EvalWords):
    """What the user says, and what is asked of the answer."""

    UNUSED = ("name", "id")

    input: Any = word("What the user says.", needed=True)
    expected_output: Any = word("The answer that is hoped for.")
    assert_: list[Any] = word("Graders; a text is an item of a rubric.", "assert", "assertions", "evaluators")


TRACKED = ("tokens", "latency", "cost", "tool_use")


class SuiteWide(NamedTuple):
    """What a file says of all its tests, and the complaints about it."""

    messages: Messages
    graders: Graders
    has_places: bool  # whether a test's variables change it
    complaints: Complaints


class ReadTest(NamedTuple):
    """A test that has been read."""

    task: TaskFile
    messages: Messages  # what the agent is asked, where that is more than one text
    suite_assumed: bool


def read_test(raw: RawTest, sources: Sources) -> ReadTest | None:
    """Return a test as a task. `None` when something is wrong with it or its file; the complaints say what."""
    before = len(sources.complaints.problems)
    test = take_apart(raw.node, EvalTestWords, sources)
    said = test.value("id", raw.default_id)
    if (said is None and test.node.get("id") is None) or (said is not None and not str(said).strip()):
        sources.refuse(test.node, "the key 'id' is missing")
    sources.cannot_have(test, {"preprocessors": NO_PREPROCESSORS})
    if options := test.get("options"):
        sources.cannot_have(take_apart(options, Options, sources), OPTIONS_NOT_HAD)
    fields, messages, user = _content(test, raw, sources)
    run = runtime_fields(test, raw, sources)
    root = raw.context.root
    metadata = merge(_metadata(root), _metadata(test))
    tags = _tags(root.value("tags"), test.value("tags"), metadata.get("tags"))
    suite = _suite(test, raw, metadata, tags, sources)
    if len(sources.complaints.problems) > before:
        return None
    names = (test.value("suite"), root.value("suite"))
    other = next(({"suite": name} for name in names if isinstance(name, str) and name not in SUITES), {})
    own = {"suite": suite or Suite.GOLDEN, "tags": tags, "metadata": {**other, **metadata}}
    environment = Environment(**run.pop("environment"), user=user)
    task = add_native(TaskFile(**fields, **run, environment=environment, **own), test, sources)
    return None if len(sources.complaints.problems) > before else ReadTest(task, messages, suite_assumed=suite is None)


def suite_wide(context: SuiteContext, variables: Variables, sources: Sources) -> SuiteWide:
    """Return what a file says of all its tests, with the variables of one; complaints go to that test's."""
    known = context.wide.get(variables.is_template)
    if known is None:
        known = _read_wide(context.root, Variables({}, is_template=variables.is_template), sources)
        context.wide[variables.is_template] = known
    # Read anew for a test only where its variables change it: a data set has thousands of tests.
    wide: SuiteWide = _read_wide(context.root, variables, sources) if variables.values and known.has_places else known
    sources.complaints.add(wide.complaints)
    return wide


def _read_wide(root: Parts, variables: Variables, sources: Sources) -> SuiteWide:
    own = replace(sources, complaints=Complaints())
    if (said := root.get("preprocessors")) and said.value:  # an empty list asks for nothing
        own.cannot_run(said, NO_PREPROCESSORS, at_key=True)
    read_blocks(root, own)
    said = variables.fill_at(root, "input", own)
    messages = () if said is None else read_messages(said, own)
    variable = {key: part.value for key, part in root.only("input", "rubrics", "execution", "assertions").items()}
    has_places = "{{" in json.dumps(variable, default=str)
    return SuiteWide(messages, read_own_graders(root, variables, own), has_places, own.complaints)


def _content(test: Parts, raw: RawTest, sources: Sources) -> tuple[dict[str, Any], Messages, SimulatedUser | None]:
    """Return what agent and judges receive as fields of a task, the messages, and the simulated user."""
    variables = read_variables(test, raw, sources)
    wide = suite_wide(raw.context, variables, sources)
    execution, criteria = test.get("execution"), variables.fill_at(test, "criteria", sources)
    alone = execution is not None and execution.value.get("skip_defaults") is True
    opening, user, turns = _conversation(test, variables, sources)
    own = read_input(test, raw, variables, alone=alone, sources=sources)
    graders = read_own_graders(test, variables, sources)
    of_turns = turns is not None and any(turn.assertions for turn in turns.turns)
    is_graded = graders.said or of_turns or (wide.graders.said and not alone)
    listed: tuple[Grader, ...] = (*graders.all, *(() if alone else wide.graders.all)) if is_graded else (_DEFAULT,)
    if (prompt := (test.get("options") or test.node).get("rubric_prompt")) is not None:
        listed = set_prompt(listed, prompt_parts(variables.fill_graders(prompt), sources))
    if turns is not None:
        # The test's own graders grade the whole conversation and count as one more turn.
        listed = (turns.model_copy(update={"conversation": listed}),)
    messages = (*(() if alone else wide.messages), *own, *opening)
    expected = _expected_answer(test, variables, sources)
    told = "" if criteria is None else str(criteria.value)
    is_graded = is_graded or bool(told.strip()) or expected != (None, ()) or bool(test.wrong & {"criteria", "turns"})
    _refuse_incomplete(test, asks=bool(own or opening), is_graded=is_graded, sources=sources)
    fields = {"graders": listed, "criteria": told, "expected_output": expected[0], "expected_messages": expected[1]}
    conversation_id = test.value("conversation_id")
    fields |= {
        "task_id": str(test.value("id", raw.default_id)),
        "description": test.value("description", ""),
        "tracked_metrics": TRACKED,
        "note": test.value("note", ""),
        "conversation_id": str(conversation_id) if conversation_id is not None else None,
    }
    if len(messages) == 1 and messages[0].role == "user" and isinstance(messages[0].content, str):
        return {**fields, "inputs": {"prompt": messages[0].content}}, (), user
    return {**fields, "inputs": {"messages": [_plain_message(message) for message in messages]}}, messages, user


def _conversation(
    test: Parts, variables: Variables, sources: Sources
) -> tuple[Messages, SimulatedUser | None, Turns | None]:
    """Return what the user says first and later, and one grader with the graders of all turns."""
    if (mode := test.get("mode")) is not None and test.node.get("turns") is None:
        sources.refuse(mode, "a conversation needs `turns`")
    window = test.get("window_size")
    if window is not None:
        sources.warn(window, "judges are shown the whole conversation", at_key=True)
    turns = [_turn(item, variables, sources) for item in (test.values["turns"].items() if test.get("turns") else ())]
    if not turns:
        return (), None, None
    says = [as_prompt(messages) for messages, _ in turns[1:]]
    grader = Turns(
        type="turns",
        turns=tuple(graders for _, graders in turns),
        aggregation=test.value("aggregation", "mean"),
        on_turn_failure=test.value("on_turn_failure", "continue"),
    )
    return turns[0][0], SimulatedUser(says=tuple(text for text in says if text)) if any(says) else None, grader


def _turn(node: Node, variables: Variables, sources: Sources) -> tuple[Messages, TurnGraders]:
    turn = take_apart(node, TurnWords, sources)
    said = variables.fill_at(turn, "input", sources)
    messages = read_messages(said, sources) if said else ()
    if said is not None and not messages:
        sources.refuse(said, "must not be empty")
    value, as_messages = read_expected(variables.fill_at(turn, "expected_output", sources), None, sources)
    listed = turn.get("assert")
    graders = read_list(listed, variables, sources) if listed else ()
    return messages, TurnGraders(assertions=graders, expected_output=as_messages[-1].text if as_messages else value)


def _expected_answer(test: Parts, variables: Variables, sources: Sources) -> tuple[Any, Messages]:
    given, short = test.get("vars"), variables.fill_at(test, "expected_output", sources)
    if variables.is_template and given is not None and "expected_output" in given.value and short is None:
        of_given = given.child("expected_output").with_value(variables.values["expected_output"])
        return read_expected(of_given, test.get("expected_messages"), sources)
    return read_expected(short, variables.fill_at(test, "expected_messages", sources), sources)


def _refuse_incomplete(test: Parts, *, asks: bool, is_graded: bool, sources: Sources) -> None:
    missing, criteria = [] if asks else ["`input`"], test.get("criteria")
    if not is_graded and criteria is not None:
        sources.cannot_run(criteria, "nothing tells a good answer: the criteria are empty")
    elif not is_graded:
        missing.append("something that tells a good answer (`criteria`, `expected_output` or `assert`)")
    if missing:
        sources.refuse(test.node, f"incomplete test: it needs {' and '.join(missing)}")


def _plain_message(message: TaskMessage) -> dict[str, Any]:
    """Return a message as task files have it: without the contents of its files."""
    if isinstance(message.content, str) and not message.tool_calls and message.role != "tool":
        return {"role": message.role, "content": message.content}
    texts = {"content": {"__all__": {"text"}}} if isinstance(message.content, tuple) else None
    return message.model_dump(mode="json", exclude_defaults=True, exclude=texts)


def _metadata(parts: Parts) -> dict[str, Any]:
    said: dict[str, Any] = {key: part.value for key, part in parts.only("governance", "category").items()}
    return {**said, **parts.value("metadata", {})}


def merge(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return two mappings as one: lists are joined without repeats, mappings merged, otherwise `over` wins."""
    both = {**under, **over}
    for key in both:
        if key not in under or key not in over:
            continue
        below, above = under[key], over[key]
        if isinstance(below, Mapping) and isinstance(above, Mapping):
            both[key] = merge(below, above)
        elif isinstance(below, list) and isinstance(above, list):
            items: list[Any] = []
            for item in (*below, *above):
                if not any(strictly_equal(item, known) for known in items):  # 1 is not true
                    items.append(item)
            both[key] = items
    return both


def _tags(*said: Any) -> tuple[str, ...]:
    """Return the tags of several places in order, without repeats. A mapping gives tags as in `team=web`."""
    tags: list[str] = []
    for value in said:
        if isinstance(value, Mapping):
            tags += (f"{key}={item}" for key, item in value.items() if isinstance(item, str | int | float))
        else:
            listed = value if isinstance(value, list) else [value] if isinstance(value, str) else []
            tags += (str(item) for item in listed if isinstance(item, str | int | float))
    return tuple(dict.fromkeys(tags))


def _suite(
    test: Parts, raw: RawTest, metadata: Mapping[str, Any], tags: Sequence[str], sources: Sources
) -> Suite | None:
    """Return the suite that `suite`, `metadata.suite`, a tag or else the folder names; others are other tools'."""
    folder = find_suite(raw.runtime.file)
    roots = (raw.context.root, raw.runtime.root)
    names = [test.value("suite"), metadata.get("suite"), *(root.value("suite") for root in roots), *tags]
    named = next((SUITES[name] for name in names if isinstance(name, str) and name in SUITES), None)
    if named is not None and folder is not None and named is not folder and raw.context is raw.runtime:
        sources.refuse(test.node, f"the file lies in the folder of {folder!s}; move it or write `suite: {folder!s}`")
    return named or folder
