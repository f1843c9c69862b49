"""What the sections print: a figure with its interval, the exact one beside it, its target and whether it is met."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import sqrt
from typing import Literal

import numpy as np
import numpy.typing as npt

from passgate.tasks.stats.estimators import wilson_interval

_NEVER = 1 - 1e-6
"""Confidence of the interval that an exact figure may not lie outside of: then one of the two is wrong."""
_DEVIATIONS = 1.959964
_LABEL = 46


@dataclass(frozen=True)
class Target:
    """What a figure has to be."""

    bound: float
    kind: Literal["at most", "at least"] = "at most"

    def met_by(self, value: float) -> bool:
        return bool(value <= self.bound if self.kind == "at most" else value >= self.bound)


@dataclass(frozen=True)
class Figure:
    """One simulated figure. `low` and `high` are its 95 % interval; shares are printed as percent."""

    label: str
    simulated: float
    low: float
    high: float
    exact: float | None = None
    target: Target | None = None
    share: bool = True
    differs: bool = False
    """Whether the exact figure cannot be that of the simulation."""
    gates: int = 0
    """Simulated gates that it is of; 0 where nothing was simulated."""

    @property
    def met(self) -> bool | None:
        """By the exact figure where there is one; `None` without a target."""
        if self.target is None:
            return None
        return self.target.met_by(self.simulated if self.exact is None else self.exact)

    @property
    def missed(self) -> bool:
        return self.met is False or self.differs

    def line(self) -> str:
        """The figure as a line of a table."""
        simulated, interval = (
            (self.text(self.simulated), f"{self.text(self.low)} to {self.text(self.high)}") if self.gates else ("", "")
        )
        exact = "" if self.exact is None else self.text(self.exact)
        target = self.target_text()
        verdict = "DIFFERS" if self.differs else {True: "OK", False: "MISSED", None: ""}[self.met]
        text = f"  {self.label:<{_LABEL}}{simulated:>9}  {interval:<20}{exact:>9}  {target:<17}{verdict}"
        return text.rstrip()

    def target_text(self) -> str:
        """What the figure has to be; empty without a target."""
        return f"{self.target.kind} {self.text(self.target.bound)}" if self.target else ""

    def text(self, value: float) -> str:
        """A value of this figure, as it is shown."""
        return percent(value) if self.share else f"{value:.2f}"


HEAD = f"  {'':<{_LABEL}}{'simulated':>9}  {'95 % interval':<20}{'exact':>9}  target"


@dataclass(frozen=True)
class Block:
    """A part of a section as it is printed."""

    title: str
    figures: Sequence[Figure] = ()
    lines: Sequence[str] = ()
    """Printed below the figures as they are."""
    missed: Sequence[str] = field(default=())
    """What beside the figures is not as it must be."""

    def text(self) -> str:
        table = [HEAD, *(figure.line() for figure in self.figures)] if self.figures else []
        return "\n".join([self.title, *table, *(f"  {line}".rstrip() for line in self.lines)])

    def all_missed(self) -> list[str]:
        """What was missed, in words."""
        return [*(f"{self.title}: {figure.label}" for figure in self.figures if figure.missed), *self.missed]


def percent(value: float) -> str:
    """`45.2 %`, `0.31 %`: two decimals below ten percent."""
    return f"{100 * value:.1f} %" if value >= 0.1 else f"{100 * value:.2f} %"


def share(
    label: str,
    hits: npt.NDArray[np.bool_],
    *,
    exact: float | None = None,
    target: Target | None = None,
    of: float = 1.0,
) -> Figure:
    """The share of simulated gates of which something holds, divided by `of`."""
    n, c = len(hits), int(hits.sum())
    low, high = wilson_interval(n, c)
    least, most = wilson_interval(n, c, _NEVER)
    differs = exact is not None and not bool(least / of <= exact <= most / of)
    return Figure(label, c / n / of, low / of, high / of, exact, target, differs=differs, gates=n)


def exactly(
    label: str, value: float, *, error: float = 0.0, target: Target | None = None, share: bool = True
) -> Figure:
    """A figure that is computed, and not simulated; `error` is the standard error that it has all the same."""
    half = _DEVIATIONS * error
    return Figure(label, value, max(value - half, 0.0), value + half, value, target, share)


def mean(
    label: str,
    values: npt.NDArray[np.float64],
    *,
    exact: float | None = None,
    target: Target | None = None,
    share: bool = True,
) -> Figure:
    """The mean over simulated gates, with the normal interval."""
    middle, error = float(values.mean()), float(values.std(ddof=1)) / sqrt(len(values))
    half = _DEVIATIONS * error
    # Five standard errors, and a hair for what is the same in every gate.
    differs = exact is not None and bool(abs(exact - middle) > 5 * error + 1e-9)
    return Figure(label, middle, middle - half, middle + half, exact, target, share, differs, len(values))
