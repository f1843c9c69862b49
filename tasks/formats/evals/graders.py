"""Lists of graders of eval files, in every spelling of every dialect, and graders that contain such lists."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast, get_args

from passgate.tasks.formats.evals.computed_forms import ANSWER_FORMS, TRIAL_FORMS
from passgate.tasks.formats.evals.documents import is_file
from passgate.tasks.formats.evals.forms import NATIVE_FORMS, DescribedWords, Form, GraderWords, Options, place_paths
from passgate.tasks.formats.evals.judges import JUDGE_FORMS, build_rubric, prompt_parts
from passgate.tasks.formats.evals.messages import Variables
from passgate.tasks.formats.evals.node import Node, as_items
from passgate.tasks.formats.evals.programs import PROGRAM_FORMS, command_parts, custom_assertion
from passgate.tasks.formats.evals.words import (
    EvalWords,
    Parts,
    Sources,
    build,
    present,
    problem_in,
    snake_case,
    take_apart,
    word,
)
from passgate.tasks.formats.findings import Finding
from passgate.tasks.formats.folder import TEMPLATES_FOLDER
from passgate.tasks.formats.rules import grader_findings, option_findings
from passgate.tasks.formats.schema_check import nearest, shown
from passgate.tasks.model.base import Amount, Share, Text
from passgate.tasks.model.grader_options import AssertionOptions
from passgate.tasks.model.graders import GRADER_TYPES, Aggregator, Grader, TurnGraders

# Other names of aggregators.
AGGREGATOR_NAMES = {
    **dict.fromkeys(("code_judge", "script"), "code_grader"),
    **dict.fromkeys(("llm_judge", "llm_rubric"), "llm_grader"),
}
AGGREGATORS = get_args(Aggregator.model_fields["type"].annotation)


class AggregatorWords(EvalWords):
    """How the scores of members become one."""

    type: str = word("How the scores become one.", needed=True)
    weights: dict[str, Amount] = word("Weights by the names of members.")
    required: list[Text] = word("Names of members that must pass.")
    threshold: Share = word("For `all_or_nothing` and `threshold`.")
    command: str | list[Text] = word("A program that makes one score.", "command", "path", "script")
    cwd: str = word("Where the program runs.")
    prompt: str = word("What a judge is asked.")
    target: str = word("See `llm_grader`.", "target", "model", "provider")


class CompositeWords(DescribedWords):
    """Graders that count as one."""

    assertions: list[Any] = word("The members.", "assertions", "assert", "evaluators", needed=True)
    aggregator: dict[str, Any] = word("How their scores become one; their weighted average when not given.")
    threshold: Share = word("The least score that passes.")


class TurnsWords(DescribedWords):
    """Graders for each answer of a conversation."""

    turns: list[dict[str, Any]] = word("Graders for each answer.", needed=True)
    conversation: list[Any] = word("Graders of the whole conversation.")
    aggregation: Literal["mean", "min", "max"] = word("How the scores of the turns become one.")
    on_turn_failure: Literal["continue", "stop"] = word("Whether a conversation goes on.")


class TemplateInclude(EvalWords):
    """A template of assertions."""

    include: str = word("Its name or path.", needed=True)


class Template(EvalWords):
    """A file of assertions."""

    UNUSED = ("name", "description", "version")

    assertions: list[Any] = word("Graders.", "assertions", "assert", "evaluators", needed=True)


# Types of assertions that other tools have and passgate does not.
_FOREIGN = {
    *("agent_rubric", "answer_relevance", "bleu", "classifier", "contains_html", "contains_json", "contains_sql"),
    *("contains_xml", "context_faithfulness", "context_recall", "context_relevance", "conversation_relevance"),
    *("factuality", "finish_reason", "g_eval", "gleu", "guardrails", "human", "inline_assert", "is_html"),
    *("is_refusal", "is_sql", "is_valid_function_call", "is_valid_openai_function_call"),
    *("is_valid_openai_tools_call", "is_xml", "levenshtein", "max_score", "meteor", "model_graded_closedqa"),
    *("model_graded_factuality", "moderation", "perplexity", "perplexity_score", "pi", "rouge_l", "rouge_n"),
    *("rouge_s", "search_rubric", "select_best", "similar", "tool_call_f1", "trace_error_spans"),
    *("trace_span_count", "trace_span_duration", "webhook"),
}
# What does the same here, where it is not a program that gives a score.
_IN_PLACE = {
    **dict.fromkeys(("agent_rubric", "g_eval", "factuality", "answer_relevance", "similar"), "llm-rubric"),
    **dict.fromkeys(("model_graded_closedqa", "model_graded_factuality"), "llm-rubric"),
    **dict.fromkeys(("contains_json", "is_valid_openai_tools_call", "is_valid_function_call"), "javascript"),
    "tool_call_f1": "trajectory:tool-sequence",
    "trace_span_count": "trajectory:step-count",
    "inline_assert": "javascript",
}
NO_TRANSFORM = "passgate transforms no answers: let a `script` grader read the answer as it is"
_TRANSFORMS = frozenset({"transform", "postprocess", "preprocessors"})
_FAMILIES = ("similar:", "promptfoo:")
GRADER_LISTS = ("assert", "assertions", "evaluators")
_NOT = "not_"
MAX_TEMPLATE_DEPTH = 3  # AgentV reads templates inside templates as deep as this
_TEMPLATE_SUFFIXES = (".yaml", ".yml")


class Graders(NamedTuple):
    """The graders of a test or a file."""

    all: tuple[Grader, ...]
    said: bool  # whether it lists any, right or wrong


def read_own_graders(parts: Parts, variables: Variables, sources: Sources) -> Graders:
    """Return the graders of a test or a file. Lists under several names or in several places must be the same."""
    rubrics, execution = parts.get("rubrics"), parts.get("execution")
    rubric, items = None, None if rubrics is None else variables.fill_graders(rubrics)
    if items is not None and not sources.refuses_type(items, list):
        rubric = build_rubric(list(items.items()), items, sources)
    inner = [execution.get(name) for name in GRADER_LISTS] if execution is not None else []
    listed = sources.agree(present((parts.get("assertions"), *inner)))
    graders = () if listed is None else read_list(listed, variables, sources)
    is_said = rubrics is not None or bool(listed and listed.value) or bool(parts.wrong & {"assertions", "rubrics"})
    return Graders((*present([rubric]), *graders), said=is_said)


def read_list(listed: Node, variables: Variables, sources: Sources) -> tuple[Grader, ...]:
    """Return the graders of a list with the variables of a test filled in."""
    return read_graders(variables.fill_graders(listed), replace(sources, one_judge=variables.is_template))


def read_graders(node: Node, sources: Sources) -> tuple[Grader, ...]:
    """Return the graders of a list (`assert`, `assertions`, `evaluators`) in its order, those of its templates among
    them. All plain texts of a list are one grader: a rubric, or one judge. What is wrong goes to the complaints, and
    then graders may be missing from the answer.
    """
    if sources.refuses_type(node, list):
        return ()
    found = list(_entries(node, sources))
    texts = [item for item, _ in found if isinstance(item.value, str)]
    graders: list[Grader | None] = []
    for item, inner in found:
        if not isinstance(item.value, str):
            graders.append(_read_one(item, inner))
        elif item is texts[0] and inner.one_judge:
            # In files with prompts, AgentV gives all texts to one judge, for one score.
            criteria = "\n".join(text.value.strip() for text in texts)
            graders.append(_build_grader(item, {}, inner, type="llm_grader", criteria=criteria, weight=len(texts)))
        elif item is texts[0]:
            graders.append(build_rubric(texts, item, inner, weight=len(texts)))
    return present(graders)


def _entries(node: Node, sources: Sources) -> Iterator[tuple[Node, Sources]]:
    """Yield the entries of a list, each with its sources; those of a template in the place of its include."""
    for item in node.items():
        if not isinstance(item.value, dict) or "include" not in item.value:
            yield item, sources
            continue
        parts = take_apart(item, TemplateInclude, sources)
        if not parts.sound:
            continue
        before = len(sources.complaints.problems)
        file, opened = _template(parts.values["include"], sources), sources.templates
        if file is None:
            # An include whose file is missing stays as it is. A complaint already says that the test cannot run.
            if len(sources.complaints.problems) == before:
                yield item, sources
        elif file in opened:
            chain = " -> ".join(part.name for part in (*opened[opened.index(file) :], file))
            sources.refuse(item, f"the templates include each other: {chain}")
        elif len(opened) >= MAX_TEMPLATE_DEPTH:
            sources.refuse(item, f"templates are nested deeper than {MAX_TEMPLATE_DEPTH}")
        elif (root := sources.documents.read(file)) and (listed := _template_list(root, sources)):
            yield from _entries(listed, replace(sources, templates=(*opened, file)))


def _template_list(root: Node, sources: Sources) -> Node | None:
    if sources.refuses_type(root, list, dict, context="a template holds 'assertions': "):
        return None
    if isinstance(root.value, list):
        return root
    parts = take_apart(root, Template, sources)
    return parts.get("assertions") if parts.sound else None


def _template(node: Node, sources: Sources) -> Path | None:
    name = node.value
    if "/" in name or "\\" in name or name.endswith(_TEMPLATE_SUFFIXES):
        return sources.path(node, name)
    folders = sources.ground.upwards(node.folder)
    candidates = (folder / TEMPLATES_FOLDER / f"{name}{suffix}" for folder in folders for suffix in _TEMPLATE_SUFFIXES)
    file = sources.ground.first_existing(candidates, is_file)
    if file is None:
        sources.cannot_run(node, f"no template {TEMPLATES_FOLDER}/{name}.yaml here or in a folder above")
    return file


def _read_one(node: Node, sources: Sources) -> Grader | None:
    if sources.refuses_type(node, dict, str):
        return None
    if "include" in node.value:
        return _build_grader(node, {}, sources, type="unavailable", kind="include", options=node.value)
    kind = node.get("type")
    if kind is None:
        sources.refuse(node, "the key 'type' is missing")
    if kind is None or sources.refuses_type(kind, str):
        return None
    form, negated = _form(kind, sources)
    if form is None:
        return _formless_grader(node, kind, negated, sources)
    transforms = sorted(_TRANSFORMS & node.value.keys() - form.words.model_fields.keys())
    for key in transforms:
        sources.cannot_run(node.child(key), NO_TRANSFORM, at_key=True)
    node = node.with_value({key: value for key, value in node.value.items() if key not in transforms})
    parts = take_apart(node, form.words, sources, further=form.further)
    before = len(sources.complaints.problems)
    options = {**form.options(parts, sources), **_base(parts, negated, sources)}
    if not parts.sound or len(sources.complaints.problems) > before:
        return None
    return _build_grader(node, options, sources)


def _build_grader(node: Node, options: Options, sources: Sources, /, **values: Any) -> Grader | None:
    # The values have no keys of their own in the file, so their problems are reported at the node.
    options |= {name: node.with_value(value) for name, value in values.items()}
    grader = cast("Grader | None", build(GRADER_TYPES[options["type"].value], options, node, sources))
    if grader is None:
        return None
    found: list[Finding]
    if isinstance(grader, AssertionOptions):
        # Their files are looked for where the options are read: a missing one keeps the test from running.
        found = [*option_findings(grader)]
    else:
        grader = place_paths(grader, node.folder, sources)
        found = [*grader_findings(grader, sources.ground.suites_folder)]
    sources.complaints.problems += [problem_in(node, options, path, message) for path, message in found]
    return None if found else grader


def _form(kind: Node, sources: Sources) -> tuple[Form | None, bool]:
    """Return the form of a grader by its type, and whether the type begins with `not-`."""
    written, name = kind.value, snake_case(kind.value)
    negated = name.startswith(_NOT)
    # A program of the repository cannot take the name of a known type.
    known = _BY_NAME.get(name.removeprefix(_NOT))
    if known is not None:
        return known, negated
    own = custom_assertion(kind, written, sources.ground)
    if own is not None or not negated:
        return own, False  # the program's own name may begin with `not-`
    return custom_assertion(kind, written[len(_NOT) :], sources.ground), True


def _formless_grader(node: Node, kind: Node, negated: bool, sources: Sources) -> Grader | None:
    written = kind.value
    name = snake_case(written).removeprefix(_NOT)
    if name not in _FOREIGN and not name.startswith(_FAMILIES):
        known = [*_BY_NAME] if "_" in written else [form.replace("_", "-") for form in _BY_NAME]
        sources.refuse(kind, f"unknown evaluator {written!r}{nearest(written, known)}")
        return None
    instead = _IN_PLACE.get(name.partition(":")[0], "script")
    sources.cannot_run(kind, f"passgate has no evaluator {written!r}; write `{instead}` instead")
    own = {name: value for name, value in node.value.items() if snake_case(name) in GraderWords.model_fields}
    parts = take_apart(node.with_value(own), GraderWords, sources)
    base = _base(parts, negated, sources)
    if not parts.sound:
        return None
    further = {name: value for name, value in node.value.items() if name not in own}
    return _build_grader(node, base, sources, type="unavailable", kind=written, options=further)


def _base(parts: Parts, negated: bool, sources: Sources) -> Options:
    """Return the options that every grader has; `required: 0.7` and `not-` set some of them too."""
    base = parts.only("weight", "min_score", "negate", "required")
    name = parts.get("name") or parts.get("metric") or parts.get("id")
    if name is not None:
        base["name"] = name
    if negated and parts.value("negate") is True:
        sources.refuse(parts.values["negate"], "the type says 'not' already; keep one of them", at_key=True)
    elif negated:
        base["negate"] = parts.node.with_value(True)
    required = base.get("required")
    if required is not None and type(required.value) in {int, float}:
        least = base.setdefault("min_score", required)
        if least.value != required.value:
            sources.refuse(required, "'required' as a number and 'min_score' differ; keep one of them", at_key=True)
        base["required"] = required.with_value(True)
    return base


def _composite(parts: Parts, sources: Sources) -> Options:
    options = parts.only("threshold")
    type_name = snake_case(str(parts.value("type"))).removeprefix(_NOT)
    if not options and type_name == "assert_set":  # without a threshold all its members must pass
        options["threshold"] = parts.node.with_value(1.0)
    members, aggregator = parts.get("assertions"), parts.get("aggregator")
    if members is not None and isinstance(members.value, list):
        options["assertions"] = members.with_value(read_graders(members, sources))
    if aggregator is not None and isinstance(aggregator.value, dict):
        read = _aggregator(aggregator, sources)
        if read is not None:
            options["aggregator"] = aggregator.with_value(read)
    return options


def _aggregator(node: Node, sources: Sources) -> Aggregator | None:
    parts = take_apart(node, AggregatorWords, sources)
    if not parts.sound:
        return None
    kind = snake_case(parts.values["type"].value)
    kind = AGGREGATOR_NAMES.get(kind, kind)
    if kind not in AGGREGATORS:
        message = f"{shown(kind)} is not one of the allowed values{nearest(kind, AGGREGATORS)}"
        sources.refuse(parts.values["type"], message)
        return None
    options = {"type": parts.values["type"].with_value(kind), **parts.only("weights", "required", "threshold")}
    command, prompt = parts.get("command"), parts.get("prompt")
    if command is not None:
        options |= command_parts(command, parts.get("cwd"), sources)
    if prompt is not None:
        options["prompt"] = prompt_parts(prompt, sources).get("prompt", prompt)
    return build(Aggregator, options, node, sources)


def _turns(parts: Parts, sources: Sources) -> Options:
    options = parts.only("aggregation", "on_turn_failure")
    turns, conversation = parts.get("turns"), parts.get("conversation")
    if turns is not None:
        read: list[Any] = []
        for item in as_items(turns):
            # A turn of the wrong shape stays as it is: the model reports it.
            if isinstance(item.value, dict) and not set(item.value) - {"assertions", "expected_output"}:
                listed = item.get("assertions")
                graders = () if listed is None else read_graders(listed, sources)
                read.append(TurnGraders(assertions=graders, expected_output=item.value.get("expected_output")))
            else:
                read.append(item.value)
        options["turns"] = turns.with_value(read)
    if conversation is not None and isinstance(conversation.value, list):
        options["conversation"] = conversation.with_value(read_graders(conversation, sources))
    return options


# The JSON Schemas list them in this order.
FORMS: tuple[Form, ...] = (
    *(*ANSWER_FORMS, *JUDGE_FORMS, *PROGRAM_FORMS),
    Form(("composite", "assert_set"), CompositeWords, _composite, ("composite",)),
    *(*TRIAL_FORMS, *NATIVE_FORMS),
    Form(("turns",), TurnsWords, _turns),
)
_BY_NAME: dict[str, Form] = {name: form for form in FORMS for name in form.names}
