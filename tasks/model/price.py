"""What models cost."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Annotated, Final

from pydantic import Field

from passgate.tasks.model.base import Frozen
from passgate.tasks.model.transcript import Usage

Dollars = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_PER = 1_000_000
PRICES: Final = "prices.yaml, beside gates.yaml"
_ORDINARY_TIERS: Final = frozenset({"", "default", "standard", "auto", "on_demand", "unspecified"})
_HOUR: Final = 2  # What a cache write for an hour costs, in ordinary tokens


@dataclass(frozen=True, slots=True)
class Charges:
    """What decides the cost of a call beside its tokens, as its reply states it."""

    tier: str = ""  # The provider's name for how fast the call was served; empty where it says none
    hour_writes: int = 0  # Of the tokens written to the provider's cache, those that are kept for an hour
    tools: Mapping[str, int] = field(default_factory=dict)
    """How often the provider ran tools of its own, by their names."""


NO_CHARGES: Final = Charges()


class Rates(Frozen):
    """US dollars per million tokens."""

    input: Dollars
    """Of tokens into the model."""
    output: Dollars
    """Of tokens out of the model."""
    cached_input: Dollars | None = None
    """Of input tokens read from the provider's cache; as `input` when not given."""
    cache_write: Dollars | None = None
    """Of input tokens written to the provider's cache; as `input` when not given."""
    cache_write_1h: Dollars | None = None
    """Of input tokens written to the cache for an hour; twice `input` when not given."""


class LongPrompt(Rates):
    """What a call costs whose prompt is long: every token of it, those below the threshold too."""

    above: Annotated[int, Field(ge=1)]
    """The most tokens into the model that the ordinary rates are for."""


class Price(Rates):
    """US dollars per million tokens of a model."""

    long_prompt: LongPrompt | None = None
    """Where the provider asks for more when the prompt is long."""
    tools: dict[str, Dollars] = {}
    """US dollars for each use of a tool that the provider runs, by its name, as in `web_search`."""
    tiers: dict[str, Dollars] = {}
    """What the price of the tokens is multiplied by in a service tier, as in `priority: 2`."""

    def missing(self, charges: Charges) -> str:
        """Return the line that is missing for these charges; empty if all of them have a price."""
        if charges.tier not in _ORDINARY_TIERS | self.tiers.keys():
            return f"tiers: {{{json.dumps(charges.tier)}: FACTOR}}"
        tool = next((tool for tool, count in charges.tools.items() if count and tool not in self.tools), None)
        return "" if tool is None else f"tools: {{{json.dumps(tool)}: DOLLARS}}"

    def cost(self, usage: Usage, charges: Charges = NO_CHARGES) -> float | None:
        """Return the US dollars of one call; `None` if the tokens in or out, or the price of a charge, are unknown."""
        if usage.tokens_in is None or usage.tokens_out is None or self.missing(charges):
            return None
        long = self.long_prompt
        rates: Rates = long if long is not None and usage.tokens_in > long.above else self
        cached, written = usage.tokens_cached or 0, usage.tokens_cache_write or 0
        plain = max(0, usage.tokens_in - cached - written)
        read = rates.input if rates.cached_input is None else rates.cached_input
        write = rates.input if rates.cache_write is None else rates.cache_write
        hour = _HOUR * rates.input if rates.cache_write_1h is None else rates.cache_write_1h
        kept = min(written, charges.hour_writes)
        tokens = plain * rates.input + cached * read + (written - kept) * write + kept * hour
        tools = sum(count * self.tools[tool] for tool, count in charges.tools.items() if count)
        return (tokens + usage.tokens_out * rates.output) / _PER * self.tiers.get(charges.tier, 1) + tools


def price_remedy(model: str) -> str:
    """Return the remedy for an unknown price: the line to add, with the dollars left to fill in."""
    line = f"{json.dumps(model, ensure_ascii=False)}: {{input: DOLLARS, output: DOLLARS}}"
    return f"add a line under `models:` of {PRICES}: {line} (US dollars per million tokens)"


class PriceTable(Frozen):
    """prices.yaml: prices by patterns of model names, as in `gpt-5-mini*`. The first pattern that matches counts."""

    version: Annotated[int, Field(ge=1, le=1)] = 1
    models: dict[str, Price] = {}
    tools: dict[str, Dollars] = {}
    """US dollars for each use of a tool that a provider runs, of models whose own `tools` do not name it."""
    tiers: dict[str, Dollars] = {}
    """What service tiers multiply the price of the tokens by, of models whose own `tiers` do not name them."""

    def price(self, model: str) -> Price | None:
        """Return the price of a model, or `None` if no pattern matches its name."""
        price = next((price for pattern, price in self.models.items() if fnmatchcase(model, pattern)), None)
        if price is None or not (self.tools or self.tiers):
            return price
        charges = {"tools": {**self.tools, **price.tools}, "tiers": {**self.tiers, **price.tiers}}
        return price.model_copy(update=charges)

    def over(self, others: "PriceTable") -> "PriceTable":
        """Return these prices and, for other models, the `others`."""
        models = {**self.models, **{k: v for k, v in others.models.items() if k not in self.models}}
        return PriceTable(models=models, tools={**others.tools, **self.tools}, tiers={**others.tiers, **self.tiers})
