"""The environment variables that lead an agent to its models through the meter."""

from typing import Final

from passgate.tasks.model.agent import AgentSpec

PLACEHOLDER_KEY: Final = "passgate"  # What an agent gives as its key; the meter puts the real one in its place
_NOWHERE: Final = "http://127.0.0.1:9/there-is-a-meter-once-a-trial-has-begun"


def model_variables(spec: AgentSpec, openai: str, anthropic: str) -> dict[str, str]:
    """The usual variables and those of the spec, with these base URLs; no real key is among them."""
    upstreams = spec.upstreams
    named = (upstreams.openai.api_key_variable, upstreams.anthropic.api_key_variable)
    keys = dict.fromkeys(filter(None, ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", *named)), PLACEHOLDER_KEY)
    addresses = {"OPENAI_BASE_URL": openai, "OPENAI_API_BASE": openai, "ANTHROPIC_BASE_URL": anthropic}
    known = {
        "openai_base_url": openai,
        "anthropic_base_url": anthropic,
        "api_key": PLACEHOLDER_KEY,
        "model": spec.model or "",
    }
    return {**addresses, **keys, **{name: _filled(value, known) for name, value in spec.variables.items()}}


def variables_before_trials(spec: AgentSpec) -> dict[str, str]:
    """The same before there is a trial: no model can be reached, and no real key is there."""
    return model_variables(spec, f"{_NOWHERE}/openai/v1", f"{_NOWHERE}/anthropic")


def _filled(text: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", value)
    return text
