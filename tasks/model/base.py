"""The base of every model, and the numbers and texts that many have."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

Text = Annotated[str, StringConstraints(min_length=1)]
Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=0)]
Amount = Annotated[float, Field(ge=0)]
Seconds = Annotated[float, Field(gt=0)]


class Frozen(BaseModel):
    """An immutable value; unknown fields are refused. Copies are made with `model_copy(update=...)`."""

    model_config = ConfigDict(frozen=True, extra="forbid")
