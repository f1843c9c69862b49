"""`passgate schema`: the published schemas by their names."""

import json
from pathlib import Path

from tests.cli.commands import Here, refused, told
from tests.project import REPOSITORY


def test_every_published_schema_is_listed_and_printed(here: Here) -> None:
    published = {file.name.removesuffix(".schema.json"): file for file in Path(REPOSITORY, "schema").iterdir()}
    listed = told(here, "schema").splitlines()
    assert [line.split()[0] for line in listed] == sorted(published)
    assert all(len(line.split()) > 1 for line in listed)
    for name, file in published.items():
        assert json.loads(told(here, "schema", name)) == json.loads(file.read_text())
    assert "there is no schema 'gats'; did you mean 'gates'?" in refused(here, "schema", "gats")
