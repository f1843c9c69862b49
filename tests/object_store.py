"""A local S3 server for tests of runs at a URL."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

import pytest
from s3fs import S3FileSystem

from tests.prefect_servers import free_port

BUCKET = "passgate-tests"
_NUMBERS = count(1)


@dataclass
class ObjectStore:
    """An S3 server on the loopback, with one bucket. What it holds stays while it is stopped."""

    port: int
    server: Any = None

    @property
    def environment(self) -> dict[str, str]:
        """What makes it the S3 of a command."""
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}",
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "AWS_DEFAULT_REGION": "us-east-1",
        }

    def new_url(self) -> str:
        """A place below which nothing lies yet."""
        return f"s3://{BUCKET}/runs-{next(_NUMBERS)}"

    def start(self) -> None:
        from moto.server import ThreadedMotoServer

        self.server = ThreadedMotoServer(ip_address="127.0.0.1", port=self.port, verbose=False)
        self.server.start()

    def stop(self) -> None:
        self.server.stop()
        self.server._server.server_close()  # Moto leaves its socket open

    def keys(self, url: str) -> list[str]:
        """The names of the objects below a URL, relative to it."""
        prefix = url.removeprefix(f"s3://{BUCKET}/") + "/"
        found = self._backend.buckets[BUCKET].keys
        return sorted(str(name).removeprefix(prefix) for name in found if str(name).startswith(prefix))

    def content(self, url: str) -> bytes:
        """What an object holds."""
        content: bytes = self._backend.get_object(BUCKET, url.removeprefix(f"s3://{BUCKET}/")).value
        return content

    def overwrite(self, url: str, content: bytes) -> None:
        """Put something else in the place of an object."""
        self._backend.put_object(BUCKET, url.removeprefix(f"s3://{BUCKET}/"), content)

    @property
    def buckets(self) -> list[str]:
        return list(self._backend.buckets)

    @property
    def _backend(self) -> Any:
        from moto.core import DEFAULT_ACCOUNT_ID
        from moto.s3.models import s3_backends

        return s3_backends[DEFAULT_ACCOUNT_ID]["aws"]


@pytest.fixture(scope="module")
def object_store() -> Iterator[ObjectStore]:
    """An S3 server with an empty bucket, which the environment of this process names too."""
    store = ObjectStore(free_port())
    store.start()
    try:
        if BUCKET not in store.buckets:
            store._backend.create_bucket(BUCKET, "us-east-1")
        with pytest.MonkeyPatch.context() as patch:
            for name, value in store.environment.items():
                patch.setenv(name, value)
            # Drivers of this process that were made for another server know its address.
            S3FileSystem.clear_instance_cache()
            yield store
    finally:
        store.stop()
