"""What AgentV answered: the rows of `agentv_results.jsonl` that are of tests."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel, field_validator

RESULTS = "agentv_results.jsonl"


class RecordedGrade(BaseModel):
    """AgentV's answer for one grader."""

    name: str
    type: str
    score: float
    verdict: str | bool | None = None
    checks: tuple[Any, ...] = ()

    @property
    def crashed(self) -> bool:
        """Whether AgentV itself broke down before there was anything to grade."""
        return any(str(check[0]).startswith("Provider error") for check in self.checks)

    @property
    def skipped(self) -> bool:
        """Whether AgentV could not measure: its score is then no score."""
        return self.verdict == "skip"


class Row(BaseModel):
    """One test as AgentV ran it."""

    version: str
    source: str
    path: str
    test_id: str
    target: str | None = None
    score: float
    status: str
    answer: str | None = None
    graders: tuple[RecordedGrade, ...] = ()
    aggregation: dict[str, Any] | None = None

    @property
    def strategy(self) -> str:
        """How AgentV made one score of several trials, where the row says it."""
        return str((self.aggregation or {}).get("strategy", ""))

    @field_validator("graders", mode="before")
    @classmethod
    def _short_form(cls, graders: Any) -> Any:
        """Some rows have graders as (name, type, score)."""
        return [
            {"name": grader[0], "type": grader[1], "score": grader[2]} if isinstance(grader, list) else grader
            for grader in graders or ()
        ]

    @property
    def label(self) -> str:
        return f"{self.version} {self.path} {self.test_id}"


def read_rows(corpus: Path) -> Iterator[Row]:
    """The rows of tests, in the order of the file."""
    with (corpus / RESULTS).open(encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            if row.get("kind") == "test":
                yield Row.model_validate(row)
