"""What agents inherit of the environment in which passgate was started."""

import os
from typing import Final

from passgate.tasks.files.environment import bound_to_no_repository

_OF_THE_JUDGE: Final = "PASSGATE_JUDGE_"


def inherited_variables() -> dict[str, str]:
    """Return the variables of this process that an agent is given: not the judge's key, and no repository of a hook."""
    variables = bound_to_no_repository(os.environ)
    return {name: value for name, value in variables.items() if not name.startswith(_OF_THE_JUDGE)}
