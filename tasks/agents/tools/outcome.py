"""What comes of a tool call."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ToolOutcome:
    """The result that the model is told, any JSON value."""

    result: Any
    is_error: bool = False
