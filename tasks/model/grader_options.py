"""What the options of every grader are made of."""

from typing import Annotated

from pydantic import Field, StringConstraints

from passgate.tasks.model.base import Frozen

Text = Annotated[str, StringConstraints(min_length=1)]
Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=0)]
Amount = Annotated[float, Field(ge=0)]
Seconds = Annotated[float, Field(gt=0)]


class GraderOptions(Frozen):
    """What every grader has."""

    name: Text | None = None
    """What reports call this grader; its type when not given."""
    weight: Amount = 1
    """Its part in the trial's score, where the task's `scoring` asks for one."""

    @property
    def type_name(self) -> str:
        """What it is; each kind of grader has a `type` of its own."""
        return str(getattr(self, "type", "grader"))

    @property
    def label(self) -> str:
        return self.name or self.type_name


class AssertionOptions(GraderOptions):
    """What the graders of eval files have beside that. They pass from a score of 0.8 on."""

    required: bool = False
    """The trial fails without it, whatever its score is."""
    min_score: Share | None = None
    """The least score that passes it, instead of 0.8."""
    negate: bool = False
    """Its score is one less what it would be: what must not be so."""
