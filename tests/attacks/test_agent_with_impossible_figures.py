"""Tries: the agent reports costs, tokens and times that no arithmetic survives.

Must come: FAIL, and no error: what cannot be is no transcript.
"""

import pytest

from tests.attacks.conftest import WORKS, Attacked

MESSAGE = '{"messages": [{"role": "assistant", "content": "x", "latency_ms": %s, "usage": %s}, %s]}'


@pytest.mark.parametrize(
    ("usage", "latency"),
    [
        ('{"cost_usd": NaN}', "1"),
        ('{"cost_usd": Infinity}', "1"),
        ('{"cost_usd": 1e999}', "1"),
        ('{"cost_usd": 1e308}', "1"),
        ('{"cost_usd": -1}', "1"),
        ('{"tokens_in": -5}', "1"),
        ('{"tokens_in": 1' + "0" * 400 + "}", "1"),
        ('{"tokens_in": 1' + "0" * 5000 + "}", "1"),
        ('{"tokens_in": 9223372036854775807}', "1"),
        ("{}", "-1e308"),
    ],
)
def test_agent_with_impossible_figures(attacked: Attacked, usage: str, latency: str) -> None:
    one = '{"role": "assistant", "content": "y", "usage": %s}' % usage  # noqa: UP031
    attacked.agent(WORKS + f"cat > $PASSGATE_TRANSCRIPT <<'END'\n{MESSAGE % (latency, usage, one)}\nEND\n")
    outcome = attacked.gate()
    assert outcome.code == 1, outcome.printed
    assert "the agent left no usable transcript" in outcome.printed
