"""The messages of a transcript, with the share of each budget that is used after each step."""

from collections.abc import Callable
from typing import NamedTuple

from passgate.tasks.model.task import Budgets
from passgate.tasks.model.transcript import Message, Transcript
from passgate.tasks.reports import figures


class BudgetUse(NamedTuple):
    """How much of a budget is used."""

    text: str
    """`step 3 of 20`."""
    share: float
    """The used share; above 1 the budget is exceeded. 0 without a budget."""


class TimelineEntry(NamedTuple):
    """One message, or a gap."""

    message: Message | None
    uses: tuple[BudgetUse, ...] = ()
    """The use of each budget after a step."""
    gap: int = 0
    """The number of messages that are left out here."""

    @property
    def fullest(self) -> float:
        """Return the share of the budget that is nearest to its limit; 0 without budgets."""
        return max((use.share for use in self.uses), default=0.0)

    @property
    def facts(self) -> str:
        """Return how long a step took, and its tokens."""
        message, facts = self.message, list[str]()
        if message is None:
            return ""
        if message.latency_ms is not None:
            facts.append(milliseconds(message.latency_ms))
        usage = message.usage
        if usage.tokens_in is not None or usage.tokens_out is not None:
            facts.append(f"{usage.tokens_in or 0:,} tokens in, {usage.tokens_out or 0:,} out")
        return ", ".join(facts)


def milliseconds(number: float) -> str:
    """Format a duration: `850 ms`, `1.5 s`."""
    return figures.quantity(number, "ms") if number < 1000 else figures.duration(number / 1000)


def timeline(transcript: Transcript, budgets: Budgets, most: int) -> tuple[TimelineEntry, ...]:
    """Return an entry per message. Of more than `most` messages the middle is a gap."""
    messages, uses = transcript.messages, list[tuple[BudgetUse, ...]]()
    steps = calls = tokens = 0
    cost = seconds = 0.0
    for message in messages:
        # The use of a budget is unknown if the agent does not report every step.
        if not transcript.complete or message.role != "assistant":
            uses.append(())
            continue
        usage = message.usage
        steps += 1
        calls += len(message.tool_calls)
        tokens += (usage.tokens_in or 0) + (usage.tokens_out or 0)
        cost += usage.cost_usd or 0.0
        seconds += (message.latency_ms or 0.0) / 1000
        of_step = [_use(f"step {steps}", steps, budgets.max_steps)]
        if calls:
            of_step.append(_use(figures.count(calls, "tool call"), calls, budgets.max_tool_calls))
        if tokens:
            of_step.append(_use(f"{tokens:,} tokens", tokens, budgets.max_tokens))
        if cost:
            of_step.append(_use(figures.dollars(cost), cost, budgets.max_cost_usd, figures.dollars))
        if seconds:
            of_step.append(_use(figures.duration(seconds), seconds, budgets.max_seconds, figures.duration))
        uses.append(tuple(of_step))
    entries = [TimelineEntry(*pair) for pair in zip(messages, uses, strict=True)]
    gap, tail = len(entries) - most, most // 2
    if gap > 0:
        entries[most - tail : len(entries) - tail] = [TimelineEntry(None, gap=gap)]
    return tuple(entries)


def _use(text: str, used: float, limit: float | None, number: Callable[[float], str] = "{:,}".format) -> BudgetUse:
    if limit is None:
        return BudgetUse(text, 0.0)
    return BudgetUse(f"{text} of {number(limit)}", used / limit if limit else 1.0)
