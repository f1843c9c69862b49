"""The engines that a run can have."""

from enum import StrEnum


class EngineName(StrEnum):
    """What a run is shown in."""

    PREFECT = "prefect"
    NONE = "none"
