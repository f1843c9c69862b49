"""What a call costs, and which price a model has."""

import pytest

from passgate.tasks.model.price import Charges, LongPrompt, Price, PriceTable
from passgate.tasks.model.transcript import Usage

PLAIN = Price(input=2, output=10)
CACHING = Price(input=2, output=10, cached_input=0.5, cache_write=2.5)
LONG = Price(input=2, output=10, long_prompt=LongPrompt(above=100, input=4, cached_input=1, output=15))


@pytest.mark.parametrize(
    ("price", "usage", "dollars"),
    [
        (PLAIN, Usage(tokens_in=1_000_000, tokens_out=0), 2),
        (PLAIN, Usage(tokens_in=1_000_000, tokens_cached=400_000, tokens_out=100_000), 3),
        (CACHING, Usage(tokens_in=1_000_000, tokens_cached=400_000, tokens_out=0), 1.4),
        (CACHING, Usage(tokens_in=1_000_000, tokens_cached=400_000, tokens_cache_write=600_000, tokens_out=0), 1.7),
        (CACHING, Usage(tokens_in=10, tokens_cached=20, tokens_out=0), 0.00001),
        *((LONG, Usage(tokens_in=100, tokens_out=1), 210e-6), (LONG, Usage(tokens_in=101, tokens_out=1), 419e-6)),
        (LONG, Usage(tokens_in=101, tokens_cached=101, tokens_out=0), 101e-6),
    ],
)
def test_tokens_cost_what_their_kind_costs(price: Price, usage: Usage, dollars: float) -> None:
    assert price.cost(usage) == pytest.approx(dollars)


@pytest.mark.parametrize(
    ("charges", "dollars"),
    [
        *((Charges(hour_writes=400_000), 3.1), (Charges(hour_writes=9_000_000), 4)),
        (Charges(tools={"web_search": 3, "other": 0}), 2.53),
        (Charges(tier="default"), 2.5),
        (Charges("priority", 400_000, {"web_search": 1}), 6.21),
        *((Charges(tier="scale"), None), (Charges(tools={"code_execution": 1}), None)),
    ],
)
def test_what_is_charged_beside_tokens_has_a_price_or_is_unknown(charges: Charges, dollars: float | None) -> None:
    table = PriceTable(models={"m": CACHING.model_copy(update={"tiers": {"priority": 2}})}, tools={"web_search": 0.01})
    price = table.over(PriceTable(tiers={"priority": 9, "flex": 0.5}, tools={"web_search": 9})).price("m")
    assert price is not None
    usage = Usage(tokens_in=1_000_000, tokens_cache_write=1_000_000, tokens_out=0)
    assert price.cost(usage, charges) == (None if dollars is None else pytest.approx(dollars))
    assert bool(price.missing(charges)) == (dollars is None)


@pytest.mark.parametrize("usage", [Usage(), Usage(tokens_in=5), Usage(tokens_out=5)])
def test_what_is_not_known_has_no_cost_rather_than_none(usage: Usage) -> None:
    assert PLAIN.cost(usage) is None


def test_the_first_pattern_that_matches_counts_and_own_prices_go_before_others() -> None:
    table = PriceTable(models={"gpt-5-mini*": PLAIN, "gpt-5*": CACHING})
    assert table.price("gpt-5-mini-2025-08-07") is PLAIN
    assert table.price("gpt-5") is CACHING
    assert table.price("GPT-5") is None
    own, shipped = PriceTable(models={"gpt-*": PLAIN}), PriceTable(models={"gpt-5": CACHING, "gpt-*": LONG, "o3": LONG})
    both = own.over(shipped)
    assert both.price("gpt-5") == PLAIN
    assert both.price("o3") == LONG
    assert list(both.models) == ["gpt-*", "gpt-5", "o3"]
