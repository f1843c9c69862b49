"""What a change edits of an agent's definition."""

from collections.abc import Iterator
from urllib.parse import SplitResult, urlsplit

from passgate.tasks.model.agent import AgentKind, AgentSettings, AgentSpec
from passgate.tasks.model.base import Frozen

_OWN = tuple(name for name in AgentSettings.model_fields if name != "upstreams")
"""Settings of the agent itself."""


class AgentChange(Frozen):
    """How a change's definition of an agent differs from that of the merge base."""

    name: str
    judging: tuple[str, ...] = ()
    """What differs of what says how the agent is measured. Where there is any, the merge base's definition is run."""
    own: tuple[str, ...] = ()
    """What differs of the agent itself, which is what the change is about."""

    @property
    def by_base(self) -> bool:
        """Whether the merge base's definition is run."""
        return bool(self.judging)


def judging_agent(change: AgentChange) -> str:
    """Why the merge base's definition of an agent is run, in a line."""
    differs = ", ".join(change.judging)
    return f"this change edits what judges of the agent {change.name!r} ({differs}): that of the merge base is run"


def own_agent(change: AgentChange) -> str:
    """What of an agent is the change's own, in a line."""
    differ = "differ" if len(change.own) > 1 else "differs"
    return f"the agent {change.name!r} is run as this change defines it: its {', '.join(change.own)} {differ}"


def agent_change(name: str, before: AgentSpec, now: AgentSpec) -> AgentChange | None:
    """The differences of two definitions of what `--agent` calls `name`; `None` where they are the same."""
    if before == now:
        return None
    return AgentChange(name=name, judging=tuple(_judging(before, now)), own=tuple(_own(before, now)))


def _judging(before: AgentSpec, now: AgentSpec) -> Iterator[str]:
    """What decides who is measured, by whom and under which name; no value that could be a key is repeated."""
    if before.kind is not now.kind:
        yield f"kind ({before.kind} at the merge base, {now.kind} here)"
    if str(before) != str(now):  # by which its history goes
        yield "name"
    if before.upstreams != now.upstreams:
        yield "upstreams"
    if before.kind is now.kind and before.target != now.target:
        yield from _judging_target(before, now)


def _judging_target(before: AgentSpec, now: AgentSpec) -> Iterator[str]:
    if now.kind is AgentKind.REPLAY:
        yield "recordings"
    elif now.kind is AgentKind.HTTP and _origin(before.target) != _origin(now.target):
        yield "address"


def _own(before: AgentSpec, now: AgentSpec) -> Iterator[str]:
    if before.target != now.target and not {*_judging(before, now)} & {"recordings", "address"}:
        yield "agent"
    yield from (key for key in _OWN if getattr(before, key) != getattr(now, key))


def _origin(address: str) -> tuple[str, str]:
    """The scheme, and the host with its port."""
    parts: SplitResult = urlsplit(address)
    return parts.scheme.lower(), parts.netloc.lower()
