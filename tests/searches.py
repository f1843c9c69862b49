"""How long hypothesis searches: shortly and always alike at a merge; long and each time elsewhere by `make search`."""

from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, settings

_ANYWHERE: dict[str, Any] = {
    # A busy machine takes its time, and so do large documents; a fixture of a function is made once for all examples.
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
}
settings.register_profile("merge", derandomize=True, max_examples=50, database=None, **_ANYWHERE)
settings.register_profile("search", max_examples=1000, **_ANYWHERE)
settings.load_profile("merge")


def costly(test: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a search whose examples take long: it tries a fifth of them."""
    searched: Callable[..., Any] = settings(max_examples=settings().max_examples // 5)(test)
    return searched
