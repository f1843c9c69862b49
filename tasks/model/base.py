"""The base of every model."""

from pydantic import BaseModel, ConfigDict


class Frozen(BaseModel):
    """An immutable value; unknown fields are refused. Copies are made with `model_copy(update=...)`."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)
