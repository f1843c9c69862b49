"""Graders that ask a judge model: their settings, their prompts, and the items of rubrics."""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import Field

from passgate.tasks.formats.evals.documents import FILE_SCHEME
from passgate.tasks.formats.evals.forms import DescribedWords, Form, Options
from passgate.tasks.formats.evals.node import Node
from passgate.tasks.formats.evals.sources import Sources, present
from passgate.tasks.formats.evals.words import AS_WHOLE, EvalWords, Parts, Whole, build, take_apart, word
from passgate.tasks.formats.schema_check import wrong_type
from passgate.tasks.model.assertions import Criterion, LlmGrader, Rubrics, ScoreRange
from passgate.tasks.model.base import Amount, Share, Text
from passgate.tasks.model.graders import Composite, Grader

HIGHEST = 10  # points go from 0 to 10


class RubricItem(EvalWords):
    """An item of a rubric."""

    id: Text = word("Its name in reports, unique in the rubric.")
    outcome: Text = word("What must be so.", "outcome", "criteria", "expected_outcome", "description")
    weight: Amount = word("Its part in the score.")
    required: bool = word("The trial fails when it is not met.")
    min_score: Share = word("The least share of its 10 points that meets it, with `score_ranges`.")
    required_min_score: Annotated[float, Field(ge=0, le=HIGHEST)] = word(
        "The least of its 10 points that meets it; without it the trial fails."
    )
    score_ranges: dict[str, Any] | list[Any] = word(
        "What the points from 0 to 10 mean: by the lowest of each span, or as a list of spans."
    )
    operator: Literal["correctness", "contradiction"] = word(
        "`contradiction`: met unless the answer contradicts `outcome`."
    )


class ScoreSpan(EvalWords):
    """A span of points."""

    score_range: list[Annotated[int, Field(ge=0, le=HIGHEST), AS_WHOLE]] = word(
        "The lowest and the highest of the points.", needed=True
    )
    outcome: Text = word("What they mean.", "outcome", "expected_outcome", "description", needed=True)


_SETTINGS = ("temperature", "max_steps", "model")  # keys that are the same as in `config`
_ITEMS_SAY = "The items of a rubric; with them the grader is one of type `rubrics`."


class JudgeWords(DescribedWords):
    """A judge model."""

    prompt: str | dict[str, Any] = word("What the judge is asked, or the path of a file.", "prompt", "rubric_prompt")
    target: str | dict[str, Any] = word("The judge in the other tool.", "target", "provider")
    min_score: Share = word("The least score that passes it, instead of 0.8.", "min_score", "threshold")
    config: dict[str, Any] = word("Settings of the judge in the tool that the file was written for.")
    preprocessors: Any = word("What turns files into text for the judge; passgate has none.")
    transform: Any = word("What turns the answer into text for the judge; passgate has none.")
    temperature: float = word("The same as in `config`.")
    max_steps: Whole = word("The same as in `config`.")
    model: str = word("The same as in `config`.")


class LlmWords(JudgeWords):
    """A judge model scores the trial."""

    criteria: str | list[Any] = word(f"What is asked for, or: {_ITEMS_SAY}", "criteria", "value")
    rubrics: list[Any] = word(_ITEMS_SAY)


class RubricWords(JudgeWords):
    """A judge model marks the items of a rubric."""

    criteria: list[Any] = word("The items.", "criteria", "rubrics", "value", "items", needed=True)


_NO_PROGRAM = "a prompt that a program makes is not to be had; write the text, with {{ }} for what changes"
_POINTS = re.compile("0?[0-9]|10")
_RUBRICS = re.compile(r"\{\{\s*rubrics?\s*\}\}")
_PREFIXES = ("./", "../", "/", FILE_SCHEME)
_FILE_NAME = re.compile(
    r"\S+\.(md|markdown|txt|text|prompt|j2|jinja|jinja2|njk|hbs|mustache|ya?ml|json)", re.IGNORECASE
)
_PROGRAM = re.compile(r".+\.([cm]?[jt]s|py|sh|rb)(:\w+)?", re.IGNORECASE)


def _llm(parts: Parts, sources: Sources) -> Options:
    criteria, rubrics = parts.get("criteria"), parts.get("rubrics")
    if rubrics is not None and criteria is not None and isinstance(criteria.value, list):
        sources.refuse(rubrics, f"{criteria.path[-1]!r} holds the items of the rubric too; keep one", at_key=True)
    items = rubrics or criteria
    if items is not None and isinstance(items.value, list):
        return {"type": parts.node.with_value("rubrics"), **_rubrics(parts, sources, items)}
    options = _judge_options(parts, sources)
    if parts.only("config", *_SETTINGS):
        config = parts.value("config", {})
        beside = {name: part.value for name, part in parts.only(*_SETTINGS).items()}
        options["config"] = parts.node.with_value({**config, **beside} if isinstance(config, dict) else beside)
    return options | parts.only("criteria")


def _rubrics(parts: Parts, sources: Sources, said: Node | None = None) -> Options:
    items = said or parts.get("criteria")
    if items is None or not isinstance(items.value, list):
        return {}
    options = _judge_options(parts, sources)
    options.pop("prompt_file", None)
    return {**options, "criteria": items.with_value(read_criteria(list(items.items()), items, sources))}


def _judge_options(parts: Parts, sources: Sources) -> Options:
    for name, part in parts.only("preprocessors", "transform").items():
        sources.cannot_run(part, f"passgate has no {name!r} for judges: let a `script` grader read the answer")
    prompt, target = parts.get("prompt"), parts.get("target")
    options = prompt_parts(prompt, sources) if prompt is not None else {}
    if target is not None:
        name = target.value
        if isinstance(name, dict):  # the grader describes its judge itself
            name = name.get("id") or name.get("label") or name.get("name") or "inline"
        options["target"] = target.with_value(str(name))
    return options


def prompt_parts(node: Node, sources: Sources) -> Options:
    """Return a prompt as the options `prompt`, its text, and `prompt_file` where it comes from one. What looks like a
    path is one. There is no text where a file is missing or a program makes it, which keeps the test from running.
    """
    if not isinstance(node.value, str):
        sources.cannot_run(node, _NO_PROGRAM)
        return {}
    if not names_file(node.value):
        return {"prompt": node}
    if _PROGRAM.fullmatch(node.value):
        sources.cannot_run(node, f"{_NO_PROGRAM}: {node.value!r}")
        return {}
    path, text = sources.text(node, node.value.removeprefix(FILE_SCHEME), called=node.value)
    return {} if text is None else {"prompt": node.with_value(text), "prompt_file": node.with_value(path)}


def with_prompt(graders: Sequence[Grader], prompt: Options) -> tuple[Grader, ...]:
    """Return the graders with a prompt, the options of `prompt_parts`, where they ask a judge and have none of their
    own.
    """
    text = {name: part.value for name, part in prompt.items()}
    changed: list[Grader] = []
    for grader in graders:
        if isinstance(grader, Composite):
            members = with_prompt(grader.assertions, prompt)
            changed.append(grader.model_copy(update={"assertions": members}))
        elif isinstance(grader, LlmGrader) and not grader.prompt and "prompt" in text:
            own = _RUBRICS.sub("{{ criteria }}", text["prompt"])  # without items they are the criteria
            changed.append(grader.model_copy(update={**text, "prompt": own, "prompt_file": None}))
        elif isinstance(grader, Rubrics) and not grader.prompt and "prompt" in text:
            changed.append(grader.model_copy(update={"prompt": text["prompt"]}))
        else:
            changed.append(grader)
    return tuple(changed)


def names_file(text: str) -> bool:
    """Whether a text is the path of a file and not a prompt."""
    if "\n" in text or "{{" in text:
        return False
    return text.startswith(_PREFIXES) or _FILE_NAME.fullmatch(text) is not None


def read_criteria(items: Sequence[Node], node: Node, sources: Sources) -> tuple[Criterion, ...]:
    """Return the items of a rubric. Those without an `id` are `rubric-1` and so on, by their place in the list. What is
    wrong goes to the complaints, that there are none at `node`, and then items may be missing.
    """
    if not items:
        sources.refuse(node, "invalid rubric: must not be empty")
    criteria: dict[str, Criterion] = {}
    for number, item in enumerate(items, 1):
        criterion = _criterion(item, f"rubric-{number}", sources)
        if criterion is not None and criteria.setdefault(criterion.id, criterion) is not criterion:
            sources.refuse(item, f"invalid rubric: the id {criterion.id!r} stands here a second time")
    return tuple(criteria.values())


def rubric_of(items: Sequence[Node], node: Node, sources: Sources, weight: int = 1) -> Rubrics | None:
    """Return the grader with these items. `None` when something is wrong; the complaints say what."""
    before = len(sources.complaints.problems)
    criteria = read_criteria(items, node, sources)
    if len(sources.complaints.problems) > before:
        return None
    return Rubrics(type="rubrics", criteria=criteria, weight=weight)


def _criterion(item: Node, default_id: str, sources: Sources) -> Criterion | None:
    if sources.refuses_type(item, str, dict, context="invalid rubric: "):
        return None
    own_id = {"id": item.with_value(default_id)}
    if isinstance(item.value, str):
        return build(Criterion, {**own_id, "outcome": item}, item, sources.complaints)
    parts = take_apart(item, RubricItem, sources.complaints)
    fields = {**own_id, **parts.only("id", "outcome", "weight", "required", "operator"), **_least(parts, sources)}
    ranges = parts.get("score_ranges")
    if ranges is not None and isinstance(ranges.value, (dict, list)):  # anything else was refused with the keys
        fields["score_ranges"] = ranges.with_value(_ranges(ranges, sources))
    return build(Criterion, fields, item, sources.complaints) if parts.sound else None


def _least(parts: Parts, sources: Sources) -> Options:
    # `min_score` is a share of 1. `required_min_score` counts points and means `required` too, unless the file says no.
    share, points = parts.get("min_score"), parts.get("required_min_score")
    if points is None:
        return {"min_score": share} if share is not None else {}
    if share is not None and share.value != points.value / HIGHEST:
        message = "'min_score' (of 1) and 'required_min_score' (of 10) differ; keep one of them"
        sources.refuse(points, message, at_key=True)
    required = {} if parts.get("required") else {"required": points.with_value(True)}
    return {"min_score": points.with_value(points.value / HIGHEST), **required}


def _ranges(node: Node, sources: Sources) -> tuple[ScoreRange, ...]:
    """Return the spans of points in order. They must cover 0 to 10 without overlap."""
    before = len(sources.complaints.problems)
    of_list = isinstance(node.value, list)
    spans = [_span(item, sources) for item in node.items()] if of_list else _from_bounds(node, sources)
    ranges = sorted(present(spans), key=lambda span: span.low)
    # A span that cannot be read leaves a gap. That is no second problem.
    message = _gap(ranges) if len(sources.complaints.problems) == before else ""
    if message:
        sources.refuse(node, f"invalid rubric: {message}")
    return tuple(ranges)


def _gap(ranges: Sequence[ScoreRange]) -> str:
    """Why sorted spans do not cover 0 to 10; empty when they do."""
    expected = 0
    for span in ranges:
        if span.high < span.low:
            return f"the span from {span.low} to {span.high} is empty"
        if span.low != expected:
            start = "the score ranges must start at 0" if expected == 0 else f"the next must start at {expected}"
            return f"{start}, not at {span.low}"
        expected = span.high + 1
    return "" if expected == HIGHEST + 1 else f"the score ranges must go up to {HIGHEST}"


def _span(item: Node, sources: Sources) -> ScoreRange | None:
    if sources.refuses_type(item, dict, context="invalid rubric: "):
        return None
    parts = take_apart(item, ScoreSpan, sources.complaints)
    span = parts.get("score_range")
    if not parts.sound or span is None:
        return None
    if len(span.value) != 2:
        sources.refuse(span, "invalid rubric: expected the lowest and the highest score")
        return None
    fields = {"low": span.child(0), "high": span.child(1), **parts.only("outcome")}
    return build(ScoreRange, fields, item, sources.complaints)


def _from_bounds(node: Node, sources: Sources) -> list[ScoreRange | None]:
    bounds: dict[int, Node] = {}
    for key in node.value:
        part, bound = node.child(key), str(key)
        message = wrong_type(part.value, str)
        if _POINTS.fullmatch(bound) is None:
            message = f"invalid rubric: a score range is named by a whole number from 0 to {HIGHEST}, not {bound!r}"
        elif message is None and bounds.setdefault(int(bound), part) is not part:
            message = f"invalid rubric: the score {int(bound)} stands here a second time"
        if message is not None:
            sources.refuse(part, message, at_key=True)
    spans = []
    # A span is named by its lowest point and ends where the next begins.
    for low, following in pairwise([*sorted(bounds), HIGHEST + 1]):
        fields = {"low": node.with_value(low), "high": node.with_value(following - 1), "outcome": bounds[low]}
        spans.append(build(ScoreRange, fields, bounds[low], sources.complaints))
    return spans


JUDGE_FORMS = (
    Form(("llm_grader", "llm_judge", "llm_rubric"), LlmWords, _llm, ("llm_judge",)),
    Form(("rubrics", "rubric"), RubricWords, _rubrics, ("rubric", "rubrics")),
)
