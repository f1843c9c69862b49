"""The transcript of a trial as a page shows it: message by message, with the budget that was used up to each step."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from passgate.tasks.model.task import Budgets
from passgate.tasks.model.transcript import Message, ToolCall, Transcript
from passgate.tasks.reports import figures
from passgate.tasks.reports.page.texts import Shown, shown

_TOOL_NAME = 200
_MOST_ARGUMENTS = 30


class BudgetUse(NamedTuple):
    """How much of a budget is used."""

    text: str
    """`step 3 of 20`."""
    share: float
    """Of the budget, from 0 up; above 1 it is overrun. 0 without a budget."""


class CallShown(NamedTuple):
    """A tool call and its result."""

    tool: str
    arguments: tuple[tuple[str, Shown], ...]
    """Each with its name."""
    more_arguments: int
    result: Shown | None
    state: str
    """`refused`, `error` or nothing."""
    took: str


class TimelineEntry(NamedTuple):
    """One message."""

    role: str
    text: Shown | None
    calls: tuple[CallShown, ...] = ()
    uses: tuple[BudgetUse, ...] = ()
    """Of a step: what is used after it."""
    facts: str = ""
    """Of a step: how long it took, what it cost."""
    gap: int = 0
    """Messages that are left out in place of this one."""

    @property
    def fullest(self) -> float:
        """The share of the budget that is nearest to its limit; 0 without budgets."""
        return max((use.share for use in self.uses), default=0.0)


class _Used:
    """Sums over the steps so far."""

    def __init__(self, budgets: Budgets) -> None:
        self._budgets = budgets
        self._steps = self._calls = self._tokens = 0
        self._cost = self._seconds = 0.0

    def after(self, step: Message) -> tuple[BudgetUse, ...]:
        usage = step.usage
        self._steps += 1
        self._calls += len(step.tool_calls)
        self._tokens += (usage.tokens_in or 0) + (usage.tokens_out or 0)
        self._cost += usage.cost_usd or 0.0
        self._seconds += (step.latency_ms or 0.0) / 1000
        limits = self._budgets
        uses = [_use(f"step {self._steps}", self._steps, limits.max_steps)]
        if self._calls:
            uses.append(_use(figures.count(self._calls, "tool call"), self._calls, limits.max_tool_calls))
        if self._tokens:
            uses.append(_use(f"{self._tokens:,} tokens", self._tokens, limits.max_tokens))
        if self._cost:
            uses.append(_use(figures.dollars(self._cost), self._cost, limits.max_cost_usd, figures.dollars))
        if self._seconds:
            uses.append(_use(figures.duration(self._seconds), self._seconds, limits.max_seconds, figures.duration))
        return tuple(uses)


def _took(milliseconds: float) -> str:
    return figures.quantity(milliseconds, "ms") if milliseconds < 1000 else figures.duration(milliseconds / 1000)


def _use(text: str, used: float, limit: float | None, unit: Any = "{:,}".format) -> BudgetUse:
    if limit is None:
        return BudgetUse(text, 0.0)
    return BudgetUse(f"{text} of {unit(limit)}", used / limit if limit else 1.0)


def timeline(transcript: Transcript, budgets: Budgets, *, text: int, most: int) -> tuple[TimelineEntry, ...]:
    """The messages of a transcript, of each text at most about `text` characters.

    Of more than `most` messages the middle is left out, and an entry says so.
    """
    used, messages = _Used(budgets), transcript.messages
    counted = transcript.complete  # What an agent reports nothing of cannot be set against a budget
    steps = [used.after(message) if counted and message.role == "assistant" else () for message in messages]
    return tuple(
        _entry(messages[place], steps[place], text) if place >= 0 else TimelineEntry("", None, gap=-place)
        for place in _kept(len(messages), most)
    )


def _kept(count: int, most: int) -> Iterator[int]:
    """The places that are shown; a gap is a negative number, that of the places in it."""
    if count <= most:
        yield from range(count)
        return
    tail = most // 2
    head = most - tail
    yield from range(head)
    yield head + tail - count
    yield from range(count - tail, count)


def _entry(message: Message, uses: Sequence[BudgetUse], limit: int) -> TimelineEntry:
    usage, facts = message.usage, []
    if message.latency_ms is not None:
        facts.append(_took(message.latency_ms))
    if usage.tokens_in is not None or usage.tokens_out is not None:
        facts.append(f"{usage.tokens_in or 0:,} tokens in, {usage.tokens_out or 0:,} out")
    return TimelineEntry(
        message.role,
        shown(message.content, limit) if message.content else None,
        tuple(_call(call, limit) for call in message.tool_calls),
        tuple(uses),
        ", ".join(facts),
    )


def _call(call: ToolCall, limit: int) -> CallShown:
    arguments = list(call.arguments.items())
    state = "refused" if call.refused else "error" if call.is_error else ""
    return CallShown(
        shown(call.tool, _TOOL_NAME).text,
        tuple((shown(name, _TOOL_NAME).text, shown(value, limit)) for name, value in arguments[:_MOST_ARGUMENTS]),
        max(0, len(arguments) - _MOST_ARGUMENTS),
        None if call.result is None else shown(call.result, limit),
        state,
        "" if call.duration_ms is None else _took(call.duration_ms),
    )
