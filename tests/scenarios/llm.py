"""`make gate-llm`: a real model as the agent and as the judge."""

import json
import sys

from tests.project import REPOSITORY
from tests.scenarios import Scenario


def night_of_the_model(scenario: Scenario) -> None:
    ended = scenario.run([sys.executable, "-m", "tests.llm.gate"], PYTHONPATH=str(REPOSITORY))
    text = json.dumps([ended.args, ended.returncode, ended.stdout, ended.stderr])
    (scenario.path.parent / "run.json").write_text(text)
