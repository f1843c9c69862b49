"""What a call will use, before it is sent: from the size of its request and from the calls before it."""

from dataclasses import dataclass
from math import ceil
from typing import Final

from passgate.tasks.model.price import Price
from passgate.tasks.model.transcript import Usage

CHARACTERS_PER_TOKEN: Final = 8
"""More than tokenizers put into one token of ordinary text, so that a request that is refused could not have fitted."""
UNLIMITED_REPLY: Final = 4096  # Tokens of a reply whose request sets no limit, until a longer one was seen
UNSEEN_TOKENS: Final = 200
"""Tokens of a first request beside its text: the model's template, instructions that the provider adds, images."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """What earlier calls of the same trial have shown."""

    characters: int = 0  # Of the newest request whose tokens are known; 0 before there is one
    tokens_in: int = 0
    longest_reply: int = 0  # In tokens

    def after(self, characters: int, usage: Usage) -> "Sizes":
        """Return the sizes after one more answered call."""
        if usage.tokens_in is None or usage.tokens_out is None:
            return self
        return Sizes(characters, usage.tokens_in, max(self.longest_reply, usage.tokens_out))

    def least_in(self, characters: int) -> int:
        """Return the fewest tokens that a request of so many characters has: one that grew has at least those of
        before.
        """
        before = self.tokens_in if characters >= self.characters else 0
        per_token = max(CHARACTERS_PER_TOKEN, self.characters / self.tokens_in if self.tokens_in else 0.0)
        return max(before, int(characters / per_token))

    def likely_in(self, characters: int) -> int:
        """Return a number of tokens that a request of so many characters rarely exceeds: one for each new character."""
        if not self.characters:
            return characters + UNSEEN_TOKENS
        if characters < self.characters:
            return ceil(self.tokens_in * characters / self.characters)
        return self.tokens_in + characters - self.characters


@dataclass(frozen=True, slots=True)
class Estimate:
    """The tokens of one call before it is sent."""

    least_in: int
    likely_in: int
    out: int  # Of the reply: the request's own limit; without one, the longest reply so far or `UNLIMITED_REPLY`

    @classmethod
    def of(cls, characters: int, max_tokens_out: int | None, sizes: Sizes) -> "Estimate":
        """Return the estimate of a request with so many characters, whose reply may have `max_tokens_out` tokens."""
        least = sizes.least_in(characters)
        out = max(UNLIMITED_REPLY, sizes.longest_reply) if max_tokens_out is None else max_tokens_out
        return cls(least, max(least, sizes.likely_in(characters)), out)

    @property
    def tokens(self) -> int:
        return self.likely_in + self.out

    def least_cost(self, price: Price | None) -> float:
        """Return the US dollars of the input alone, all of it from the provider's cache; 0 without a price."""
        usage = Usage(tokens_in=self.least_in, tokens_cached=self.least_in, tokens_out=0)
        return (price.cost(usage) or 0.0) if price else 0.0

    def cost(self, price: Price | None) -> float:
        """Return the US dollars of the whole call; 0 without a price."""
        usage = Usage(tokens_in=self.likely_in, tokens_out=self.out)
        return (price.cost(usage) or 0.0) if price else 0.0
