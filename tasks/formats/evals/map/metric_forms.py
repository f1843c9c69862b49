"""Graders of what a trial used, and of the skills that it used."""

from collections.abc import Sequence

from passgate.tasks.formats.evals.map.forms import NUMBER, TEXT, TRUTH, WHOLE, Draft, Drafting, Form, plain
from passgate.tasks.formats.evals.map.reading import Reading
from passgate.tasks.formats.evals.read.node import Key, Keys, Parts
from passgate.tasks.model.assertions import AssertionOptions, Cost, ExecutionMetrics, Latency, SkillTrigger, TokenUsage

_LIMITS: Keys = {
    "max_tool_calls": Key(WHOLE, says="The most tool calls."),
    "max_llm_calls": Key(WHOLE, says="The most calls of models."),
    "max_tokens": Key(WHOLE),
    "max_input_tokens": Key(WHOLE, says="The most tokens into the model."),
    "max_output_tokens": Key(WHOLE, says="The most tokens out of the model."),
    "max_cost_usd": Key(NUMBER, says="The most US dollars."),
    "max_duration_ms": Key(NUMBER, says="The most milliseconds."),
    "target_exploration_ratio": Key(NUMBER),
}
_TOKENS: Keys = {
    "max_total": Key(WHOLE),
    "max_input": Key(WHOLE, says="The most tokens into the model."),
    "max_output": Key(WHOLE, says="The most tokens out of the model."),
}


def _limited(model: type[AssertionOptions], type_name: str, limits: Sequence[str]) -> Drafting:
    """A grader that needs at least one limit."""

    def draft(parts: Parts, reading: Reading) -> Draft:
        if parts.sound and not parts.only(*limits):
            reading.refuse(parts.node, f"{type_name} cannot fail: give at least one of {', '.join(limits)}")
        return plain(model, type_name)(parts, reading)

    return draft


def _skill(any_call: bool) -> Drafting:
    def draft(parts: Parts, reading: Reading) -> Draft:
        options = parts.only("skill", "should_trigger", "any_call")
        options.setdefault("any_call", parts.node.with_value(any_call))
        return Draft(SkillTrigger, "skill_trigger", options)

    return draft


_SKILL_KEYS: Keys = {
    "skill": Key(TEXT, spellings=("value",), needed=True, says="The skill's name."),
    "should_trigger": Key(TRUTH, says="Whether it is to be used."),
    "any_call": Key(TRUTH),
}

METRIC_FORMS = (
    Form(
        ("execution_metrics",),
        ExecutionMetrics,
        {**_LIMITS, "exploration_tolerance": Key(NUMBER, says="How far the ratio may be off.")},
        _limited(ExecutionMetrics, "execution_metrics", tuple(_LIMITS)),
        ("execution_metrics",),
    ),
    Form(
        ("latency",),
        Latency,
        {"threshold": Key(NUMBER, spellings=("max_ms",), needed=True)},
        plain(Latency, "latency"),
    ),
    Form(("cost",), Cost, {"budget": Key(NUMBER, spellings=("threshold",), needed=True)}, plain(Cost, "cost")),
    Form(("token_usage",), TokenUsage, _TOKENS, _limited(TokenUsage, "token_usage", tuple(_TOKENS))),
    Form(("skill_trigger",), SkillTrigger, _SKILL_KEYS, _skill(any_call=False), ("skill_trigger",)),
    Form(("skill_used",), SkillTrigger, _SKILL_KEYS, _skill(any_call=True), later=("skill_used",)),
)
