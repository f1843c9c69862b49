"""The JSON Schemas of the input files, made from the models: what the loader accepts and editors show.

`make schema` writes them to `schema/`; a test keeps the files and the models the same.
"""

import json
from typing import Any

from passgate.tasks.formats.evals.schemas import agentevals_schema, agentv_schema
from passgate.tasks.formats.model_schema import headed, input_schema, json_schema
from passgate.tasks.model.agent import AgentsFile
from passgate.tasks.model.baseline import Pins
from passgate.tasks.model.policy import Policy, QuarantineFile
from passgate.tasks.model.price import PriceTable
from passgate.tasks.model.sandbox import SandboxFile
from passgate.tasks.model.task import TaskFile
from passgate.tasks.model.transcript import Transcript
from passgate.tasks.model.verdict import Verdict


def schemas() -> dict[str, dict[str, Any]]:
    """Every generated schema by its name, as in `schema/NAME.schema.json`."""
    return {
        "task": input_schema(TaskFile, "task", "Agent Eval Task"),
        "sandbox": input_schema(SandboxFile, "sandbox", "passgate sandbox"),
        "gates": input_schema(Policy, "gates", "passgate gates"),
        "agents": input_schema(AgentsFile, "agents", "passgate agents"),
        "prices": input_schema(PriceTable, "prices", "passgate prices"),
        "baseline": input_schema(Pins, "baseline", "passgate baseline pins"),
        "quarantine": input_schema(QuarantineFile, "quarantine", "passgate quarantine"),
        "verdict": headed(json_schema(Verdict, "serialization"), "verdict", "passgate verdict"),
        # Agents write it and passgate too: what is not known may be left out or `null`.
        "transcript": headed(json_schema(Transcript), "transcript", "passgate transcript"),
        "eval": agentevals_schema(),
        "agentv": agentv_schema(),
    }


def schema_text(schema: dict[str, Any]) -> str:
    """Return a schema as its file holds it."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    import sys
    from pathlib import Path

    for schema_name, schema_value in schemas().items():
        Path(sys.argv[1], f"{schema_name}.schema.json").write_text(schema_text(schema_value), encoding="utf-8")
