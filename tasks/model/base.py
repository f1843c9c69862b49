"""The base of every model, and the numbers and texts that many have."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

Text = Annotated[str, StringConstraints(min_length=1)]
Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=0)]
Amount = Annotated[float, Field(ge=0)]
Seconds = Annotated[float, Field(gt=0)]


class Frozen(BaseModel):
    """An immutable value; unknown fields are refused. Copies are made with `model_copy(update=...)`."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def one_of(first: str, second: str) -> Any:
    """Return the validator of a model that has just one of two options."""

    def require_one(model: Frozen) -> Frozen:
        if bool(getattr(model, first)) == bool(getattr(model, second)):
            raise ValueError(f"give either `{first}` or `{second}`")
        return model

    return model_validator(mode="after")(require_one)
