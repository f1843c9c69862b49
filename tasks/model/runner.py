"""Where batches of trials run. The command line imports it at each start, so it imports nothing else."""

from enum import StrEnum


class RunnerName(StrEnum):
    """A task runner of Prefect: where batches of trials run."""

    PROCESS = "process"
    DASK = "dask"
    RAY = "ray"
