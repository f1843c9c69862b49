"""Resolve environment variables whose values Prefect stores, so that deployments and logs contain only names."""

import os
from typing import Any, Final

from prefect.blocks.system import Secret
from prefect.variables import Variable

from passgate.tasks.errors import UsageError

_SECRET: Final = "prefect-secret:"
_VARIABLE: Final = "prefect-variable:"


async def resolve_environment() -> None:
    """Replace each environment variable of the form `prefect-secret:NAME` or `prefect-variable:NAME` by the value of
    that Secret block or variable.

    Raise `UsageError` if it does not exist, and Prefect's own errors.
    """
    for name, value in list(os.environ.items()):
        if value.startswith(_SECRET):
            os.environ[name] = await _secret(name, value.removeprefix(_SECRET))
        elif value.startswith(_VARIABLE):
            os.environ[name] = await _variable(name, value.removeprefix(_VARIABLE))


async def _secret(name: str, block: str) -> str:
    try:
        loaded: Any = await Secret.aload(block)
    except ValueError as error:
        raise UsageError(f"the Secret block {block!r} of Prefect, which {name} names, does not exist") from error
    return str(loaded.get())


async def _variable(name: str, variable: str) -> str:
    value = await Variable.aget(variable)
    if value is None:
        raise UsageError(f"the variable {variable!r} of Prefect, which {name} names, does not exist")
    return str(value)
