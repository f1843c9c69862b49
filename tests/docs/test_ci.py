"""The jobs of docs/ci.md."""

import re

import jsonschema
import yaml

from tests.conftest import REPOSITORY
from tests.schema_store import published_schema

_SCHEMA = "https://gitlab.com/gitlab-org/gitlab/-/raw/master/app/assets/javascripts/editor/schema/ci.json"


def test_the_jobs_for_gitlab_are_valid_by_its_schema() -> None:
    section = (REPOSITORY / "docs" / "ci.md").read_text().partition("\n## GitLab\n")[2]
    block = re.search(r"```yaml\n(.+?)```", section, re.DOTALL)
    assert block is not None
    jsonschema.validate(yaml.safe_load(block[1]), published_schema(_SCHEMA))
