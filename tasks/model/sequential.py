"""Wald's sequential probability ratio test, as a suite asks for it."""

from typing import Annotated, Final, Self

from pydantic import Field, model_validator

from passgate.tasks.model.base import Frozen

LEAST_TRIALS: Final = 10
"""With fewer trials a sequential test saves next to nothing, so such tasks keep the AND or OR rule."""

Rate = Annotated[float, Field(gt=0, lt=1)]
Risk = Annotated[float, Field(gt=0, lt=0.5)]


class SequentialTest(Frozen):
    """Wald's sequential probability ratio test in place of the AND or OR rule: trials stop when it has decided."""

    accept: Rate
    """A task whose trials pass this often is to be passed."""
    reject: Rate
    """A task whose trials pass only this often is to be failed."""
    alpha: Risk = 0.05
    """How often the first may be failed."""
    beta: Risk = 0.05
    """How often the second may be passed."""

    @model_validator(mode="after")
    def _apart(self) -> Self:
        if self.reject >= self.accept:
            raise ValueError("`reject` must be below `accept`")
        return self
