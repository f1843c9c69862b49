"""Whatever the files about agents, prices and pins hold, reading them ends with values or with problems."""

import json
from pathlib import Path
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st
from tests.property.documents import changed, paths_of
from tests.property.test_documents import holds, values, yaml_like

from passgate.tasks.agents import parse_agent
from passgate.tasks.formats.agents_file import TargetsFile, find_target_agent, read_agents, read_targets
from passgate.tasks.formats.project_files import read_pins, read_prices
from passgate.tasks.model.agent import AgentSpec
from passgate.tasks.model.baseline import Pins
from passgate.tasks.model.price import Price, PriceTable
from passgate.tasks.model.transcript import Usage

ENVIRONMENT = {"NAME": "value", "BLANK": " "}
AGENTS = {
    "version": 1,
    "agents": {
        "one": {
            "agent": "cli:x {prompt}",
            "model": "m",
            "upstreams": {"openai": {"base_url": "http://host/v1", "api_key_variable": "KEY"}, "anthropic": {}},
            "variables": {"A": "{model}"},
            "timeout_seconds": 5,
            "files_format": "{path}",
        },
        "two": {"agent": "http:https://host", "http": {"headers": {"A": "${{ B }}"}, "request": {"a": ["b"]}}},
        "three": {"agent": "openai:m", "completion": {"system": "s", "parameters": {"temperature": 1}}},
    },
}
PRICES = {
    "version": 1,
    "models": {
        "a*": {"input": 1, "output": 2, "cached_input": 0.5, "cache_write": 1.5},
        "b": {"input": 1, "output": 2, "long_prompt": {"above": 5, "input": 2, "output": 3}},
    },
}
PINS = {"version": 1, "runs": ["20260101", "20260102T000000Z-nightly-ab"], "reason": "why", "by": "Ann"}
TARGETS = {
    "targets": [
        {
            "name": "a",
            "provider": "cli",
            "command": "x {PROMPT} > {OUTPUT_FILE}",
            "cwd": "..",
            "files_format": "{path}",
        },
        {"name": "b", "provider": "azure", "model": "${{ NAME }}", "endpoint": "r", "api_key": "${{ KEY }}"},
        {"name": "c", "use_target": "a"},
        {"name": "d", "provider": "openai", "model": "m", "base_url": "http://host", "max_output_tokens": 5},
    ]
}


def read_everything(tmp_path: Path, content: bytes) -> None:
    """Read a file as each of the four, and every target of it."""
    file = tmp_path / "file.yaml"
    file.write_bytes(content)
    holds(read_agents(file, "agents.yaml", parse_agent), dict)
    holds(read_prices(file, "prices.yaml"), PriceTable)
    holds(read_pins(file, "baseline.yaml"), Pins)
    targets = read_targets(file, "targets.yaml")
    holds(targets, TargetsFile)
    if isinstance(targets, TargetsFile):
        for name in targets.positions:
            holds(find_target_agent([targets], name, ENVIRONMENT), AgentSpec)


@given(content=st.binary() | yaml_like.map(str.encode))
def test_any_bytes_are_values_or_problems(tmp_path: Path, content: bytes) -> None:
    read_everything(tmp_path, content)


@given(data=st.data(), document=st.sampled_from([AGENTS, PRICES, PINS, TARGETS]), value=values)
def test_one_wrong_value_anywhere_is_no_crash(tmp_path: Path, data: st.DataObject, document: Any, value: Any) -> None:
    path = data.draw(st.sampled_from(paths_of(document)))
    read_everything(tmp_path, json.dumps(changed(document, path, value)).encode())


@given(text=st.text(), key=st.sampled_from(["command", "cwd", "files_format", "provider"]))
@example(text="\0", key="cwd")
@example(text="${{ NAME }}\0", key="command")
@example(text="${{ BLANK }}", key="command")
def test_any_text_in_a_target_is_no_crash(tmp_path: Path, text: str, key: str) -> None:
    document = changed(TARGETS, ("targets", 0, key), text)
    read_everything(tmp_path, json.dumps(document).encode())


amounts = st.integers(0, 10**7)
dollars = st.floats(0, 1000, allow_subnormal=False)


@given(rates=st.tuples(dollars, dollars, dollars, dollars), used=st.tuples(amounts, amounts, amounts, amounts))
def test_a_cost_is_never_negative_and_grows_with_what_is_used(rates: tuple[float, ...], used: tuple[int, ...]) -> None:
    price = Price(input=rates[0], output=rates[1], cached_input=rates[2], cache_write=rates[3])
    plain, cached, written, out = used
    usage = Usage(tokens_in=plain + cached + written, tokens_cached=cached, tokens_cache_write=written, tokens_out=out)
    cost = price.cost(usage)
    assert cost is not None
    assert 0 <= cost <= sum(used) * max(rates) / 1e6 * (1 + 1e-9)
    more = price.cost(usage.model_copy(update={"tokens_out": out + 1}))
    assert more is not None
    assert more >= cost
