"""`passgate schema`: the published schemas by their names."""

import json
from pathlib import Path

import pytest

from passgate.flows.cli import main
from tests.project import REPOSITORY


def test_every_published_schema_is_listed_and_printed(capsys: pytest.CaptureFixture[str]) -> None:
    published = {file.name.removesuffix(".schema.json"): file for file in Path(REPOSITORY, "schema").iterdir()}

    assert main(["schema"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in listed] == sorted(published)
    assert all(len(line.split()) > 1 for line in listed)
    for name, file in published.items():
        assert main(["schema", name]) == 0
        assert json.loads(capsys.readouterr().out) == json.loads(file.read_text())


def test_an_unknown_schema_is_bad_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", "gats"]) == 2
    assert "there is no schema 'gats'; did you mean 'gates'?" in capsys.readouterr().err
