"""The base of every model, and the numbers and texts that many have."""

import unicodedata
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

Text = Annotated[str, StringConstraints(min_length=1)]
Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=0)]
Amount = Annotated[float, Field(ge=0)]
Seconds = Annotated[float, Field(gt=0)]


_UNSEEN = {"Cc", "Cf", "Cs", "Zl", "Zp", "Zs"}
_FILLERS = set("\u034f\u115f\u1160\u2800\u3164\uffa0")  # Unicode calls them letters, marks and symbols


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


def is_blank(text: str) -> bool:
    """Return whether a reader sees nothing of a text."""
    return all(unicodedata.category(mark) in _UNSEEN or mark in _FILLERS for mark in text)
