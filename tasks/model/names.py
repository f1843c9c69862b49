"""The names of suites and gates. The command line imports them at each start, so this file imports nothing else."""

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
