"""prices.yaml, right and wrong, and the prices that are shipped."""

from importlib.resources import as_file, files
from pathlib import Path

import pytest

from passgate.tasks.formats.project_files import read_prices
from passgate.tasks.model.price import LongPrompt, Price, PriceTable
from tests.unit.formats.reading import beginnings, read_text


def read(tmp_path: Path, text: str) -> PriceTable | list[str]:
    return read_text(tmp_path / "prices.yaml", text, read_prices)


@pytest.fixture(scope="module")
def shipped() -> PriceTable:
    with as_file(files("passgate").joinpath("tasks", "metering", "prices.yaml")) as file:
        answer = read_prices(file, "prices.yaml")
    assert isinstance(answer, PriceTable), answer
    return answer


FREE = "{input: 0, output: 0}"


def test_prices_are_read_in_their_order(tmp_path: Path) -> None:
    table = read(
        tmp_path,
        "version: 1\nmodels:\n  my-model: &mine {input: 0.5, output: 1, cached_input: 0.1, cache_write: 0.6}\n"
        "  my-model-20*: *mine\n  '*': {input: 0, output: 0, long_prompt: {above: 10, input: 1, output: 2}}\n",
    )
    assert isinstance(table, PriceTable)
    assert list(table.models) == ["my-model", "my-model-20*", "*"]
    assert table.models["my-model-20*"] == Price(input=0.5, output=1, cached_input=0.1, cache_write=0.6)
    assert table.models["*"].long_prompt == LongPrompt(above=10, input=1, output=2)
    assert read(tmp_path, "version: 1\n") == PriceTable()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "1:1: expected a mapping, not null"),
        ("models: {a: {input: 1}}", "1:13: models.a: the key 'output' is missing"),
        ("models: {a: {input: -1, output: 1}}", "1:21: models.a.input: must be at least 0, not -1"),
        ("models: {a: {input: .inf, output: 1}}", "1:21: models.a.input: not a finite number"),
        ("models: {a: {input: 1, output: 1, b: 1}}", "1:35: models.a.b: unknown key; known: cache_write, cache_writ"),
        ("models: {a: 1}", "1:13: models.a: expected a mapping, not 1"),
        ("model: {}", "1:1: model: unknown key; did you mean 'models'?"),
        (
            "models: {a: {input: 1, output: 1, long_prompt: {above: 0, input: 1, output: 1}}}",
            "1:56: models.a.long_prompt.above: must be at least 1, not 0",
        ),
        (f"models: {{' ': {FREE}}}", "1:10: models. : a price needs the name of a model, or a pattern"),
        (
            f"models:\n  gpt-*: {FREE}\n  o3: {FREE}\n  gpt-5-*: {FREE}\n",
            "4:3: models.gpt-5-*: never used: 'gpt-*' stands before it and matches the same names",
        ),
        (f"models: {{a: {FREE}, a: {FREE}}}", "1:36: models.a: duplicate key"),
        ("version: 2", "1:10: version: must be at most 1, not 2"),
    ],
)
def test_every_problem_has_its_place(tmp_path: Path, text: str, expected: str) -> None:
    assert beginnings(read(tmp_path, text), [expected]) == [expected]


def test_a_pattern_that_others_may_only_resemble_is_no_problem(tmp_path: Path) -> None:
    """`gpt-?` matches the text `gpt-*`, and not every name that the text stands for."""
    text = f"models: {{'gpt-?': {FREE}, 'gpt-[45]*': {FREE}, 'gpt-*': {FREE}}}"
    assert isinstance(read(tmp_path, text), PriceTable)


def own_price(table: PriceTable, model: str) -> Price | None:
    """The price of a model without what holds for all of them."""
    price = table.price(model)
    return price and price.model_copy(update={"tools": {}, "tiers": {}})


def an_example_of(pattern: str) -> str:
    """A name that the pattern is there for."""
    return pattern.replace("[0-9]", "7").replace("-20*", "-2026-01-31").replace("*", "")


def test_shipped_prices_are_plausible_and_every_pattern_can_be_reached(shipped: PriceTable) -> None:
    assert len(shipped.models) > 100
    for pattern, price in shipped.models.items():
        assert own_price(shipped, an_example_of(pattern)) == price, pattern
        assert 0 < price.input <= price.output <= 1000, pattern
        assert price.cached_input is None or 0 < price.cached_input <= price.input, pattern
        assert price.cache_write is None or price.input <= price.cache_write <= 2 * price.input, pattern
        if price.long_prompt is not None:
            assert price.long_prompt.input > price.input, pattern
            assert price.long_prompt.above >= 100_000, pattern
            assert (price.long_prompt.cached_input is None) == (price.cached_input is None), pattern


DATED = [
    ("gpt-5-2025-08-07", "gpt-5"),
    ("gpt-5-mini-2025-08-07", "gpt-5-mini"),
    ("gpt-5-chat-latest", "gpt-5"),
    ("gpt-4o-2024-08-06", "gpt-4o"),
    ("claude-opus-5-5-20260901", "claude-opus-5-5"),
    ("claude-opus-5-20260601", "claude-opus-5"),
    ("gemini-3.5-flash-001", "gemini-3.5-flash"),
]
UNKNOWN = ["", "gpt-5-ultra", "gpt-55", "claude", "claude-opus-6", "my-model", "gpt-5-mini-ft:x"]


@pytest.mark.parametrize(("model", "like"), [*DATED, *((model, None) for model in UNKNOWN)])
def test_a_dated_release_costs_what_its_model_costs_and_no_other(
    shipped: PriceTable, model: str, like: str | None
) -> None:
    assert own_price(shipped, model) == (shipped.models[like] if like else None)


@pytest.mark.parametrize(
    ("small", "large"),
    [
        ("gpt-5-mini-2025-08-07", "gpt-5"),
        ("gpt-5-nano", "gpt-5-mini"),
        ("gpt-4o-mini-2024-07-18", "gpt-4o"),
        ("gemini-2.5-flash-lite", "gemini-2.5-flash"),
        ("claude-haiku-5-5", "claude-haiku-4-5"),
    ],
)
def test_a_small_model_never_gets_the_price_of_a_large_one(shipped: PriceTable, small: str, large: str) -> None:
    cheap, dear = shipped.price(small), shipped.price(large)
    assert cheap is not None
    assert dear is not None
    assert cheap.input < dear.input
