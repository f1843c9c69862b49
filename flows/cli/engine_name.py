"""The names of the engines that can run a gate."""

from enum import StrEnum


class EngineName(StrEnum):
    """The engine that runs a gate."""

    PREFECT = "prefect"
    NONE = "none"
