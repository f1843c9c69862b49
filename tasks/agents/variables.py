"""The environment variables that lead an agent to its models."""

from collections.abc import Mapping

from passgate.tasks.metering.access import ModelAccess

_LOOPBACK = ("127.0.0.1", "localhost")
_EXCEPTIONS = ("NO_PROXY", "no_proxy")
_ALL = "*"


def leading_to_models(environment: Mapping[str, str], access: ModelAccess) -> dict[str, str]:
    """What an agent that has these variables needs beside or instead of them: empty where there is no meter.

    The meter is on this machine, so a proxy that the variables name must not be asked for it.
    """
    if not access.variables:
        return {}
    together = {**environment, **access.variables}
    stated = [together[name] for name in _EXCEPTIONS if together.get(name)]
    return {**access.variables, **{name: _with_loopback(together.get(name) or "".join(stated)) for name in _EXCEPTIONS}}


def _with_loopback(exceptions: str) -> str:
    hosts = [host.strip() for host in exceptions.split(",") if host.strip()]
    return _ALL if _ALL in hosts else ",".join(dict.fromkeys([*hosts, *_LOOPBACK]))
