"""What agents inherit of the environment in which passgate was started."""

import os
from typing import Final

from passgate.tasks.files.environment import bound_to_no_repository

_NOT_FOR_AGENTS: Final = ("PASSGATE_JUDGE_", "PREFECT_")
SET_FOR_PREFECT: Final = "PREFECT_SETS"
"""The variable that lists, with commas between them, further variables that passgate has set for Prefect."""


def inherited_variables() -> dict[str, str]:
    """Return the variables of this process that an agent is given.

    Not the judge's key, no repository of a hook, and nothing of Prefect: an agent behaves alike with every engine.
    """
    variables = bound_to_no_repository(os.environ)
    left_out = variables.get(SET_FOR_PREFECT, "").split(",")
    return {
        name: value
        for name, value in variables.items()
        if not name.startswith(_NOT_FOR_AGENTS) and name not in left_out
    }
