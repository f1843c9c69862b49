"""Graders that ask a judge model, and those that are programs."""

from passgate.tasks.formats.evals.map.commands import command_parts
from passgate.tasks.formats.evals.map.forms import LIST, MAPPING, NUMBER, TEXT, WHOLE, Draft, Form
from passgate.tasks.formats.evals.map.prompt_text import prompt_parts
from passgate.tasks.formats.evals.map.reading import Reading
from passgate.tasks.formats.evals.map.rubric_items import read_criteria
from passgate.tasks.formats.evals.read.node import Key, Keys, Node, Parts
from passgate.tasks.model.assertions import CodeGrader, LlmGrader, Rubrics

_PROMPT = Key((*TEXT, *MAPPING), spellings=("rubric_prompt",))
_TARGET = Key((*TEXT, *MAPPING), spellings=("provider",))
_SETTINGS = {"temperature": NUMBER, "max_steps": WHOLE, "model": TEXT}
"""Keys that are the same as in `config`."""
_JUDGE_KEYS: Keys = {
    "prompt": _PROMPT,
    "target": _TARGET,
    "min_score": Key(NUMBER, spellings=("threshold",)),
    "config": Key(MAPPING, says="Settings of the judge in the tool that the file was written for."),
    "preprocessors": Key(says="What turns files into text for the judge; passgate has none."),
    "transform": Key(says="What turns the answer into text for the judge; passgate has none."),
    **{name: Key(kinds, says="The same as in `config`.") for name, kinds in _SETTINGS.items()},
}
_ITEMS_SAY = "The items of a rubric; with them the grader is one of type `rubrics`."
_LLM_KEYS: Keys = {
    **_JUDGE_KEYS,
    "criteria": Key((*TEXT, *LIST), spellings=("value",), says=f"What is asked for, or: {_ITEMS_SAY}"),
    "rubrics": Key(LIST, says=_ITEMS_SAY),
}
_RUBRIC_KEYS: Keys = {
    **_JUDGE_KEYS,
    "criteria": Key(LIST, spellings=("rubrics", "value", "items"), needed=True, says="The items."),
}
_CODE_KEYS: Keys = {
    "command": Key((*TEXT, *LIST), spellings=("script",), needed=True),
    "cwd": Key(TEXT),
    "config": Key(MAPPING),
    "target": Key(says="Asks for a proxy of model calls, which passgate does not have."),
    "timeout_seconds": Key(NUMBER, says="How long it may take."),
}


def _llm(parts: Parts, reading: Reading) -> Draft:
    criteria, rubrics = parts.get("criteria"), parts.get("rubrics")
    if rubrics is not None and criteria is not None and isinstance(criteria.value, list):
        reading.refuse(rubrics, f"{criteria.path[-1]!r} holds the items of the rubric too; keep one", at_key=True)
    items = rubrics or criteria
    if items is not None and isinstance(items.value, list):
        return _rubric_of(items, parts, reading)
    options = _judge_options(parts, reading)
    settings = parts.only("config", *_SETTINGS)
    if settings:
        options["config"] = parts.node.with_value(_settings(parts))
    return Draft(LlmGrader, "llm_grader", options | parts.only("criteria"))


def _settings(parts: Parts) -> dict[str, object]:
    config = parts.value("config", {})
    beside = {name: part.value for name, part in parts.only(*_SETTINGS).items()}
    return {**config, **beside} if isinstance(config, dict) else beside


def _rubrics(parts: Parts, reading: Reading) -> Draft:
    items = parts.get("criteria")
    if items is None or not isinstance(items.value, list):
        return Draft(Rubrics, "rubrics", {})
    return _rubric_of(items, parts, reading)


def _rubric_of(items: Node, parts: Parts, reading: Reading) -> Draft:
    options = _judge_options(parts, reading)
    options.pop("prompt_file", None)
    criteria = read_criteria(items, reading.complaints)
    return Draft(Rubrics, "rubrics", {**options, "criteria": items.with_value(criteria)})


def _judge_options(parts: Parts, reading: Reading) -> dict[str, Node]:
    for name in ("preprocessors", "transform"):
        part = parts.get(name)
        if part is not None:
            reading.cannot_run(part, f"passgate has no {name!r} for judges")
    prompt, target = parts.get("prompt"), parts.get("target")
    options = prompt_parts(prompt, reading) if prompt is not None else {}
    if target is not None:
        options["target"] = target.with_value(_target_name(target.value))
    return options


def _target_name(target: object) -> str:
    """A judge by its name, where it is described on the spot too."""
    if not isinstance(target, dict):
        return str(target)
    return str(target.get("id") or target.get("label") or target.get("name") or "inline")


def _code(parts: Parts, reading: Reading) -> Draft:
    options = parts.only("timeout_seconds")
    command, target = parts.get("command"), parts.get("target")
    if target is not None and target.value is not False:
        reading.cannot_run(target, "a proxy for the model calls of a grader is not to be had")
    if command is not None and isinstance(command.value, str | list):
        options |= command_parts(command, _text_only(parts.get("cwd")), reading)
    return Draft(CodeGrader, "code_grader", options | program_config(parts))


def program_config(parts: Parts) -> dict[str, Node]:
    """The `config` of a program that grades: its own, and the keys that the table does not know."""
    config = parts.value("config", {})
    further = {name: part.value for name, part in parts.further.items() if part.value is not None}
    if not isinstance(config, dict) or not (config or further):
        return {}
    return {"config": parts.node.with_value({**further, **config})}


def _text_only(node: Node | None) -> Node | None:
    return node if node is not None and isinstance(node.value, str) and node.value else None


JUDGE_FORMS = (
    Form(
        ("llm_grader", "llm_judge", "llm_rubric"),
        LlmGrader,
        _LLM_KEYS,
        _llm,
        ("llm_judge",),
        later=("llm_rubric",),
    ),
    Form(("rubrics", "rubric"), Rubrics, _RUBRIC_KEYS, _rubrics, ("rubric", "rubrics")),
    Form(
        ("code_grader", "code_judge", "script", "code"),
        CodeGrader,
        _CODE_KEYS,
        _code,
        ("code_judge",),
        later=("script",),
        further=True,
    ),
)
