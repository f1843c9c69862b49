"""Names of suites, gates, periods and task runners. The command line imports them at each start: no other imports."""

from enum import StrEnum


class Suite(StrEnum):
    GOLDEN = "golden"
    ADVERSARIAL = "adversarial"
    OPEN_ENDED = "open_ended"
    FAILURE_REPLAYS = "failure_replays"


class GateName(StrEnum):
    CI_MERGE = "ci_merge"
    NIGHTLY = "nightly"
    RELEASE_CANDIDATE = "release_candidate"


class Period(StrEnum):
    """The periods of a trend."""

    RUN = "run"
    DAY = "day"
    WEEK = "week"
    VERSION = "version"


class RunnerName(StrEnum):
    """A task runner of Prefect: where batches of trials run."""

    PROCESS = "process"
    DASK = "dask"
    RAY = "ray"
