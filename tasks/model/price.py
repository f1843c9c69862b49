"""What models cost."""

import json
from fnmatch import fnmatchcase
from typing import Annotated

from pydantic import Field

from passgate.tasks.model.base import Frozen
from passgate.tasks.model.transcript import Usage

Dollars = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_PER = 1_000_000


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


class LongPrompt(Rates):
    """What a call costs whose prompt is long: every token of it, those below the threshold too."""

    above: Annotated[int, Field(ge=1)]
    """The most tokens into the model that the ordinary rates are for."""


class Price(Rates):
    """US dollars per million tokens of a model."""

    long_prompt: LongPrompt | None = None
    """Where the provider asks for more when the prompt is long."""

    def cost(self, usage: Usage) -> float | None:
        """US dollars of one call; `None` when the tokens in or out are not known."""
        if usage.tokens_in is None or usage.tokens_out is None:
            return None
        long = self.long_prompt
        rates: Rates = long if long is not None and usage.tokens_in > long.above else self
        cached, written = usage.tokens_cached or 0, usage.tokens_cache_write or 0
        plain = max(0, usage.tokens_in - cached - written)
        read = rates.input if rates.cached_input is None else rates.cached_input
        write = rates.input if rates.cache_write is None else rates.cache_write
        return (plain * rates.input + cached * read + written * write + usage.tokens_out * rates.output) / _PER


def price_remedy(model: str) -> str:
    """Return the remedy for an unknown price: the line to add, with the dollars left to fill in."""
    line = f"{json.dumps(model, ensure_ascii=False)}: {{input: DOLLARS, output: DOLLARS}}"
    return f"add a line under `models:` of prices.yaml, beside gates.yaml: {line} (US dollars per million tokens)"


class PriceTable(Frozen):
    """prices.yaml: prices by patterns of model names, as in `gpt-5-mini*`. The first pattern that matches counts."""

    version: Annotated[int, Field(ge=1, le=1)] = 1
    models: dict[str, Price] = {}

    def price(self, model: str) -> Price | None:
        """Return the price of a model, or `None` if no pattern matches its name."""
        return next((price for pattern, price in self.models.items() if fnmatchcase(model, pattern)), None)

    def over(self, others: "PriceTable") -> "PriceTable":
        """Return these prices and, for other models, the `others`."""
        return PriceTable(models={**self.models, **{k: v for k, v in others.models.items() if k not in self.models}})
